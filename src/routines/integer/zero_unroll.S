/* mov_loop, unroll8 ... unroll64, unroll16_prealloc ... unroll64_prealloc: integer zeroing, unrolled ever further;
 * rows zero8 (movl), zero9, zero1, zero3, zero5 and, with preallocation, zero2, zero4, zero6 of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * The number is bytes a turn. The stores are of 32 bits, as on the machines of the table: wider ones would be other
 * routines. Preallocation reads a word of the turn's memory before writing it: on a CPU whose cache does not take in
 * a line that is written but not in it, the read brings the line in, and the stores then hit. The last word of the
 * turn is the one read, since with an unaligned dst that is the line no earlier turn has read.
 * Historic: bytes a turn, the read. Added: a tail of 4-byte stores and then bytes for the rest of n.
 *
 * Registers: rdi cursor, rcx bytes left less one turn, edx zero, esi the word read, rax dst.
 */
#include "../asm.h"

.macro STORE_WORDS first, last
    movl    %edx, 4*(\first)(%rdi)
    .if \last - \first
    STORE_WORDS (\first + 1), \last
    .endif
.endm

.macro ZERO_UNROLL name, turn, prealloc
ENTRY(wherry_routine_\name)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    xorl    %edx, %edx
    subq    $\turn, %rcx
    jb      .L\name\()_less_than_a_turn
    .p2align 4
.L\name\()_a_turn_or_more:
    .if \prealloc
    movl    \turn - 4(%rdi), %esi
    .endif
    STORE_WORDS 0, (\turn / 4 - 1)
    addq    $\turn, %rdi
    subq    $\turn, %rcx
    jae     .L\name\()_a_turn_or_more
.L\name\()_less_than_a_turn:
    .if \turn > 4
    addq    $\turn - 4, %rcx
    jnc     .L\name\()_0_to_3
.L\name\()_4_or_more:
    movl    %edx, (%rdi)
    addq    $4, %rdi
    subq    $4, %rcx
    jae     .L\name\()_4_or_more
    .endif
.L\name\()_0_to_3:
    addq    $4, %rcx
    jz      .L\name\()_done
.L\name\()_byte:
    movb    %dl, (%rdi)
    incq    %rdi
    decq    %rcx
    jnz     .L\name\()_byte
.L\name\()_done:
    ret
END(wherry_routine_\name)
.endm

ZERO_UNROLL mov_loop, 4, 0
ZERO_UNROLL unroll8, 8, 0
ZERO_UNROLL unroll16, 16, 0
ZERO_UNROLL unroll32, 32, 0
ZERO_UNROLL unroll64, 64, 0
ZERO_UNROLL unroll16_prealloc, 16, 1
ZERO_UNROLL unroll32_prealloc, 32, 1
ZERO_UNROLL unroll64_prealloc, 64, 1
