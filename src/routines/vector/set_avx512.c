/* set_avx512: memset with 64-byte vectors; the algorithm is in set.tmpl.h. */
#define VEC_BYTES 64
#define SET wherry_routine_set_avx512
#include "set.tmpl.h"
