/* One call of a target: faults and hangs become outcomes, and what the ABI promises is looked at each time. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "cpu/cpu.h"
#include "flags.h"
#include "plan/plan.h"
#include "verify.h"

__thread void *verify_frame;
__thread step_hook *call_on_step;
__thread fault_hook *call_on_fault;
__thread void *call_hook_context;
__attribute__((visibility("hidden"))) bool verify_has_avx512; /* of the trampoline */

static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t inside;
static __thread bool own_thread;
static __thread volatile int caught;
static __thread volatile uintptr_t caught_address;
static __thread volatile bool caught_writing;
static __thread volatile bool caught_jumping;
static __thread volatile bool caught_protection;
static __thread volatile bool caught_astray;
static __thread volatile uintptr_t caught_rip;
static __thread volatile uint64_t caught_flags;
static __thread uintptr_t stepped; /* the instruction that the next trap comes after, or 0 */
static struct unit *running;

enum {
    FETCHED = 0x10,          /* of a page fault: by the instruction itself, which lies there */
    GENERAL_PROTECTION = 13, /* the kernel knows no address of it, and gives 0 */
    TRAP_FLAG = 0x100,
    DEEPEST = 8 << 20, /* that any stack goes on below the call */
    STACK_BYTES = 256 * 1024,
    NO_ERRNO = 0x5ca1ab1e, /* what no call sets it to */
    TICK_US = 200000
};

/* Ticks without the end of a call: 1.2 s, and as much more as the bytes take at 50 MB/s, page faults included. */
static uint64_t patience(void) { return 6 + running->pulse->now.n / 10000000; }

/* A routine may keep the flags and take them back, string instructions backward between. What it keeps are its own:
 * with our trap flag among them, popf would set it where nobody steps any more. */
static void hide_trap_flag(uintptr_t rsp)
{
    enum { OPERAND_SIZE = 0x66, PUSHF = 0x9c };
    const uint8_t *at = (const uint8_t *)stepped; /* it has been executed, so it can be read */
    while (at && (*at == OPERAND_SIZE || (*at & 0xf0) == 0x40))
        at++;
    if (at && *at == PUSHF)
        ((uint8_t *)rsp)[1] &= (uint8_t)~(TRAP_FLAG >> 8);
}

/* Some take the stack pointer for the cursor of a copy by pop; a signal then overwrites what it points to. */
static bool astray(uintptr_t rsp) { return (uintptr_t)verify_frame - rsp > DEEPEST; }

