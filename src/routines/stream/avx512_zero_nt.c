/* avx512_zero_nt: non-temporal zeroing with 64-byte vectors; the loop is in zero_nt.tmpl.h. */
#define VEC_BYTES 64
#define ZERO_NT wherry_routine_avx512_zero_nt
#include "zero_nt.tmpl.h"
