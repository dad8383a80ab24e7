/* move_avx512_ladder: memmove with 64-byte vectors for sizes that repeat; the algorithm is in move.tmpl.h. */
#define VEC_BYTES 64
#define LADDER
#define MOVE wherry_routine_move_avx512_ladder
#include "move.tmpl.h"
