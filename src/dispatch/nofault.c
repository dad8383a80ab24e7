/* The fault-tolerant functions beside the copy and the set themselves, which are in nofault.S. */
#include "dispatch/nofault.h"

#include <errno.h>
#include <stdatomic.h>

#include "dispatch/dispatch.h"
#include "guard/guard.h"

#define PUBLIC __attribute__((visibility("default")))

_Atomic(uint64_t) wherry_nofault_choice;
static _Atomic(uint64_t) looks; /* begun so far */
_Static_assert(WHERRY_NOFAULT_CHOICE_AVX2 == 1 && WHERRY_NOFAULT_CHOICE_VNNI == 3, "nofault.S compares with these");

static uint64_t begin_look(void) { return atomic_fetch_add(&looks, 1) + 1; }

static uint64_t word_of(uint64_t look, enum wherry_nofault_choice choice) { return look << 8 | (unsigned char)choice; }

static enum wherry_nofault_choice choice_of(enum wherry_needs needs)
{
    switch (needs) {
    case WHERRY_NEEDS_VNNI:
        return WHERRY_NOFAULT_CHOICE_VNNI;
    case WHERRY_NEEDS_AVX512:
        return WHERRY_NOFAULT_CHOICE_AVX512;
    case WHERRY_NEEDS_AVX2:
        return WHERRY_NOFAULT_CHOICE_AVX2;
    default:
        return WHERRY_NOFAULT_CHOICE_SSE2;
    }
}

bool wherry_nofault_force(enum wherry_isa isa)
{
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    if (!wherry_plan_can_run(&cpu, wherry_plan_needs(isa)))
        return false;
    const enum wherry_needs needs = isa == WHERRY_ISA_AVX512_LADDER     ? wherry_plan_needs(isa)
                                    : isa == WHERRY_ISA_AVX512_TOGETHER ? wherry_plan_csum(&cpu, isa)
                                                                        : wherry_plan_copy_csum(&cpu, isa);
    atomic_store(&wherry_nofault_choice, word_of(begin_look(), choice_of(needs)));
    return true;
}

static enum wherry_nofault_choice planned(void)
{
    return choice_of((enum wherry_needs)atomic_load_explicit(&wherry_copy_csum_choice, memory_order_relaxed));
}

/* A plan is loaded, or the library's constructor runs behind another that has called in before any tier was chosen. Who
 * fixes faults is not asked: what goes by system calls goes on by them. Whoever has set either of the two words looks
 * here at both, so that of threads that do so at once the last sees what the others have set. */
static void follow(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t now = atomic_load(&wherry_nofault_choice);
    for (;;) {
        const enum wherry_nofault_choice in_force = wherry_nofault_choice_in(now), plan = planned();
        if (in_force == WHERRY_NOFAULT_CHOICE_CALLS || in_force == plan)
            return;
        if (atomic_compare_exchange_weak(&wherry_nofault_choice, &now, word_of(now >> 8, plan)))
            now = atomic_load(&wherry_nofault_choice);
    }
}

/* By the table when faults are fixed now, else by system calls. Of threads that look at once one may have seen what no
 * longer holds, so none undoes what a look has chosen that began later. */
static bool choose(struct wherry_nofault_status *status)
{
    const uint64_t look = begin_look();
    const bool fixed = wherry_guard_look(status);
    uint64_t now = atomic_load(&wherry_nofault_choice), chosen;
    do
        chosen = word_of(look, fixed ? planned() : WHERRY_NOFAULT_CHOICE_CALLS);
    while (now < look << 8 && !atomic_compare_exchange_weak(&wherry_nofault_choice, &now, chosen));
    follow();
    return fixed;
}

PUBLIC int wherry_nofault_init(void)
{
    struct wherry_nofault_status status;
    const int error = wherry_guard_install();
    atomic_store(&wherry_dispatch_follower, follow);
    choose(&status);
    return error;
}

PUBLIC int wherry_nofault_init_hosted(void)
{
    struct wherry_nofault_status status;
    const int error = wherry_guard_trust();
    atomic_store(&wherry_dispatch_follower, follow);
    choose(&status);
    return error;
}