/* After each instruction, until the hook has seen enough. */
static void on_step(greg_t *regs)
{
    /* This handler has a stack of its own; one on the routine's would lie over what is below the red zone. */
    enum { BELOW = 1024, RED_ZONE = 128 };
    const uintptr_t rip = (uintptr_t)regs[REG_RIP], rsp = (uintptr_t)regs[REG_RSP];
    hide_trap_flag(rsp);
    plain_fill((uint8_t *)rsp - RED_ZONE - BELOW, 0xd5, BELOW);
    stepped = rip != (uintptr_t)verify_returned && call_on_step(call_hook_context, rip) ? rip : 0;
    if (stepped)
        regs[REG_EFL] |= TRAP_FLAG; /* popf has cleared it */
    else
        regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* In a thread that the routine has started there is no call of ours to go back to. */
static void on_signal_elsewhere(int signo, const siginfo_t *info, greg_t *regs)
{
    if (signo == SIGPROF)
        return;
    if (signo == SIGTRAP) { /* it began with the flags of the thread that is stepped */
        regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    running->pulse->foreign_address = (uintptr_t)info->si_addr;
    running->pulse->foreign = signo;
    _Exit(4);
}

static void on_signal(int signo, siginfo_t *info, void *opaque)
{
    (void)flags_taken();
    ucontext_t *context = opaque;
    greg_t *regs = context->uc_mcontext.gregs;
    if (!own_thread) {
        on_signal_elsewhere(signo, info, regs);
        return;
    }
    if (signo == SIGPROF) {
        /* A tick of CPU time: when no call has ended since the last one but one, this call does not end. */
        static uint64_t last = UINT64_MAX;
        static int same;
        uint64_t beats = running->pulse->beats;
        same = beats == last ? same + 1 : 0;
        last = beats;
        if (!inside)
            same = 0;
        if ((uint64_t)same < patience() || call_on_step)
            return;
        same = 0;
    }
    const bool trapped = signo == SIGTRAP && inside && call_on_step;
    const bool strayed = trapped && regs[REG_RIP] != (greg_t)verify_returned && astray((uintptr_t)regs[REG_RSP]);
    if (trapped && !strayed) {
        on_step(regs);
        return;
    }
    bool step = false;
    if (signo == SIGSEGV && inside && call_on_fault &&
        call_on_fault(call_hook_context, (uintptr_t)info->si_addr, regs[REG_ERR] & 2, &step)) {
        if (step)
            regs[REG_EFL] |= TRAP_FLAG;
        return;
    }
    if (!inside)
        _Exit(4); /* the verifier itself fell over memory that a routine damaged */
    caught = signo;
    caught_address = (uintptr_t)info->si_addr;
    caught_writing = signo == SIGSEGV && (regs[REG_ERR] & 2);
    caught_jumping = signo == SIGSEGV && (regs[REG_ERR] & FETCHED);
    caught_protection = signo == SIGSEGV && info->si_code == SI_KERNEL && regs[REG_TRAPNO] == GENERAL_PROTECTION;
    caught_astray = strayed;
    caught_rip = (uintptr_t)regs[REG_RIP];
    caught_flags = (uint64_t)regs[REG_EFL];
    inside = 0; /* the frame it goes back to may be overwritten, and a fault there must not come back here for ever */
    siglongjmp(escape, 1);
}

void call_init_thread(void)
{
    own_thread = true;
    stack_t stack = {.ss_sp = map_or_die(STACK_BYTES, 3), .ss_size = STACK_BYTES};
    sigaltstack(&stack, NULL);
}

enum { MXCSR_DEFAULT = 0x1f80, MXCSR_CONTROL = 0xffc0, FCW_DEFAULT = 0x37f };

void call_init(struct unit *unit)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGPROF};
    running = unit;
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    verify_has_avx512 = wherry_plan_can_run(&cpu, WHERRY_NEEDS_AVX512);
    call_init_thread();
    /* A library may have changed these while it was loaded, as GCC has one do that it links with -ffast-math, and so
     * may our own start: no call did that. Threads get them from here. */
    const uint32_t mxcsr = MXCSR_DEFAULT;
    const uint16_t fcw = FCW_DEFAULT;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(mxcsr), "m"(fcw));
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
    const struct itimerval tick = {.it_interval = {.tv_usec = TICK_US}, .it_value = {.tv_usec = TICK_US}};
    setitimer(ITIMER_PROF, &tick, NULL);
}

bool any_target(const struct target *target)
{
    (void)target;
    return true;
}

bool is_set(const struct target *target) { return op_sets(target->op); }

bool only_reads(const struct target *target) { return op_reads(target->op); }

bool writes(const struct target *target) { return !op_reads(target->op); }

bool past_caches(const struct unit *unit) { return (unit->few || unit->level == LEVEL_FULL) && !unit->target->routine; }

bool may_overlap(const struct unit *unit, const struct vcase *one)
{
    return unit->target->op == WHERRY_OP_move && one->dist != 0;
}

uint64_t reach_of(const struct vcase *one) { return (uint64_t)(one->dist < 0 ? -one->dist : one->dist); }

bool sums_as_well(const struct target *target) { return target->abi == ABI_CSUM_NOFAULT; }

bool takes_value(const struct target *target)
{
    return target->op == WHERRY_OP_set || op_sums(target->op) || sums_as_well(target);
}

int value_of(const struct target *target, int c) { return takes_value(target) ? c : 0; }

/* By itself, so that nothing of the caller's lives across the jump. */
static __attribute__((noinline)) void guarded(void (*fn)(void), uint64_t a, uint64_t b, uint64_t c,
                                              struct outcome *seen)
{
    stepped = 0; /* the last call may have crashed while it was stepped */
    inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (sigsetjmp(escape, 0) == 0) {
        seen->returned = verify_trampoline(fn, a, b, c, &seen->regs);
    } else {
        (void)flags_taken();
        __asm__ volatile("fninit");
        seen->hung = caught == SIGPROF;
        seen->faulted = true;
        seen->signo = caught;
        seen->address = caught_address;
        seen->writing = caught_writing;
        seen->jumping = caught_jumping;
        seen->protection = caught_protection;
        seen->astray = caught_astray;
        seen->rip = caught_rip;
        seen->regs.flags = caught_flags;
    }
    atomic_signal_fence(memory_order_seq_cst);
    inside = 0;
}

