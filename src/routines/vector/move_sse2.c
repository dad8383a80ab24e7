/* move_sse2: memmove with 16-byte vectors; the algorithm is in move.tmpl.h. */
#define VEC_BYTES 16
#define MOVE wherry_routine_move_sse2
#include "move.tmpl.h"
