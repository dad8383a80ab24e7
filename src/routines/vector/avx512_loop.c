/* avx512_loop: the plain copy with 64-byte vectors; the loop is in loop.tmpl.h. */
#define VEC_BYTES 64
#define LOOP wherry_routine_avx512_loop
#include "loop.tmpl.h"
