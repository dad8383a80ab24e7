/* set_stream_sse2: sets past the caches with 16-byte vectors; the algorithm is in set_stream.tmpl.h. */
#define VEC_BYTES 16
#define SET_STREAM wherry_routine_set_stream_sse2
#include "set_stream.tmpl.h"
