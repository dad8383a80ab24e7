/* The public functions. Each goes through one hidden pointer that the constructor sets from the plan.
 *
 * A call may come before this object's constructors, or before its relocations, have run; the pointers are plain
 * zero-initialised data, so such a call finds null and takes the baseline, which runs on every x86-64.
 */
#include "dispatch/dispatch.h"

#include <stdatomic.h>
#include <stdint.h>

#include "cpu/caches.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

void *wherry_routine_move_sse2(void *, const void *, size_t);
void *wherry_routine_move_avx2(void *, const void *, size_t);
void *wherry_routine_move_avx512(void *, const void *, size_t);
void *wherry_routine_set_sse2(void *, int, size_t);
void *wherry_routine_set_avx2(void *, int, size_t);
void *wherry_routine_set_avx512(void *, int, size_t);

/* Never streaming is right for every size, so that is what holds before the constructor. */
struct wherry_thresholds wherry_thresholds = {.stream_from = SIZE_MAX};

static _Atomic(wherry_copy_fn *) move_in_force;
static _Atomic(wherry_set_fn *) set_in_force;
static atomic_int isa_in_force; /* enum wherry_isa; 0 is the baseline */

static inline wherry_copy_fn *current_move(void)
{
    wherry_copy_fn *move = atomic_load_explicit(&move_in_force, memory_order_relaxed);
    return __builtin_expect(move != NULL, 1) ? move : wherry_routine_move_sse2;
}

static inline wherry_set_fn *current_set(void)
{
    wherry_set_fn *set = atomic_load_explicit(&set_in_force, memory_order_relaxed);
    return __builtin_expect(set != NULL, 1) ? set : wherry_routine_set_sse2;
}

static void use(enum wherry_isa isa)
{
    wherry_copy_fn *move = wherry_routine_move_sse2;
    wherry_set_fn *set = wherry_routine_set_sse2;
    if (isa == WHERRY_ISA_AVX512) {
        move = wherry_routine_move_avx512;
        set = wherry_routine_set_avx512;
    } else if (isa == WHERRY_ISA_AVX2) {
        move = wherry_routine_move_avx2;
        set = wherry_routine_set_avx2;
    }
    atomic_store_explicit(&isa_in_force, (int)isa, memory_order_relaxed);
    atomic_store_explicit(&move_in_force, move, memory_order_relaxed);
    atomic_store_explicit(&set_in_force, set, memory_order_relaxed);
}

__attribute__((constructor)) static void choose(void)
{
    struct wherry_cpu cpu;
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    wherry_thresholds = wherry_plan_thresholds(wherry_cpu_last_level(&native, &cpu));
    use(wherry_plan_isa(&cpu));
}

enum wherry_isa wherry_dispatch_isa(void)
{
    return (enum wherry_isa)atomic_load_explicit(&isa_in_force, memory_order_relaxed);
}

bool wherry_dispatch_force(enum wherry_isa isa)
{
    static const enum wherry_needs needs[WHERRY_ISA_COUNT] = {
        WHERRY_NEEDS_BASE,
        WHERRY_NEEDS_AVX2,
        WHERRY_NEEDS_AVX512,
    };
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    if (!wherry_plan_can_run(&cpu, needs[isa]))
        return false;
    use(isa);
    return true;
}

PUBLIC void *wherry_memcpy(void *dst, const void *src, size_t n) { return current_move()(dst, src, n); }

PUBLIC void *wherry_memmove(void *dst, const void *src, size_t n) { return current_move()(dst, src, n); }

PUBLIC void *wherry_mempcpy(void *dst, const void *src, size_t n) { return (char *)current_move()(dst, src, n) + n; }

PUBLIC void *wherry_memset(void *dst, int c, size_t n) { return current_set()(dst, c, n); }

PUBLIC void wherry_bcopy(const void *src, void *dst, size_t n) { current_move()(dst, src, n); }

PUBLIC void wherry_bzero(void *dst, size_t n) { current_set()(dst, 0, n); }

PUBLIC const char *wherry_version(void) { return WHERRY_VERSION; }

PUBLIC const char *wherry_isa(void) { return wherry_isa_names[wherry_dispatch_isa()]; }
