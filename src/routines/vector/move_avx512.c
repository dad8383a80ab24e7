/* move_avx512: memmove with 64-byte vectors; the algorithm is in move.tmpl.h. */
#define VEC_BYTES 64
#define MOVE wherry_routine_move_avx512
#define MOVE_LARGE wherry_routine_move_avx512_large
#include "move.tmpl.h"
