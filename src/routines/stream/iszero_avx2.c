/* iszero_avx2: looks for a byte that is not zero with 32-byte vectors; the algorithm is in iszero.tmpl.h. */
#define VEC_BYTES 32
#define ISZERO wherry_routine_iszero_avx2
#include "iszero.tmpl.h"
