/* iszero_sse2: looks for a byte that is not zero with 16-byte vectors; the algorithm is in iszero.tmpl.h. */
#define VEC_BYTES 16
#define ISZERO wherry_routine_iszero_sse2
#include "iszero.tmpl.h"
