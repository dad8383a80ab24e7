#define VEC_BYTES 16
#define COPY_CSUM wherry_guarded_copy_csum_sse2

#include "copy_csum.tmpl.h"
