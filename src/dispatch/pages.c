/* The public looks at pages. Each call reads a hidden byte and jumps: as in public.S, what is read before any
 * constructor has run is the baseline. */
#include <stdatomic.h>

#include "dispatch/choice.h"
#include "dispatch/dispatch.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

wherry_iszero_fn wherry_routine_iszero_sse2, wherry_routine_iszero_avx2, wherry_routine_iszero_avx512;
wherry_pagezero_fn wherry_routine_pagezero_sse2, wherry_routine_pagezero_avx2, wherry_routine_pagezero_avx512;

static inline signed char choice(void) { return atomic_load_explicit(&wherry_choice, memory_order_relaxed); }

PUBLIC bool wherry_iszero(const void *p, size_t n)
{
    const signed char chosen = choice();
    if (chosen == WHERRY_CHOICE_AVX2)
        return wherry_routine_iszero_avx2(p, n);
    if (chosen == WHERRY_CHOICE_SSE2)
        return wherry_routine_iszero_sse2(p, n);
    return wherry_routine_iszero_avx512(p, n);
}

PUBLIC void wherry_pagezero(void *page, size_t n)
{
    const signed char chosen = choice();
    if (chosen == WHERRY_CHOICE_AVX2)
        wherry_routine_pagezero_avx2(page, n);
    else if (chosen == WHERRY_CHOICE_SSE2)
        wherry_routine_pagezero_sse2(page, n);
    else
        wherry_routine_pagezero_avx512(page, n);
}