struct outcome call_raw(struct unit *unit, const struct vcase *one, void *dst, const void *src, size_t n)
{
    const struct target *t = unit->target;
    struct outcome seen = {0};
    const struct target_arguments with = target_arguments(t->abi, dst, src, n, (uint32_t)value_of(t, one->c));
    seen.regs.trap = call_on_step != NULL && call_on_fault == NULL;
    seen.regs.fourth = with.word[3];
    target_ways(t, dst, n);
    errno = NO_ERRNO;
    const bool due = unit->pulse->fault_due;
    unit->pulse->fault_due = due || call_on_fault; /* by pages that are closed to see who touches them */
    guarded(t->fn, with.word[0], with.word[1], with.word[2], &seen);
    unit->pulse->fault_due = due;
    seen.error = errno;
    unit->ordinal++;
    unit->pulse->beats++;
    const uint64_t undone = t->kind == TARGET_NOFAULT || sums_as_well(t) ? (uintptr_t)seen.returned : 0;
    if (!seen.faulted && undone <= n && n - undone > unit->pulse->longest)
        unit->pulse->longest = n - undone;
    return seen;
}

static const char *signal_name(int signo)
{
    switch (signo) {
    case SIGSEGV:
        return "a segmentation fault";
    case SIGBUS:
        return "a bus error";
    case SIGILL:
        return "an illegal instruction";
    case SIGFPE:
        return "an arithmetic exception";
    case SIGABRT:
        return "abort()";
    default:
        return "a trap";
    }
}

/* "1 byte past the end of the source" or false when the address is near neither buffer. */
static bool near(char *text, size_t room, uintptr_t address, uintptr_t start, size_t n, const char *name)
{
    const uintptr_t reach = 16 * PAGE;
    if (address >= start + n && address - (start + n) < reach)
        snprintf(text, room, "%" PRIuPTR " B past the end of the %s", address - (start + n) + 1, name);
    else if (address < start && start - address <= reach)
        snprintf(text, room, "%" PRIuPTR " B before the %s", start - address, name);
    else if (address >= start && address - start < n)
        snprintf(text, room, "byte %" PRIuPTR " of the %s", address - start, name);
    else
        return false;
    return true;
}

/* ", 27 bytes into the function", or nothing where that is not near its beginning. */
static void tell_place(char *text, size_t room, const struct unit *unit, uintptr_t rip)
{
    const uintptr_t into = rip - (uintptr_t)unit->target->fn;
    *text = '\0';
    if (into < PAGE)
        snprintf(text, room, ", %" PRIuPTR " B into the function", into);
}

static void fail_fault(struct unit *unit, const struct vcase *one, const struct outcome *seen, void *dst,
                       const void *src, size_t n)
{
    char where[160], place[48];
    tell_place(place, sizeof place, unit, seen->rip);
    if (seen->hung) {
        fail(unit, one, dst, src, "hang", "did not return within %.1f s of CPU time; stopped",
             (double)patience() * TICK_US / 1e6);
        unit->failure.hung = true;
        return;
    }
    if (seen->astray) {
        fail(unit, one, dst, src, "rsp",
             "used the stack pointer for something else than the stack%s: a signal overwrites what lies below it",
             place);
        return;
    }
    if (seen->protection) {
        fail(unit, one, dst, src, "crash",
             "crashed with a general protection fault%s: an aligned access to an address that is not, an address that "
             "cannot exist, or an instruction that programs may not use",
             place);
        return;
    }
    if (seen->signo == SIGSEGV) {
        uintptr_t d = (uintptr_t)dst, s = (uintptr_t)src, a = seen->address;
        bool source = src && !seen->writing && near(where, sizeof where, a, s, n, "source");
        if (!seen->jumping && (source || near(where, sizeof where, a, d, n, "destination") ||
                               (src && near(where, sizeof where, a, s, n, "source")))) {
            fail(unit, one, dst, src, seen->writing ? "write fault" : "read fault", "%s %s (address 0x%" PRIxPTR ")",
                 seen->writing ? "wrote" : "read", where, a);
            return;
        }
        fail(unit, one, dst, src, "crash", "crashed with a segmentation fault, %s address 0x%" PRIxPTR,
             seen->jumping   ? "jumping to"
             : seen->writing ? "writing to"
                             : "reading from",
             a);
        return;
    }
    const bool checked = seen->signo == SIGBUS && seen->regs.flags & ALIGNMENT_CHECK;
    fail(unit, one, dst, src, checked ? "alignment-check flag" : "crash", "crashed with %s (signal %d)%s",
         signal_name(seen->signo), seen->signo, checked ? ": it had set the alignment-check flag" : "");
}

