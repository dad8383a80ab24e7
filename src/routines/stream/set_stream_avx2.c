/* set_stream_avx2: sets past the caches with 32-byte vectors; the algorithm is in set_stream.tmpl.h. */
#define VEC_BYTES 32
#define SET_STREAM wherry_routine_set_stream_avx2
#include "set_stream.tmpl.h"
