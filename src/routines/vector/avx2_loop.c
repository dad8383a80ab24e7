/* avx2_loop: the plain copy with 32-byte vectors; the loop is in loop.tmpl.h. */
#define VEC_BYTES 32
#define LOOP wherry_routine_avx2_loop
#include "loop.tmpl.h"
