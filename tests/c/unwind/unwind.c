/* Steps through a call of each routine and public function that this CPU can run, and unwinds the stack from every
 * instruction, as a debugger, a profiler or an exception from a signal handler does: main must be reached, with the
 * caller's registers as they were.
 *   unwind            prints what was stepped; ends with 1 at the first instruction that leads astray
 *   unwind --wrong N  the same with one of three functions whose unwind information is wrong
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include "cpu/cpu.h"
#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "dispatch/watch.h"
#include "plan/plan.h"
#include "routines/registry.h"
#include "routines/thresholds.h"
#include "wherry.h"

enum { MOST_STEPS = 1000, MOST_REPEATED = 200, PLACES = 1 << 16, ROOM = 64 << 10, PAGE = 4096, TRAP_FLAG = 0x100 };

typedef void *any_fn(uintptr_t, uintptr_t, uintptr_t);
#define ANY(fn) ((any_fn *)(void (*)(void))(fn))

void *unwind_call(any_fn *fn, uintptr_t a, uintptr_t b, uintptr_t c);
extern const char unwind_returned[], unwind_call_end[];
any_fn unwind_wrong_frame, unwind_wrong_register, unwind_wrong_none;
uintptr_t unwind_stack;  /* the caller's stack pointer at the call */
uintptr_t unwind_fourth; /* argument */
int main(int count, char **words);

static unsigned long steps_left, repeated_left;
static uintptr_t lost_at;
static const char *lost_how;

struct walk {
    bool caller, main;
    const char *wrong;
};

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *argument)
{
    static const unsigned char kept[] = {3, 6, 12, 13, 14, 15}; /* rbx, rbp, r12 ... r15 by their DWARF numbers */
    struct walk *walk = argument;
    const uintptr_t ip = _Unwind_GetIP(context);
    if (ip == (uintptr_t)unwind_returned) {
        walk->caller = true;
        if (_Unwind_GetCFA(context) != unwind_stack)
            walk->wrong = "another stack pointer";
        for (size_t i = 0; i < sizeof kept; i++)
            if (_Unwind_GetGR(context, kept[i]) != (0x1111111111111100 | kept[i]))
                walk->wrong = "another value in a register that a call preserves";
    }
    walk->main = _Unwind_FindEnclosingFunction((void *)(ip - 1)) == (void *)main;
    return walk->main ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Which instructions have been met, and by which call last: of a loop that goes on the unwinder finds the same,
 * whatever turn it is, and a call that has met nothing else for MOST_REPEATED instructions is stepped no further. */
static struct {
    uintptr_t ip;
    unsigned long call;
} met[PLACES];
static unsigned long calls, instructions;

/* Is it the first time in this call? */
static bool is_new(uintptr_t ip)
{
    size_t at = ip % PLACES;
    while (met[at].ip && met[at].ip != ip)
        at = (at + 1) % PLACES;
    instructions += !met[at].ip;
    const bool new = met[at].call != calls;
    met[at].ip = ip;
    met[at].call = calls;
    return new;
}

static void on_step(int signo, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    const uintptr_t ip = (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
    (void)signo, (void)info;
    if (ip >= (uintptr_t)unwind_call && ip < (uintptr_t)unwind_call_end)
        return;
    struct walk walk = {.wrong = NULL};
    _Unwind_Backtrace(visit, &walk);
    if (!walk.caller)
        walk.wrong = "no caller";
    else if (!walk.main)
        walk.wrong = "no main";
    if (walk.wrong && !lost_how) {
        lost_how = walk.wrong;
        lost_at = ip;
    }
    if (is_new(ip))
        repeated_left = MOST_REPEATED;
    if (lost_how || --steps_left == 0 || --repeated_left == 0)
        user->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void step(const char *name, any_fn *fn, uintptr_t a, uintptr_t b, uintptr_t c)
{
    steps_left = MOST_STEPS;
    repeated_left = MOST_REPEATED;
    calls++;
    unwind_call(fn, a, b, c);
    if (!lost_how)
        return;
    printf("%s: from the instruction at +0x%lx the unwinder finds %s\n", name, (unsigned long)(lost_at - (uintptr_t)fn),
           lost_how);
    exit(1);
}

static unsigned char *room;
static const unsigned short sizes[] = {0,   1,    2,    5,    15,   17,   33,  64,  97,  130, 200, 300, 513,
                                       640, 1024, 1500, 2050, 4100, 9000, 340, 400, 460, 730, 850, 980};

static void step_sizes(const char *name, any_fn *fn, bool set, bool overlapping, bool source_first, size_t quantum)
{
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uintptr_t n = sizes[k] / quantum * quantum;
        const uintptr_t dst = (uintptr_t)room + ROOM / 2 + k % 7, src = (uintptr_t)room + 64 + k * 5 % 64;
        const uintptr_t near[] = {src, dst + n / 3 + 1, dst - n / 2 - 1};
        for (int way = 0; way < (overlapping && n > 64 ? 3 : 1); way++) {
            if (set)
                step(name, fn, dst, 0, n);
            else if (source_first)
                step(name, fn, near[way], dst, n);
            else
                step(name, fn, dst, near[way], n);
        }
    }
}

/* What is called in another order. */
static void step_other(const struct wherry_routine *routine)
{
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uintptr_t n = sizes[k] / routine->quantum * routine->quantum;
        const uintptr_t dst = (uintptr_t)room + ROOM / 2 + k % 7, src = (uintptr_t)room + 64 + k * 5 % 64;
        if (routine->op == WHERRY_OP_copy_csum)
            step(routine->name, ANY(routine->any), dst, src, n);
        else if (routine->op == WHERRY_OP_crc32c)
            step(routine->name, ANY(routine->any), 0, src, n);
        else /* csum, iszero, pagezero */
            step(routine->name, ANY(routine->any), src, n, 0);
    }
}

/* The destination ends in the middle of the bytes, before them, and the source does: with no place to report it. */
static void step_faults(void)
{
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uintptr_t n = sizes[k], end = (uintptr_t)room + ROOM, begin = (uintptr_t)room + k % 7;
        step("wherry_copy_nofault", ANY(wherry_copy_nofault), end - n / 2, begin, n);
        step("wherry_copy_nofault", ANY(wherry_copy_nofault), end, begin, n);
        step("wherry_copy_nofault", ANY(wherry_copy_nofault), begin, end - n / 2, n);
        step("wherry_set_nofault", ANY(wherry_set_nofault), end - n / 2, 0, n);
    }
}

