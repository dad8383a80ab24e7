/* copy_stream_avx2: copies past the caches with 32-byte vectors; the algorithm is in copy_stream.tmpl.h. */
#define VEC_BYTES 32
#define COPY_STREAM wherry_routine_copy_stream_avx2
#include "copy_stream.tmpl.h"
