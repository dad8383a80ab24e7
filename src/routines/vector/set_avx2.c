/* set_avx2: memset with 32-byte vectors; the algorithm is in set.tmpl.h. */
#define VEC_BYTES 32
#define SET wherry_routine_set_avx2
#include "set.tmpl.h"
