#define VEC_BYTES 32
#define SYMBOL wherry_guarded_copy_csum_avx2
#define TOP .Ltop
#define AT(name) .L##name
#include "../asm.h"

ENTRY(wherry_guarded_copy_csum_avx2)
#include "copy_csum.tmpl.S"
END(wherry_guarded_copy_csum_avx2)