static void step_sums(void)
{
    static uint32_t sum;
    unwind_fourth = (uintptr_t)&sum;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uintptr_t n = sizes[k], end = (uintptr_t)room + ROOM, begin = (uintptr_t)room + k % 7;
        step("wherry_csum_copy_nofault", ANY(wherry_csum_copy_nofault), end - n, begin, n);
        step("wherry_csum_copy_nofault", ANY(wherry_csum_copy_nofault), end - n / 2, begin, n);
        step("wherry_csum_copy_nofault", ANY(wherry_csum_copy_nofault), begin, end - n / 2, n);
    }
    unwind_fourth = 0;
}

/* What asks whether its destination was written before, and whether it is near: past the caches, by string
 * instructions, and neither. */
static void step_large(void)
{
    enum { FROM = 8192, N = 9000, NONE = -1 };
    const struct wherry_thresholds kept = wherry_thresholds;
    const uintptr_t dst = (uintptr_t)room + ROOM / 2 + 1, src = (uintptr_t)room + 64;
    for (int way = 0; way < 3; way++) {
        const size_t stream = way < 2 ? FROM : (size_t)NONE, recent = way ? 0 : 2 * N,
                     rep = way == 2 ? FROM : (size_t)NONE;
        wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
            .copy_rep_from = rep,
            .copy_rep_to = (size_t)NONE,
            .copy_stream_from = stream,
            .set_rep_from = rep,
            .set_rep_to = (size_t)NONE,
            .set_stream_from = stream,
            .copy_ymm_from = (size_t)NONE,
            .copy_stream_recent_from = recent,
            .set_stream_recent_from = recent,
        });
        step("wherry_copy_nofault, large", ANY(wherry_copy_nofault), dst, src, N);
        step("wherry_copy_nofault, large, overlapping", ANY(wherry_copy_nofault), src + 300, src, N);
        step("wherry_set_nofault, large", ANY(wherry_set_nofault), dst, 0, N);
    }
    wherry_thresholds = kept;
}

