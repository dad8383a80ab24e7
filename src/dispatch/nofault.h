/* The fault-tolerant functions' choice of routine. */
#ifndef WHERRY_DISPATCH_NOFAULT_H
#define WHERRY_DISPATCH_NOFAULT_H

#include "plan/plan.h"
#include "wherry.h"

/* The low byte of a word that nofault.S reads at each call. Until somebody fixes faults the kernel does the work. */
enum wherry_nofault_choice {
    WHERRY_NOFAULT_CHOICE_SSE2 = -1,
    WHERRY_NOFAULT_CHOICE_CALLS = 0,
    WHERRY_NOFAULT_CHOICE_AVX2 = 1,
    WHERRY_NOFAULT_CHOICE_AVX512 = 2,
    WHERRY_NOFAULT_CHOICE_VNNI = 3, /* as AVX512, and sums by dot products */
};
/* Above that byte is which look at the owners it comes from: see nofault.c. */
extern _Atomic(uint64_t) wherry_nofault_choice __attribute__((visibility("hidden")));
static inline enum wherry_nofault_choice wherry_nofault_choice_in(uint64_t word)
{
    return (enum wherry_nofault_choice)(signed char)word;
}

/* Takes this tier's routines from now on, whoever fixes faults: for tests and measurements. False, and nothing is
 * changed, when this CPU cannot run them. The copy that sums is the same in all AVX-512 tiers but for dot products: as
 * planned by default, never with the ladder, with sizes together wherever the CPU has them. */
bool wherry_nofault_force(enum wherry_isa isa);

/* The public functions under names that no symbol of another object can take. */
size_t wherry_nofault_copy(void *dst, const void *src, size_t n, struct wherry_fault *fault);
size_t wherry_nofault_set(void *dst, int c, size_t n, struct wherry_fault *fault);
size_t wherry_nofault_copy_csum(void *dst, const void *src, size_t n, uint32_t *sum, struct wherry_fault *fault);

#endif
