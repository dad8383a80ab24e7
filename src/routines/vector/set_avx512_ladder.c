/* set_avx512_ladder: memset with 64-byte vectors for sizes that repeat; the algorithm is in set.tmpl.h. */
#define VEC_BYTES 64
#define LADDER
#define SET wherry_routine_set_avx512_ladder
#include "set.tmpl.h"
