/* sse2_zero_nt: non-temporal zeroing with 16-byte vectors; the loop is in zero_nt.tmpl.h. */
#define VEC_BYTES 16
#define ZERO_NT wherry_routine_sse2_zero_nt
#include "zero_nt.tmpl.h"
