/* copy_stream_sse2: copies past the caches with 16-byte vectors; the algorithm is in copy_stream.tmpl.h. */
#define VEC_BYTES 16
#define COPY_STREAM wherry_routine_copy_stream_sse2
#include "copy_stream.tmpl.h"
