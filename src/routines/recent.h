/* Whether a destination was written lately: a guess of where its lines are. Near, a loop wins over a string
 * instruction; far, the string instruction wins, since it does not read what it will overwrite. Near is the first-level
 * cache for a copy and the second for a set. Neither size nor address tells near from far, and no instruction does.
 *
 * So the blocks of 4 KiB of a destination that was far are entered in a table, each at the place that it has in a
 * direct-mapped cache of RECENT_COPY_PLACES or RECENT_SET_PLACES blocks, where it stays until another takes it. A
 * destination is near whose first and last block are there. It is no shorter than a block (a plan may begin earlier,
 * and guess worse), so one that begins where the last one ended is far, as it should be.
 *
 * A wrong answer costs time and nothing else, so nothing is locked. Each thread has a row of its own, by where its
 * stack lies; those that meet in one get answers that are less good. Zero-initialised, so right before any constructor.
 */
#ifndef WHERRY_RECENT_H
#define WHERRY_RECENT_H

#define RECENT_BLOCK_LOG 12
#define RECENT_ROWS 32
#define RECENT_COPY_PLACES 16 /* 64 KiB: more than the first level has, for two buffers that meet in some places */
#define RECENT_SET_PLACES 256 /* 1 MiB */
#define RECENT_COPY_ROW_LOG 6 /* bytes: whole cache lines, so that threads do not share one */
#define RECENT_SET_ROW_LOG 10

#ifdef __ASSEMBLER__
/* clang-format off */
/* Goes to far when the rdx bytes at rdi were not written lately. r8 becomes the row and r9d the first block; r10 and r11
 * are lost. As written_lately below, but for entering. */
#define RECENT_FIND(shifted, far, table, places, row_log) \
    shifted(16 - row_log, %rsp, %r8);              \
    shifted(23 - row_log, %rsp, %r9);              \
    xorl    %r9d, %r8d;                            \
    leaq    -1(%rdi,%rdx), %r11;                   \
    andl    $((RECENT_ROWS - 1) << row_log), %r8d; \
    shrq    $RECENT_BLOCK_LOG, %r11;               \
    shifted(RECENT_BLOCK_LOG, %rdi, %r9);          \
    leaq    table(%rip), %r10;                     \
    addq    %r10, %r8;                             \
    movl    %r11d, %r10d;                          \
    andl    $((places) - 1), %r10d;                \
    cmpl    %r11d, (%r8,%r10,4);                   \
    jne     far;                                   \
    movl    %r9d, %r10d;                           \
    andl    $((places) - 1), %r10d;                \
    cmpl    %r9d, (%r8,%r10,4);                    \
    jne     far
/* The lower half of `to` is what counts. With BMI2 one instruction in place of two: three of these are a hundredth of what a
 * copy of 4 KiB in L1 takes. */
#define RECENT_SHIFTED(count, from, to)            \
    movq    from, to;                              \
    shrq    $(count), to
#define RECENT_SHIFTED_BMI2(count, from, to) rorxq $(count), from, to
#define RECENT_FIND_COPY(shifted, far) RECENT_FIND(shifted, far, wherry_recent_copies, RECENT_COPY_PLACES, RECENT_COPY_ROW_LOG)
#define RECENT_FIND_SET(shifted, far) RECENT_FIND(shifted, far, wherry_recent_sets, RECENT_SET_PLACES, RECENT_SET_ROW_LOG)

/* At far: enters the rdx bytes at rdi. Loses r9, r10 and r11; label is the caller's. */
#define RECENT_ENTER(label, places)                \
    leaq    -1(%rdi,%rdx), %r11;                   \
    shrq    $RECENT_BLOCK_LOG, %r11;               \
    subl    %r9d, %r11d;                           \
    cmpl    $((places) - 1), %r11d;                \
    jbe     label;                                 \
    movl    $((places) - 1), %r11d;                \
label:                                             \
    movl    %r9d, %r10d;                           \
    andl    $((places) - 1), %r10d;                \
    movl    %r9d, (%r8,%r10,4);                    \
    incl    %r9d;                                  \
    subl    $1, %r11d;                             \
    jae     label

/* The same with AVX-512, from the row in r8, the first block in r9d and the last in r11d: in one store, since each
 * between two string instructions costs them four cycles, and without a loop, whose end would be guessed wrong where one
 * destination reaches into a block more than the next. Each place has one block that may be entered there, the first at
 * or behind r9d; those beyond r11d are not. numbers: a row of doublewords, 0, 1, 2 ..., and then RECENT_COPY_PLACES - 1.
 * Loses zmm16 to zmm18 and k1. */
#define RECENT_ENTER_COPY_AT_ONCE(numbers)                            \
    vpbroadcastd %r9d, %zmm16;                                        \
    vmovdqa32 numbers(%rip), %zmm18;                                  \
    vpbroadcastd %r11d, %zmm17;                                       \
    vpsubd  %zmm16, %zmm18, %zmm18;                                   \
    vpandd  numbers + 4 * RECENT_COPY_PLACES(%rip){1to16}, %zmm18, %zmm18; \
    vpaddd  %zmm16, %zmm18, %zmm18;                                   \
    vpcmpleud %zmm17, %zmm18, %k1;                                    \
    vmovdqu32 %zmm18, (%r8){%k1}
/* clang-format on */
#else
#include <stddef.h>
#include <stdint.h>

extern uint32_t wherry_recent_copies[RECENT_ROWS << RECENT_COPY_ROW_LOG >> 2] __attribute__((visibility("hidden")));
extern uint32_t wherry_recent_sets[RECENT_ROWS << RECENT_SET_ROW_LOG >> 2] __attribute__((visibility("hidden")));

/* Threads lie apart on their stacks; a call's row, as RECENT_FIND has it. */
static inline __attribute__((always_inline)) size_t recent_row(uintptr_t stack)
{
    return (stack >> 16 ^ stack >> 23) % RECENT_ROWS;
}

/* Was it written lately? From now on it was. n > 0. */
static inline __attribute__((always_inline)) int written_lately(uint32_t *table, const int row_log,
                                                                const uint32_t places, const uint8_t *dst, size_t n)
{
    uintptr_t stack;
    __asm__("mov %%rsp, %0" : "=r"(stack));
    uint32_t *const row = table + (recent_row(stack) << row_log >> 2);
    uint32_t block = (uint32_t)((uintptr_t)dst >> RECENT_BLOCK_LOG);
    const uint32_t last = (uint32_t)(((uintptr_t)dst + n - 1) >> RECENT_BLOCK_LOG);
    if (__atomic_load_n(&row[last % places], __ATOMIC_RELAXED) == last &&
        __atomic_load_n(&row[block % places], __ATOMIC_RELAXED) == block)
        return 1;
    uint32_t more = last - block < places ? last - block : places - 1;
    for (;; block++) {
        __atomic_store_n(&row[block % places], block, __ATOMIC_RELAXED);
        if (more-- == 0)
            return 0;
    }
}

static inline __attribute__((always_inline)) int copied_to_lately(const uint8_t *dst, size_t n)
{
    return written_lately(wherry_recent_copies, RECENT_COPY_ROW_LOG, RECENT_COPY_PLACES, dst, n);
}

static inline __attribute__((always_inline)) int set_lately(const uint8_t *dst, size_t n)
{
    return written_lately(wherry_recent_sets, RECENT_SET_ROW_LOG, RECENT_SET_PLACES, dst, n);
}
#endif
#endif
