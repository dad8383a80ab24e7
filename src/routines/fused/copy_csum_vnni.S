/* copy_csum_vnni: copy_csum_avx512 with its lines by dot products. */
#define VEC_BYTES 64
#define DOTS
#define SYMBOL wherry_routine_copy_csum_vnni
#define TOP .Ltop
#define AT(name) .L##name
#define PLAIN
#include "../asm.h"

ENTRY(wherry_routine_copy_csum_vnni)
#include "../guarded/copy_csum_lines.tmpl.S"
END(wherry_routine_copy_csum_vnni)
