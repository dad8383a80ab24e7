#define VEC_BYTES 32
#define CSUM wherry_routine_csum_avx2

#include "csum.tmpl.h"
