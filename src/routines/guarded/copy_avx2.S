#define VEC_BYTES 32
#define SYMBOL wherry_guarded_copy_avx2
#define TOP .Ltop
#define AT(name) .L##name
#include "../asm.h"

/* In one page: as in public.S, a jump taken to another costs a cycle. */
    .section .text.wherry_guarded_copy_avx2, "ax", @progbits
    .p2align 12
ENTRY(wherry_guarded_copy_avx2)
#include "copy.tmpl.S"
END(wherry_guarded_copy_avx2)
