/* copy_stream_avx512: copies past the caches with 64-byte vectors; the algorithm is in copy_stream.tmpl.h. */
#define VEC_BYTES 64
#define COPY_STREAM wherry_routine_copy_stream_avx512
#include "copy_stream.tmpl.h"
