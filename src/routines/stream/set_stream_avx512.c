/* set_stream_avx512: sets past the caches with 64-byte vectors; the algorithm is in set_stream.tmpl.h. */
#define VEC_BYTES 64
#define SET_STREAM wherry_routine_set_stream_avx512
#include "set_stream.tmpl.h"
