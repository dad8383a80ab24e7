/* set_sse2: memset with 16-byte vectors; the algorithm is in set.tmpl.h. */
#define VEC_BYTES 16
#define SET wherry_routine_set_sse2
#include "set.tmpl.h"
