/* The fault-tolerant copy, set, and copy that sums. As in public.S one comparison tells the ways apart, and AVX-512
 * goes on right here:
 *
 *   size_t wherry_copy_nofault(void *dst rdi, const void *src rsi, size_t n rdx, struct wherry_fault *fault rcx)
 *   size_t wherry_set_nofault(void *dst rdi, int c esi, size_t n rdx, struct wherry_fault *fault rcx)
 *   size_t wherry_csum_copy_nofault(void *dst rdi, const void *src rsi, size_t n rdx, uint32_t *sum rcx,
 *                                   struct wherry_fault *fault r8)
 *
 * wherry_nofault_choice is zero-initialised data and zero means system calls, so a call that comes before anything has
 * been set up is right.
 */
#define VEC_BYTES 64
#include "dispatch/choice.h"
#include "routines/asm.h"

/* clang-format off */
/* The public name, and one that stays inside; the choice is 1 for AVX2, above it for AVX-512 (3 where the CPU has VNNI too),
 * below for the others. Of these the baseline is right, too, where another tier has been chosen since the first comparison;
 * for system calls a sandbox may kill. */
#define NOFAULT(symbol, inside, avx2, alignment)            \
    .section .text.symbol, "ax", @progbits;                 \
    .globl symbol, inside;                                  \
    .hidden inside;                                         \
    .type symbol, @function;                                \
    .type inside, @function;                                \
    .p2align alignment;                                     \
symbol:                                                     \
inside:                                                     \
    .cfi_startproc;                                         \
    _CET_ENDBR;                                             \
    cmpb    $1, wherry_nofault_choice(%rip);                \
    je      avx2;                                           \
    jl      AT(others)

#define NOFAULT_END(symbol, inside, sse2, calls)            \
AT(others):                                                 \
    cmpb    $0, wherry_nofault_choice(%rip);                \
    je      calls;                                          \
    jmp     sse2;                                           \
    .cfi_endproc;                                           \
    .size   symbol, . - symbol;                             \
    .size   inside, . - inside
/* clang-format on */

#define AT(name) .Lcopy_##name
#define TOP .Lcopy
#define SYMBOL wherry_nofault_copy
NOFAULT(wherry_copy_nofault, wherry_nofault_copy, wherry_guarded_copy_avx2, 12) /* in one page, as in public.S */
/* Small sizes go the way that wherry_memcpy has found the better (watch.h), whose choice is 2 where they are apart. It
 * is read and no more: this copy neither counts its calls nor looks. */
    cmpb    $2, wherry_copy_choice + CHOICE_CODE(%rip)
    jne     AT(not_apart)
#include "routines/guarded/copy.tmpl.S"

/* Of the differences from 2 those of sizes together and of a look have even parity, those of the baseline and the
 * ladder odd. That of AVX2 is even too; it is met while another plan is put in force, and either way is right. */
    .p2align 5
AT(not_apart):
    jnp     AT(neither)
#include "routines/guarded/copy_together.tmpl.S"
    .pushsection .rodata
    .p2align 6
AT(anything):                       /* as move_anything of public.S */
    .skip   128
#if WHERRY_EDGE_BRANCH
AT(numbers):                        /* as in move_places */
    .set    number, 0
    .rept   16
    .long   number
    .set    number, number + 1
    .endr
#endif
    .popsection
NOFAULT_END(wherry_copy_nofault, wherry_nofault_copy, wherry_guarded_copy_sse2, wherry_guard_copy_by_calls)

#undef AT
#undef TOP
#undef SYMBOL
#undef LARGE
#define AT(name) .Lset_##name
#define TOP .Lset
#define SYMBOL wherry_nofault_set
NOFAULT(wherry_set_nofault, wherry_nofault_set, wherry_guarded_set_avx2, 6)
    cmpb    $2, wherry_set_choice + CHOICE_CODE(%rip) /* as for the copy; by neither way is as apart */
    jne     AT(not_apart)
#include "routines/guarded/set.tmpl.S"

    .p2align 5
AT(not_apart):
    jnp     TOP
#include "routines/guarded/set_together.tmpl.S"
NOFAULT_END(wherry_set_nofault, wherry_nofault_set, wherry_guarded_set_sse2, wherry_guard_set_by_calls)

#undef AT
#undef TOP
#undef SYMBOL
#undef LARGE
#undef CHUNK
#undef FORWARD_MOST
#define AT(name) .Lcsum_##name
#define TOP .Lcsum
#define SYMBOL wherry_nofault_copy_csum
#define DOTS
#define COMPARE_DOTS cmpb $3, wherry_nofault_choice(%rip)
NOFAULT(wherry_csum_copy_nofault, wherry_nofault_copy_csum, wherry_guarded_copy_csum_avx2, 6)
#include "routines/guarded/copy_csum_lines.tmpl.S"
NOFAULT_END(wherry_csum_copy_nofault, wherry_nofault_copy_csum, wherry_guarded_copy_csum_sse2, wherry_guarded_csum_by_calls)