/* A call that is recorded: the watch is called in the middle of it. */
static void step_looks(void)
{
    static const unsigned short recorded[] = {0, 5, 300, 2050};
    wherry_watch_use(&wherry_watch_copies, HELD_LOOKING);
    wherry_watch_use(&wherry_watch_sets, HELD_LOOKING);
    for (size_t k = 0; k < sizeof recorded / sizeof recorded[0]; k++) {
        const uintptr_t n = recorded[k], dst = (uintptr_t)room + ROOM / 2, src = (uintptr_t)room + 64;
        step("wherry_memcpy, recorded", ANY(wherry_memcpy), dst, src, n);
        step("wherry_mempcpy, recorded", ANY(wherry_mempcpy), dst, src, n);
        step("wherry_memset, recorded", ANY(wherry_memset), dst, 0, n);
        step("wherry_bzero, recorded", ANY(wherry_bzero), dst, n, 0);
    }
    wherry_watch_use(&wherry_watch_copies, WATCHING);
    wherry_watch_use(&wherry_watch_sets, WATCHING);
}

static void bzero_as_set(void) /* wherry_bzero has no value to set, and its size comes second */
{
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        step("wherry_bzero", ANY(wherry_bzero), (uintptr_t)room + 64 + k, sizes[k], 0);
}

int main(int count, char **words)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mprotect(room + ROOM, PAGE, PROT_NONE) != 0 || wherry_nofault_init() != 0)
        return 3;
    memset(room, 0, ROOM);
    if (count == 3 && strcmp(words[1], "--wrong") == 0) {
        any_fn *const wrong[] = {unwind_wrong_frame, unwind_wrong_register, unwind_wrong_none};
        step("wrong", wrong[atoi(words[2]) % 3], (uintptr_t)room, 0, 0);
        return 0;
    }
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    unsigned functions = 0;
    for (size_t i = 0; i < wherry_routine_count; i++) {
        const struct wherry_routine *routine = &wherry_routines[i];
        if (!wherry_plan_can_run(&cpu, routine->needs))
            continue;
        if (routine->op == WHERRY_OP_copy_crc32c) /* four arguments; the code is that of crc32c */
            continue;
        if (routine->op > WHERRY_OP_zero)
            step_other(routine);
        else
            step_sizes(routine->name, ANY(routine->copy), routine->op >= WHERRY_OP_set, routine->op == WHERRY_OP_move,
                       false, routine->quantum);
        functions++;
    }
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        step_sizes("wherry_memcpy", ANY(wherry_memcpy), false, true, false, 1);
        step_sizes("wherry_memmove", ANY(wherry_memmove), false, true, false, 1);
        step_sizes("wherry_mempcpy", ANY(wherry_mempcpy), false, true, false, 1);
        step_sizes("wherry_memset", ANY(wherry_memset), true, false, false, 1);
        step_sizes("wherry_bcopy", ANY(wherry_bcopy), false, true, true, 1);
        bzero_as_set();
        functions += 6;
        if (isa == WHERRY_ISA_AVX512)
            step_looks();
        wherry_nofault_force((enum wherry_isa)isa);
        step_sizes("wherry_copy_nofault", ANY(wherry_copy_nofault), false, true, false, 1);
        step_sizes("wherry_set_nofault", ANY(wherry_set_nofault), true, false, false, 1);
        step_faults();
        step_sums();
        step_large();
        functions += 3;
    }
    printf("functions %u instructions %lu\n", functions, instructions);
    return 0;
}
