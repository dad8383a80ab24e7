/* copy_csum_avx2: that of the fault-tolerant copy, without its fault table. GCC stores four vectors one after the other
 * and adds then: 1.25 times as long at 4 KiB. */
#define VEC_BYTES 32
#define SYMBOL wherry_routine_copy_csum_avx2
#define TOP .Ltop
#define AT(name) .L##name
#define PLAIN
#include "../asm.h"

ENTRY(wherry_routine_copy_csum_avx2)
#include "../guarded/copy_csum.tmpl.S"
END(wherry_routine_copy_csum_avx2)
