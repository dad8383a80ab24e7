#define VEC_BYTES 32
#define COPY_CSUM wherry_guarded_copy_csum_avx2

#include "copy_csum.tmpl.h"
