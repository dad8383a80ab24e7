/* Who owns SIGSEGV and SIGBUS: installing handlers, and handing on what is not ours just as the kernel would have.
 *
 * A handler that was installed over ours may hand faults back to ours: by a call, or by restoring the one before and
 * raising the signal anew. If ours, installed once more over it, were the same function, the two would call each other
 * without end. So each handler that an installation meets has handler functions of its own, which know what was before
 * them: two, since it may be installed anew over ours, and then hand faults back to that one of them that was in force.
 * The other leads to it from then on, and that one to what was before both. */
#include <errno.h>
#include <stdatomic.h>

#include "guard/guard.h"
#include "guard/holder.h"
#include "guard/kernel.h"

enum {
    SIGNALS = 2,
    FUNCTIONS = 16,
    INSTALLATIONS = FUNCTIONS + 2 /* the default action, and to ignore */,
    EACH = 2,
    HANDLERS = INSTALLATIONS * EACH,
    KERNEL_RESTORER = 0x04000000
};

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS};

struct previous {
    uintptr_t handler;
    atomic_ulong flags; /* these two as it was installed last: a fault meanwhile may see one of each */
    _Atomic(uint64_t) mask;
    atomic_bool reset;       /* it had SA_RESETHAND and has been called */
    atomic_uint turn;        /* grows as its handler functions take turns; modulo EACH, which of them leads to it */
    struct previous *before; /* where the others lead */
};

static struct previous previous[SIGNALS][INSTALLATIONS];
static struct previous nobody[SIGNALS];     /* the default action */
static struct previous *innermost[SIGNALS]; /* where the handler leads that was installed last; NULL: none was */
static unsigned installed[SIGNALS];
static _Atomic(uint64_t) busy; /* who installs (holder.h); 0: nobody */
static atomic_bool initialised;
static atomic_int refused;                 /* what the last installation failed of; 0: nothing */
static atomic_uintptr_t forwards[SIGNALS]; /* handlers that call wherry_nofault_handle */
static atomic_uintptr_t seen[SIGNALS];     /* the handler in force when the kernel was last asked */

/* What another thread has seen before or after may have been stored meanwhile, so whoever stores asks once more. */
static void see(unsigned signal, struct kernel_action *now)
{
    while (atomic_load(&seen[signal]) != now->handler) {
        atomic_store(&seen[signal], now->handler);
        if (kernel_sigaction(signals[signal], NULL, now))
            return;
    }
}

/* Who has the signal now. A sandbox that was entered later may forbid to ask; nobody installs a handler there any more
 * either, so what was so then is so now. An errno value, negative, where it was never known. */
static long ask(unsigned signal, struct kernel_action *now)
{
    const long error = kernel_sigaction(signals[signal], NULL, now);
    if (!error)
        see(signal, now);
    else if (atomic_load(&initialised))
        *now = (struct kernel_action){.handler = atomic_load(&seen[signal]), .flags = SA_SIGINFO};
    else
        return error;
    return 0;
}

bool wherry_guard_asks(void)
{
    struct kernel_action now;
    return kernel_sigaction(signals[0], NULL, &now) == 0;
}

void wherry_guard_sigaction_return(void);

