/* The public copies and sets past the caches. Each call reads a hidden byte and jumps: as in public.S, what is read
 * before any constructor has run is the baseline. */
#include <stdatomic.h>

#include "dispatch/choice.h"
#include "dispatch/dispatch.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

wherry_copy_fn wherry_routine_copy_stream_sse2, wherry_routine_copy_stream_avx2, wherry_routine_copy_stream_avx512;
wherry_set_fn wherry_routine_set_stream_sse2, wherry_routine_set_stream_avx2, wherry_routine_set_stream_avx512;

/* All AVX-512 choices have one routine. */
#define BY_TIER(routine, ...)                                                                                          \
    const signed char chosen = atomic_load_explicit(&wherry_choice, memory_order_relaxed);                             \
    if (chosen == WHERRY_CHOICE_AVX2)                                                                                  \
        return wherry_routine_##routine##_avx2(__VA_ARGS__);                                                           \
    if (chosen == WHERRY_CHOICE_SSE2)                                                                                  \
        return wherry_routine_##routine##_sse2(__VA_ARGS__);                                                           \
    return wherry_routine_##routine##_avx512(__VA_ARGS__)

PUBLIC void *wherry_memcpy_stream(void *dst, const void *src, size_t n) { BY_TIER(copy_stream, dst, src, n); }

PUBLIC void *wherry_memset_stream(void *dst, int c, size_t n) { BY_TIER(set_stream, dst, c, n); }
