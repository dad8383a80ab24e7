/* avx2_zero_nt: non-temporal zeroing with 32-byte vectors; the loop is in zero_nt.tmpl.h. */
#define VEC_BYTES 32
#define ZERO_NT wherry_routine_avx2_zero_nt
#include "zero_nt.tmpl.h"
