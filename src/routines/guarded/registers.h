/* For the guarded templates: the registers and moves of the vector width VEC_BYTES (16, 32 or 64). R0 to R15 are
 * whatever the width has of them; those of AVX-512 are the ones that need no vzeroupper. */
#ifndef WHERRY_GUARDED_REGISTERS_H
#define WHERRY_GUARDED_REGISTERS_H

#include "../asm.h"
#include "../recent.h"
#include "../thresholds.h"
#include "../written.h"
#include "fault_table.h"

/* clang-format off */
#if VEC_BYTES == 16
#define SHIFTED RECENT_SHIFTED
#else
#define SHIFTED RECENT_SHIFTED_BMI2
#endif
#if VEC_BYTES == 16
#define R(n) %xmm##n
#define MOVE movdqu
#define MOVE_NT movntdq
#define CLEAN
#elif VEC_BYTES == 32
#define R(n) %ymm##n
#define MOVE vmovdqu
#define MOVE_NT vmovntdq
#define CLEAN vzeroupper;
#elif VEC_BYTES == 64
#define R(n) R_##n
#define R_0 %zmm16
#define R_1 %zmm17
#define R_2 %zmm18
#define R_3 %zmm19
#define R_4 %zmm20
#define R_5 %zmm21
#define R_6 %zmm22
#define R_7 %zmm23
#define R_8 %zmm24
#define R_9 %zmm25
#define R_10 %zmm26
#define R_11 %zmm27
#define R_12 %zmm28
#define R_13 %zmm29
#define R_14 %zmm30
#define R_15 %zmm31
#define MOVE vmovdqu64
#define MOVE_NT vmovntdq
#define CLEAN
#else
#error "VEC_BYTES must be 16, 32 or 64"
#endif

#define V VEC_BYTES

/* Of blocks from 256 bytes on that repeat others where n does not reach, n from a line on in rdx: eax the least multiple
 * of 64 from where three reach n - 128, and 0 at least. Loses r9. Then the same, but limit at most. */
#define FARTHEST_PLACE               \
    xorl    %r9d, %r9d;              \
    leal    -257(%rdx), %eax;        \
    andl    $-64, %eax;              \
    cmovsl  %r9d, %eax
#define LIMITED_PLACE(limit, to)     \
    movl    $limit, to;              \
    cmpl    to, %eax;                \
    cmovbl  %eax, to

/* The includer defines SYMBOL, the function whose section this is. */
#define LOAD(resume, ...) CAN_FAULT(SYMBOL, FAULT_LOAD, resume, __VA_ARGS__)
#define STORE(resume, ...) CAN_FAULT(SYMBOL, FAULT_STORE, resume, __VA_ARGS__)
#define LOAD_REPORT(resume, ...) CAN_FAULT(SYMBOL, FAULT_LOAD | FAULT_REPORT, resume, __VA_ARGS__)
#define STORE_REPORT(resume, ...) CAN_FAULT(SYMBOL, FAULT_STORE | FAULT_REPORT, resume, __VA_ARGS__)

/* struct wherry_fault, as in the public header. */
#define FAULT_ADDRESS 0
#define FAULT_SIGNO 8 /* and the code behind it */
#define FAULT_WRITING 16
/* clang-format on */

#endif
