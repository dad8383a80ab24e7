/* sse2_loop: the plain copy with 16-byte vectors; the loop is in loop.tmpl.h. */
#define VEC_BYTES 16
#define LOOP wherry_routine_sse2_loop
#include "loop.tmpl.h"
