/* iszero_avx512: looks for a byte that is not zero with 64-byte vectors; the algorithm is in iszero.tmpl.h. */
#define VEC_BYTES 64
#define ISZERO wherry_routine_iszero_avx512
#include "iszero.tmpl.h"
