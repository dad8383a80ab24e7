/* avx2_zero: plain zeroing with 32-byte vectors; the loop is in zero.tmpl.h. */
#define VEC_BYTES 32
#define ZERO wherry_routine_avx2_zero
#include "zero.tmpl.h"
