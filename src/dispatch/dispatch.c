/* What the public functions of public.S go by, and what sets it.
 *
 * A call may come before this object's constructors, or before its relocations, have run; what is read then is plain
 * data whose initial value is right: the baseline, which runs on every x86-64, and no threshold ever reached.
 */
#include "dispatch/dispatch.h"
#include "dispatch/choice.h"

#include <stdatomic.h>
#include <stdint.h>

#include "cpu/caches.h"
#include "dispatch/load.h"
#include "dispatch/watch.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

/* Never streaming is right for every size, so that is what holds before the constructor. */
struct wherry_thresholds wherry_thresholds __attribute__((aligned(64))) = {
    .copy_rep_from = SIZE_MAX,
    .copy_stream_from = SIZE_MAX,
    .set_rep_from = SIZE_MAX,
    .set_stream_from = SIZE_MAX,
    .copy_ymm_from = SIZE_MAX,
    .copy_source_lines_to = SIZE_MAX,
    .copy_parts_from = SIZE_MAX,
    .set_whole_from = SIZE_MAX,
};

uint32_t wherry_recent_copies[RECENT_ROWS << RECENT_COPY_ROW_LOG >> 2]
    __attribute__((aligned(1 << RECENT_COPY_ROW_LOG)));
uintptr_t wherry_written_zeroes[WRITTEN_SEEN];
uint32_t wherry_recent_sets[RECENT_ROWS << RECENT_SET_ROW_LOG >> 2] __attribute__((aligned(1 << RECENT_SET_ROW_LOG)));
struct wherry_touched wherry_touched __attribute__((aligned(64)));

_Atomic(uint64_t) wherry_copy_choice, wherry_set_choice;
_Atomic(signed char) wherry_choice, wherry_csum_choice, wherry_copy_csum_choice, wherry_crc_choice;

void (*_Atomic wherry_dispatch_follower)(void);

static _Atomic(unsigned char) isa_in_force;

static void store(_Atomic(signed char) *choice, int value)
{
    atomic_store_explicit(choice, (signed char)value, memory_order_relaxed);
}

static void watch_both(enum wherry_watching watching)
{
    wherry_watch_use(&wherry_watch_copies, watching);
    wherry_watch_use(&wherry_watch_sets, watching);
}

static void use_tier(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    static const enum wherry_choice choices[WHERRY_ISA_COUNT] = {
        [WHERRY_ISA_SSE2] = WHERRY_CHOICE_SSE2,
        [WHERRY_ISA_AVX2] = WHERRY_CHOICE_AVX2,
        [WHERRY_ISA_AVX512] = WHERRY_CHOICE_AVX512,
        [WHERRY_ISA_AVX512_LADDER] = WHERRY_CHOICE_AVX512_LADDER,
        [WHERRY_ISA_AVX512_TOGETHER] = WHERRY_CHOICE_AVX512,
    };
    atomic_store_explicit(&isa_in_force, (unsigned char)isa, memory_order_relaxed);
    store(&wherry_choice, choices[isa]);
    if (isa == WHERRY_ISA_AVX512 || isa == WHERRY_ISA_AVX512_TOGETHER) {
        watch_both(isa == WHERRY_ISA_AVX512 ? WATCHING : HELD_TOGETHER);
    } else {
        atomic_store_explicit(&wherry_copy_choice, wherry_copy_word(choices[isa]), memory_order_relaxed);
        atomic_store_explicit(&wherry_set_choice, wherry_set_word(choices[isa]), memory_order_relaxed);
    }
    store(&wherry_csum_choice, wherry_plan_csum(cpu, isa));
    store(&wherry_copy_csum_choice, wherry_plan_copy_csum(cpu, isa));
    store(&wherry_crc_choice, wherry_plan_crc(cpu, isa));
}

/* The five instructions are Valgrind's sign for a question; elsewhere they leave everything as it is. */
static bool under_valgrind(void)
{
    const uint64_t question[6] = {0x1001};
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(question), "m"(question)
                     : "cc");
    return answer != 0;
}

void wherry_dispatch_use(const struct wherry_cpu *cpu, enum wherry_isa isa, const struct wherry_thresholds *thresholds)
{
    struct wherry_thresholds complete = *thresholds;
    /* Large calls read of their destination what may never have been set (written.h), and Memcheck would say so. They
     * do not where there is but a loop. */
    if (under_valgrind())
        complete.copy_rep_from = complete.copy_stream_from = complete.set_rep_from = complete.set_stream_from =
            SIZE_MAX;
    complete = wherry_thresholds_complete(complete);
#define STORE(field) __atomic_store_n(&wherry_thresholds.field, complete.field, __ATOMIC_RELAXED);
    WHERRY_THRESHOLDS(STORE)
    WHERRY_THRESHOLDS_MADE(STORE)
#undef STORE
    use_tier(cpu, isa);
    atomic_thread_fence(memory_order_seq_cst); /* a follower set meanwhile finds the tier, or is found here */
    void (*const follower)(void) = atomic_load(&wherry_dispatch_follower);
    if (follower)
        follower();
}

/* Before those that name no priority: in a static program they come in the order in which it is linked, and the
 * program's own would else find the baseline. */
__attribute__((constructor(101))) static void choose(void)
{
    struct wherry_cpu cpu;
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    wherry_plan_begin(&cpu, wherry_cpu_last_level(&native, &cpu));
}

enum wherry_isa wherry_dispatch_isa(void)
{
    return (enum wherry_isa)atomic_load_explicit(&isa_in_force, memory_order_relaxed);
}

bool wherry_dispatch_force(enum wherry_isa isa)
{
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    if (!wherry_plan_can_run(&cpu, wherry_plan_needs(isa)))
        return false;
    use_tier(&cpu, isa);
    return true;
}

PUBLIC const char *wherry_version(void) { return WHERRY_VERSION; }

PUBLIC const char *wherry_isa(void) { return wherry_isa_names[wherry_dispatch_isa()]; }
