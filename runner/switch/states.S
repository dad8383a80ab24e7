/* The registers of each state, by hand: a compiler keeps no value in them from call to call. What is live here stays
 * live across system calls, which preserve all vector and x87 registers. */
#include "routines/asm.h"

.section .rodata.live_factor, "a", @progbits
.p2align 6
live_factor:
    .rept 16
    .float 1.00001
    .endr
live_palette_1: /* the tile configuration: palette 1, eight tiles of 16 rows of 64 bytes */
    .byte 1, 0
    .zero 14
    .rept 8
    .short 64
    .endr
    .zero 16
    .rept 8
    .byte 16
    .endr
    .zero 8

/* void live_clear_x87_sse(void) */
ENTRY(live_clear_x87_sse)
    fninit
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    xorps %xmm\n, %xmm\n
    .endr
    ret
END(live_clear_x87_sse)

/* void live_clear_all(const void *area, uint64_t mask): an area that holds nothing, so that the CPU too knows the
 * registers to be as after reset; writing zeros to them does not make it forget that they were written. */
ENTRY(live_clear_all)
    movl %esi, %eax
    shrq $32, %rsi
    movl %esi, %edx
    xrstor64 (%rdi)
    ret
END(live_clear_all)

/* void live_begin_x87(float value): the value in %xmm0 */
ENTRY(live_begin_x87)
    movss %xmm0, -4(%rsp)
    fninit
    flds -4(%rsp)
    ret
END(live_begin_x87)

/* void live_turn_x87(void) */
ENTRY(live_turn_x87)
    fmuls live_factor(%rip)
    ret
END(live_turn_x87)

/* uint64_t live_read_x87(void) */
ENTRY(live_read_x87)
    fld %st(0)
    fstpl -8(%rsp)
    movq -8(%rsp), %rax
    ret
END(live_read_x87)

/* void live_begin_sse(float) */
ENTRY(live_begin_sse)
    shufps $0, %xmm0, %xmm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps %xmm0, %xmm\n
    .endr
    ret
END(live_begin_sse)

/* void live_turn_sse(void) */
ENTRY(live_turn_sse)
    movaps live_factor(%rip), %xmm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    mulps %xmm0, %xmm\n
    .endr
    ret
END(live_turn_sse)

/* uint64_t live_read_sse(void) */
ENTRY(live_read_sse)
    movq %xmm15, %rax
    ret
END(live_read_sse)

/* void live_begin_avx(float): the upper halves are left in use on purpose */
ENTRY(live_begin_avx)
    vbroadcastss %xmm0, %ymm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovaps %ymm0, %ymm\n
    .endr
    ret
END(live_begin_avx)

/* void live_turn_avx(void) */
ENTRY(live_turn_avx)
    vmovaps live_factor(%rip), %ymm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmulps %ymm0, %ymm\n, %ymm\n
    .endr
    ret
END(live_turn_avx)

/* uint64_t live_read_avx(void): of the upper half */
ENTRY(live_read_avx)
    vextractf128 $1, %ymm15, -24(%rsp)
    movq -24(%rsp), %rax
    ret
END(live_read_avx)

/* void live_begin_avx512(float): the sixteen registers that only AVX-512 has, and the upper halves of the others */
ENTRY(live_begin_avx512)
    vbroadcastss %xmm0, %zmm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    vmovaps %zmm0, %zmm\n
    .endr
    ret
END(live_begin_avx512)

/* void live_turn_avx512(void) */
ENTRY(live_turn_avx512)
    vmovaps live_factor(%rip), %zmm0
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    vmulps %zmm0, %zmm\n, %zmm\n
    .endr
    ret
END(live_turn_avx512)

/* uint64_t live_read_avx512(void) */
ENTRY(live_read_avx512)
    vextractf32x4 $3, %zmm31, -24(%rsp)
    movq -24(%rsp), %rax
    ret
END(live_read_avx512)

/* void live_begin_opmask(float) */
ENTRY(live_begin_opmask)
    vmovd %xmm0, %eax
    .irp n, 1, 2, 3, 4, 5, 6, 7
    kmovd %eax, %k\n
    .endr
    ret
END(live_begin_opmask)

/* void live_turn_opmask(void) */
ENTRY(live_turn_opmask)
    .irp n, 1, 2, 3, 4, 5, 6
    kord %k7, %k\n, %k\n
    .endr
    ret
END(live_turn_opmask)

/* uint64_t live_read_opmask(void) */
ENTRY(live_read_opmask)
    kmovd %k7, %eax
    ret
END(live_read_opmask)

/* void live_begin_amx(float): every row of every tile holds the value */
ENTRY(live_begin_amx)
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $64, %rsp
    andq $-64, %rsp
    shufps $0, %xmm0, %xmm0
    movaps %xmm0, (%rsp)
    movaps %xmm0, 16(%rsp)
    movaps %xmm0, 32(%rsp)
    movaps %xmm0, 48(%rsp)
    ldtilecfg live_palette_1(%rip)
    xorl %eax, %eax /* a stride of nothing: sixteen times the same row */
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    tileloadd (%rsp, %rax), %tmm\n
    .endr
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    ret
END(live_begin_amx)

/* void live_turn_amx(void) */
ENTRY(live_turn_amx)
    tilezero %tmm0
    ret
END(live_turn_amx)

/* uint64_t live_read_amx(void): of the last tile */
ENTRY(live_read_amx)
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $1024, %rsp
    movl $64, %eax
    tilestored %tmm7, (%rsp, %rax)
    movq (%rsp), %rax
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    ret
END(live_read_amx)