bool call_judge(struct unit *unit, const struct vcase *one, const struct outcome *seen, void *dst, const void *src,
                size_t n)
{
    static const char *const names[6] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
    if (seen->faulted) {
        fail_fault(unit, one, seen, dst, src, n);
        return false;
    }
    const struct verify_regs *r = &seen->regs;
    for (unsigned i = 0; i < 6; i++)
        if (r->saved[i] != 0xb0b0b0b0b0b0b0b1u + i) {
            fail(unit, one, dst, src, names[i],
                 "register %s was not preserved: 0x%016" PRIx64 " came back as 0x%016" PRIx64, names[i],
                 (uint64_t)(0xb0b0b0b0b0b0b0b1u + i), r->saved[i]);
            return false;
        }
    const char *state = r->rsp_moved                 ? "rsp"
                        : r->flags & DIRECTION_FLAG  ? "direction flag"
                        : r->flags & ALIGNMENT_CHECK ? "alignment-check flag"
                                                     : NULL;
    if (state) {
        fail(unit, one, dst, src, state, r->rsp_moved ? "stack pointer %s came back moved" : "left the %s set", state);
        return false;
    }
    if (r->canary[0] != 0x5ca1ab1e0ddba11au || r->canary[1] != 0x5ca1ab1e0ddba11au) {
        fail(unit, one, dst, src, "stack", "wrote over its caller's stack");
        return false;
    }
    if (seen->error != NO_ERRNO) {
        fail(unit, one, dst, src, "errno", "changed errno, to %d", seen->error);
        return false;
    }
    uintptr_t expected = (uintptr_t)dst + (unit->target->abi == ABI_MEMPCPY ? n : 0);
    if (!op_result_right(unit->target->op, (uintptr_t)seen->returned, (uint32_t)one->c, src, n)) {
        char text[160];
        op_result_text(text, sizeof text, unit->target->op, (uintptr_t)seen->returned, (uint32_t)one->c, src, n);
        fail(unit, one, dst, src, "result", "%s", text);
        return false;
    }
    bool returns =
        unit->target->abi == ABI_MEMCPY || unit->target->abi == ABI_MEMPCPY || unit->target->abi == ABI_MEMSET;
    if (returns && (uintptr_t)seen->returned != expected) {
        fail(unit, one, dst, src, "return value", "returned %p, expected %p (%s)", seen->returned, (void *)expected,
             unit->target->abi == ABI_MEMPCPY ? "destination + size" : "the destination");
        return false;
    }
    if (unit->target->kind == TARGET_NOFAULT && (uintptr_t)seen->returned != unit->left) {
        fail(unit, one, dst, src, "count", "returned %" PRIuPTR " bytes not done, expected %" PRIu64,
             (uintptr_t)seen->returned, unit->left);
        return false;
    }
    if (sums_as_well(unit->target)) { /* of the destination where it has overwritten the source */
        const size_t whole = n - (size_t)seen->returned;
        const uintptr_t ahead = (uintptr_t)dst - (uintptr_t)src;
        const uint8_t *summed = ahead < n || -ahead < n ? dst : src;
        if (!op_result_right(WHERRY_OP_copy_csum, target_sum, (uint32_t)one->c, summed, whole)) {
            char text[160];
            op_result_text(text, sizeof text, WHERRY_OP_copy_csum, target_sum, (uint32_t)one->c, summed, whole);
            fail(unit, one, dst, src, "sum", "of the %zu bytes that it copied it %s", whole, text);
            return false;
        }
    }
    /* Exception flags are sticky and nobody's; the control bits belong to the caller. The family that sets them to
     * something unusual looks at them by itself. */
    if (strcmp(unit->family->name, "state") == 0)
        return true;
    if ((r->mxcsr & MXCSR_CONTROL) != MXCSR_DEFAULT) {
        fail(unit, one, dst, src, "MXCSR", "changed MXCSR: 0x%04x came back as 0x%04x", MXCSR_DEFAULT, r->mxcsr);
        return false;
    }
    if (r->fcw != FCW_DEFAULT) {
        fail(unit, one, dst, src, "x87 control word", "changed the x87 control word: 0x%04x came back as 0x%04x",
             FCW_DEFAULT, r->fcw);
        return false;
    }
    return true;
}

bool call_checked(struct unit *unit, const struct vcase *one, void *dst, const void *src, size_t n)
{
    unit->pulse->now = *one;
    unit->pulse->now_dst_off = (unsigned)((uintptr_t)dst % PAGE);
    unit->pulse->now_src_off = (unsigned)((uintptr_t)src % PAGE);
    unit->pulse->now_distance = src ? (int64_t)((uintptr_t)dst - (uintptr_t)src) : 0;
    struct outcome seen = call_raw(unit, one, dst, src, n);
    return call_judge(unit, one, &seen, dst, src, n);
}