/* Not the program's: of a signal that the kernel sends for an instruction. */
static bool is_forced(int signo, const siginfo_t *info)
{
    return info->si_code > 0 && !(signo == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* Where a sandbox forbids to restore the default action: the kernel takes it for a fault whose signal is blocked. That
 * is the instruction again, or for want of one, of a signal that was sent, one here: so SIGBUS becomes SIGSEGV. */
static void die_of_a_fault(int signo, const siginfo_t *info, void *ucontext)
{
    if (is_forced(signo, info)) {
        *(uint64_t *)&((ucontext_t *)ucontext)->uc_sigmask |= kernel_bit(signo);
        return;
    }
    const uint64_t mask = kernel_bit(SIGSEGV);
    kernel_sigmask(SIG_BLOCK, &mask, NULL);
    __asm__ volatile("hlt");
}

/* The default action, with the signal as it came: a core file shows the fault and not this handler. The signal is
 * blocked until the handler returns, also where another handler called ours, and the instruction is not executed again
 * before it arrives. */
static void die_of(int signo, siginfo_t *info, void *ucontext)
{
    const struct kernel_action by_default = {.handler = (uintptr_t)SIG_DFL};
    const uint64_t mask = kernel_bit(signo);
    if (kernel_sigaction(signo, &by_default, NULL)) {
        die_of_a_fault(signo, info, ucontext);
        return;
    }
    kernel_sigmask(SIG_BLOCK, &mask, NULL);
    const long process = kernel_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long thread = kernel_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    /* A sandbox may allow only the plain one, which loses where the fault was. */
    if (kernel_call(SYS_rt_tgsigqueueinfo, process, thread, signo, (long)info, 0, 0))
        kernel_call(SYS_tgkill, process, thread, signo, 0, 0, 0);
}

/* The first process of a container dies of no signal that somebody sends it with the default action. */
static bool ignored_by_kernel(uintptr_t handler, bool forced)
{
    if (forced)
        return false;
    return handler == (uintptr_t)SIG_IGN ||
           (handler == (uintptr_t)SIG_DFL && kernel_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1);
}

static bool is_function(uintptr_t handler) { return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN; }

/* With SA_RESETHAND the first fault takes it away, so that the next would kill. Without SA_SIGINFO, as signal()
 * installs also what it has returned before, it is not told what the fault was. */
static bool serves_well(const struct kernel_action *action)
{
    return is_function(action->handler) && !(action->flags & SA_RESETHAND) && action->flags & SA_SIGINFO;
}

static void hand_on(struct previous *to, int signo, siginfo_t *info, void *ucontext)
{
    const unsigned long flags = atomic_load(&to->flags);
    uintptr_t handler = to->handler;
    if (flags & SA_RESETHAND && atomic_exchange(&to->reset, true))
        handler = (uintptr_t)SIG_DFL;
    if (ignored_by_kernel(handler, is_forced(signo, info)))
        return;
    if (!is_function(handler)) { /* the kernel ignores no fault either */
        die_of(signo, info, ucontext);
        return;
    }
    uint64_t mask = *(const uint64_t *)&((ucontext_t *)ucontext)->uc_sigmask | atomic_load(&to->mask);
    if (!(flags & SA_NODEFER))
        mask |= kernel_bit(signo);
    kernel_sigmask(SIG_SETMASK, &mask, NULL);
    ((void (*)(int, siginfo_t *, void *))handler)(signo, info, ucontext);
}

/* Ours has been called by the very handler that it leads to: one that was installed anew over ours, without a word. */
static bool is_circle(const struct previous *own, int signo, const void *caller)
{
    struct kernel_action now;
    return caller != (const void *)wherry_guard_sigaction_return && kernel_sigaction(signo, NULL, &now) == 0 &&
           now.handler == own->handler;
}

static uintptr_t handler_number(unsigned handler);

/* The one of the two that does not lead is in force where its handler has put it back, to hand the fault to what was
 * before. Where it is not, another thread has installed both anew since the kernel called it; and where that thread has
 * done so again since `turn` was read, it is in force because its turn has come. */
static bool is_late(const struct previous *own, unsigned turn, unsigned handler, int signo, const void *caller)
{
    struct kernel_action now;
    return caller == (const void *)wherry_guard_sigaction_return && kernel_sigaction(signo, NULL, &now) == 0 &&
           (now.handler != handler_number(handler) || atomic_load(&own->turn) != turn);
}

static void on_signal(unsigned handler, int signo, siginfo_t *info, void *ucontext, const void *caller)
{
    if (wherry_guard_fix(signo, info, ucontext))
        return;
    struct previous *own = &previous[signo == SIGBUS][handler / EACH];
    const unsigned turn = atomic_load(&own->turn);
    const bool leads =
        turn % EACH == handler % EACH ? !is_circle(own, signo, caller) : is_late(own, turn, handler, signo, caller);
    hand_on(leads ? own : own->before, signo, info, ucontext);
}

#define EIGHT(X, i) X(i##0) X(i##1) X(i##2) X(i##3) X(i##4) X(i##5) X(i##6) X(i##7)
#define EACH_HANDLER(X) EIGHT(X, 0) EIGHT(X, 01) EIGHT(X, 02) EIGHT(X, 03) X(040) X(041) X(042) X(043) /* octal */
/* Emulators have handlers begin with a stack that is not aligned as functions expect it. */
#define HANDLER(i)                                                                                                     \
    __attribute__((force_align_arg_pointer)) static void handler_##i(int signo, siginfo_t *info, void *ucontext)       \
    {                                                                                                                  \
        on_signal(i, signo, info, ucontext, __builtin_return_address(0));                                              \
    }
EACH_HANDLER(HANDLER)
#define NAME(i) handler_##i,
static void (*const handlers[HANDLERS])(int, siginfo_t *, void *) = {EACH_HANDLER(NAME)};

static uintptr_t handler_number(unsigned handler) { return (uintptr_t)handlers[handler]; }

/* HANDLERS: it is not ours. */
static unsigned index_of(uintptr_t handler)
{
    unsigned i = 0;
    while (i < HANDLERS && handler != (uintptr_t)handlers[i])
        i++;
    return i;
}

static bool is_ours(uintptr_t handler) { return index_of(handler) < HANDLERS; }

/* What is blocked while our handler runs, until it returns or hand_on sets the mask of the handler before: whatever
 * somebody sends. Signals sent in a flood then wait in place of nesting until the stack is used up; and a handler that
 * copies never begins while SIGSEGV is blocked on our account, where its own fault would kill. Not the signals of
 * instructions: a sandbox that answers system calls by SIGSYS kills where that is blocked. */
static uint64_t mask_meanwhile(void)
{
    return ~(kernel_bit(SIGSYS) | kernel_bit(SIGTRAP) | kernel_bit(SIGILL) | kernel_bit(SIGFPE));
}

/* What a signal that is not ours finds must be what it found before: the stack that the handler asked for, and whether
 * a system call goes on that it interrupted. One that nobody handles may come on a stack that is too small for more. */
static unsigned long flags_beside(const struct kernel_action *before)
{
    const unsigned long always = SA_SIGINFO | KERNEL_RESTORER;
    if (before->handler == (uintptr_t)SIG_DFL)
        return always | SA_ONSTACK;
    if (before->handler == (uintptr_t)SIG_IGN)
        return always | SA_ONSTACK | SA_RESTART;
    return always | (before->flags & (SA_ONSTACK | SA_RESTART));
}

/* Has a handler function of ours lead to what is in force, and the one that led there so far to what was before.
 * Returns the function's index. */
static unsigned lead(unsigned signal, struct previous *to)
{
    const unsigned old = atomic_load(&to->turn);
    const unsigned turn = is_function(to->handler) ? old + 1 : old;
    atomic_store(&to->turn, turn);
    return (unsigned)(to - previous[signal]) * EACH + turn % EACH;
}

/* Is there a place for one more handler? */
static bool has_room(unsigned signal, uintptr_t handler)
{
    unsigned functions = 0;
    for (unsigned i = 0; i < installed[signal]; i++)
        functions += is_function(previous[signal][i].handler);
    return !is_function(handler) || functions < FUNCTIONS;
}

/* replaced: what was in force until then. */
static int arm(unsigned signal, uintptr_t handler, const struct kernel_action *before, struct kernel_action *replaced)
{
    const struct kernel_action ours = {
        .handler = handler,
        .flags = flags_beside(before),
        .restorer = (uintptr_t)wherry_guard_sigaction_return,
        .mask = mask_meanwhile(),
    };
    return (int)-kernel_sigaction(signals[signal], &ours, replaced);
}

/* Puts ours before what is in force now, or again in its own place. */
static int come_before(unsigned signal, const struct kernel_action *now, struct kernel_action *replaced)
{
    struct previous *const all = previous[signal];
    if (is_ours(now->handler)) {
        const unsigned i = index_of(now->handler) / EACH;
        /* A parent may have forked between its handler and its count. */
        if (i >= installed[signal])
            installed[signal] = i + 1;
        innermost[signal] = &all[i];
        const struct kernel_action before = {.handler = all[i].handler, .flags = atomic_load(&all[i].flags)};
        *replaced = *now;
        return serves_well(now) ? 0 : arm(signal, now->handler, &before, replaced);
    }
    unsigned i = 0;
    while (i < installed[signal] && all[i].handler != now->handler)
        i++;
    if (i == installed[signal]) {
        if (!has_room(signal, now->handler))
            return ENOSPC;
        struct previous *before = innermost[signal] ? innermost[signal] : &nobody[signal];
        all[i].handler = now->handler;
        all[i].before = before;
    }
    atomic_store(&all[i].flags, now->flags);
    atomic_store(&all[i].mask, now->mask);
    atomic_store(&all[i].reset, false);
    const unsigned handler = lead(signal, &all[i]);
    atomic_thread_fence(memory_order_seq_cst);
    const int refusal = arm(signal, (uintptr_t)handlers[handler], now, replaced);
    if (refusal)
        return refusal;
    struct kernel_action ours;
    ask(signal, &ours);
    innermost[signal] = &all[i];
    if (i == installed[signal])
        installed[signal]++;
    return 0;
}

static bool same(const struct kernel_action *a, const struct kernel_action *b)
{
    return a->handler == b->handler && a->flags == b->flags && a->mask == b->mask;
}

/* Another thread may install a handler between the question and ours, which takes its place: then once more, before
 * that one. */
static int install(unsigned signal)
{
    struct kernel_action asked = {0}, replaced = {0};
    const long error = ask(signal, &asked);
    if (error)
        return (int)-error;
    int refusal = come_before(signal, &asked, &replaced);
    while (!refusal && !same(&asked, &replaced) && !is_ours(replaced.handler)) {
        asked = replaced;
        refusal = come_before(signal, &asked, &replaced);
        if (refusal)
            kernel_sigaction(signals[signal], &asked, NULL);
    }
    return refusal;
}

static void begin(void)
{
    const uint64_t self = holder_self();
    uint64_t holder = 0;
    while (!atomic_compare_exchange_strong(&busy, &holder, self)) {
        if (!holder_is_another_here(holder, self))
            continue; /* with that as what is expected: it is freed, or taken from who is not there */
        kernel_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        holder = 0;
    }
}

int wherry_guard_install(void)
{
    begin();
    int error = 0;
    for (unsigned s = 0; s < SIGNALS && !error; s++)
        error = install(s);
    if (!error)
        atomic_store(&initialised, true);
    atomic_store(&refused, error);
    atomic_store(&busy, 0);
    return error;
}

int wherry_guard_refused(void) { return atomic_load(&refused); }

void wherry_guard_noted(int signo)
{
    struct kernel_action now;
    if (kernel_sigaction(signo, NULL, &now) == 0 && !is_ours(now.handler))
        atomic_store(&forwards[signo == SIGBUS], now.handler);
}

int wherry_guard_trust(void)
{
    struct kernel_action now[SIGNALS];
    for (unsigned s = 0; s < SIGNALS; s++) {
        const long error = ask(s, &now[s]);
        if (error)
            return (int)-error;
        if (!serves_well(&now[s]))
            return EINVAL;
    }
    for (unsigned s = 0; s < SIGNALS; s++)
        if (!is_ours(now[s].handler))
            atomic_store(&forwards[s], now[s].handler);
    atomic_store(&initialised, true);
    return 0;
}

static enum wherry_nofault_owner owner_of(unsigned signal, void **handler)
{
    struct kernel_action now;
    *handler = NULL;
    if (ask(signal, &now))
        return WHERRY_NOFAULT_SOMEBODY;
    *handler = (void *)now.handler;
    if (is_ours(now.handler))
        return serves_well(&now) ? WHERRY_NOFAULT_OURS : WHERRY_NOFAULT_SOMEBODY;
    if (!is_function(now.handler))
        return WHERRY_NOFAULT_NOBODY;
    for (unsigned s = 0; s < SIGNALS && serves_well(&now); s++) /* one function that serves both signals serves both */
        if (now.handler == atomic_load(&forwards[s]))
            return WHERRY_NOFAULT_HOST;
    return WHERRY_NOFAULT_SOMEBODY;
}

static bool serves(enum wherry_nofault_owner owner)
{
    return owner == WHERRY_NOFAULT_OURS || owner == WHERRY_NOFAULT_HOST;
}

bool wherry_guard_look(struct wherry_nofault_status *status)
{
    uint64_t blocked = 0;
    kernel_sigmask(SIG_BLOCK, NULL, &blocked);
    status->initialised = atomic_load(&initialised);
    status->sigsegv = owner_of(0, &status->sigsegv_handler);
    status->sigbus = owner_of(1, &status->sigbus_handler);
    status->sigsegv_blocked = blocked & kernel_bit(SIGSEGV);
    status->sigbus_blocked = blocked & kernel_bit(SIGBUS);
    return status->initialised && serves(status->sigsegv) && serves(status->sigbus);
}