__attribute__((force_align_arg_pointer)) PUBLIC bool wherry_nofault_handle(int signo, siginfo_t *info, void *ucontext)
{
    if (!wherry_guard_fix(signo, info, ucontext))
        return false;
    wherry_guard_noted(signo);
    return true;
}

/* error: what a pipe failed of, where nothing is copied. */
static const char *message_of(const struct wherry_nofault_status *status, int error)
{
    if (status->path == WHERRY_NOFAULT_BY_NOTHING && (error == EMFILE || error == ENFILE))
        return "neither signals nor system calls: nothing is copied. Call wherry_nofault_init, or leave "
               "two file descriptors for a pipe, or allow process_vm_readv";
    if (status->path == WHERRY_NOFAULT_BY_NOTHING)
        return "neither signals nor system calls: nothing is copied. Call wherry_nofault_init, or let the sandbox "
               "allow process_vm_readv or pipe2";
    if (status->sigsegv_blocked || status->sigbus_blocked)
        return status->path == WHERRY_NOFAULT_BY_TABLE
                   ? "SIGSEGV or SIGBUS is blocked in this thread: a fault in a copy would kill the process. "
                     "Unblock them"
                   : "SIGSEGV or SIGBUS is blocked in this thread; calls go by system calls, which raise no signal";
    if (status->path == WHERRY_NOFAULT_BY_TABLE && !wherry_guard_asks())
        return "ready, as when the kernel could last be asked who owns SIGSEGV and SIGBUS: a sandbox now "
               "forbids rt_sigaction; calls are as fast as memcpy";
    if (status->path == WHERRY_NOFAULT_BY_TABLE)
        return status->sigsegv == WHERRY_NOFAULT_OURS && status->sigbus == WHERRY_NOFAULT_OURS
                   ? "ready: this library owns SIGSEGV and SIGBUS; calls are as fast as memcpy"
                   : "ready: the host owns SIGSEGV or SIGBUS and hands faults to wherry_nofault_handle; calls are as "
                     "fast as memcpy";
    /* Not when whoever was one too many has gone again. */
    const bool somebody = status->sigsegv == WHERRY_NOFAULT_SOMEBODY || status->sigbus == WHERRY_NOFAULT_SOMEBODY;
    if (wherry_guard_refused() == ENOSPC && somebody)
        return "this library does not own SIGSEGV or SIGBUS, and has met too many handlers to come before one more: "
               "calls go by system calls, right but slow. Let the handlers call wherry_nofault_handle, then call "
               "wherry_nofault_init_hosted";
    if ((wherry_guard_refused() && wherry_guard_refused() != ENOSPC) || !wherry_guard_asks())
        return "no handler may be installed: calls go by system calls, right but slow. Let the sandbox allow "
               "rt_sigaction, then call wherry_nofault_init";
    if (!status->initialised)
        return "not initialised: calls go by system calls, right but slow. Call wherry_nofault_init";
    if (!somebody)
        return "SIGSEGV or SIGBUS has been set back to the default action, or is ignored: calls go by system calls, "
               "right but slow. Call wherry_nofault_init, or install the host's handlers, and then ask again";
    return "another handler owns SIGSEGV or SIGBUS: calls go by system calls, right but slow. Call "
           "wherry_nofault_init again, or let that handler, with SA_SIGINFO and without SA_RESETHAND, call "
           "wherry_nofault_handle and then call wherry_nofault_init_hosted";
}

PUBLIC int wherry_nofault_status(struct wherry_nofault_status *status)
{
    struct wherry_nofault_status unwanted;
    if (!status)
        status = &unwanted;
    int error = 0;
    status->path = choose(status) ? WHERRY_NOFAULT_BY_TABLE : wherry_guard_calls_allowed(&error);
    status->message = message_of(status, error);
    return 0;
}

PUBLIC size_t wherry_copy_nofault_zero(void *dst, const void *src, size_t n, struct wherry_fault *fault)
{
    const size_t left = wherry_nofault_copy(dst, src, n, fault);
    if (__builtin_expect(left != 0, 0))
        wherry_nofault_set((char *)dst + (n - left), 0, left, NULL);
    return left;
}
