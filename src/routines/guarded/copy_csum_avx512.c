#define VEC_BYTES 64
#define COPY_CSUM wherry_guarded_copy_csum_avx512

#include "copy_csum.tmpl.h"
