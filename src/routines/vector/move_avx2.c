/* move_avx2: memmove with 32-byte vectors; the algorithm is in move.tmpl.h. */
#define VEC_BYTES 32
#define MOVE wherry_routine_move_avx2
#define MOVE_LARGE wherry_routine_move_avx2_large
#include "move.tmpl.h"
