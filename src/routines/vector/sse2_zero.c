/* sse2_zero: plain zeroing with 16-byte vectors; the loop is in zero.tmpl.h. */
#define VEC_BYTES 16
#define ZERO wherry_routine_sse2_zero
#include "zero.tmpl.h"
