/* avx512_zero: plain zeroing with 64-byte vectors; the loop is in zero.tmpl.h. */
#define VEC_BYTES 64
#define ZERO wherry_routine_avx512_zero
#include "zero.tmpl.h"
