/* Handlers that come later than ours: those that hand on, those that do not, and those that are armed anew. */
#include <pthread.h>
#include <stdatomic.h>

#include "scenes.h"

static void host_forwards(int signo, siginfo_t *info, void *context)
{
    if (wherry_nofault_handle(signo, info, context))
        return;
    host_jumps(signo, info, context);
}
static void forwarded(void)
{
    begin();
    own(SIGSEGV, host_forwards, SA_ONSTACK);
    CHECK(all_right(true));
    struct wherry_nofault_status status = status_now();
    CHECK(status.sigsegv == WHERRY_NOFAULT_HOST && status.sigbus == WHERRY_NOFAULT_OURS);
    own(SIGBUS, host_forwards, SA_ONSTACK);
    CHECK(all_right(true));
    status = status_now();
    CHECK(status.sigsegv == WHERRY_NOFAULT_HOST && status.sigbus == WHERRY_NOFAULT_HOST);
    CHECK(status.path == WHERRY_NOFAULT_BY_TABLE && all_right(true));
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)edge + 9);
    CHECK(calls == 1 && where == (uintptr_t)edge + 9);
    /* A handler without SA_SIGINFO has nothing to hand on. */
    siginfo_t info = {.si_code = SEGV_MAPERR};
    ucontext_t context = {0};
    CHECK(!wherry_nofault_handle(SIGSEGV, NULL, NULL) && !wherry_nofault_handle(SIGSEGV, &info, NULL));
    CHECK(!wherry_nofault_handle(SIGBUS, NULL, &context) && !wherry_nofault_handle(SIGBUS, &info, &context));
}

/* As programs do that know signal() alone. */
static void save_and_put_back(int signo) { signal(signo, signal(signo, SIG_DFL)); }

static void hosted(void)
{
    CHECK(wherry_nofault_init_hosted() == EINVAL);
    own(SIGSEGV, host_forwards, 0);
    own(SIGBUS, host_forwards, 0);
    CHECK(all_right(false));
    CHECK(wherry_nofault_init_hosted() == 0);
    CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE && all_right(true));
    own(SIGSEGV, host_jumps, 0); /* and one that knows nothing of it */
    CHECK(status_now().path == by_calls() && status_now().sigsegv == WHERRY_NOFAULT_SOMEBODY);
    CHECK(all_right(false) && calls == 0);
    own(SIGSEGV, host_forwards, SA_RESETHAND); /* and one that would be gone after one fault */
    CHECK(wherry_nofault_init_hosted() == EINVAL);
    CHECK(status_now().path == by_calls() && status_now().sigsegv == WHERRY_NOFAULT_SOMEBODY);
    CHECK(all_right(false));
    own(SIGSEGV, host_forwards, 0);
    CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE);
    save_and_put_back(SIGSEGV); /* and one that is not told what the fault is */
    CHECK(wherry_nofault_init_hosted() == EINVAL);
    CHECK(status_now().path == by_calls() && status_now().sigsegv == WHERRY_NOFAULT_SOMEBODY);
    CHECK(all_right(false));
}

/* Ours, put back by who knows nothing of SA_SIGINFO, or so that it would be gone after one fault, is armed anew. */
static void put_back(void)
{
    own(SIGSEGV, host_jumps, 0);
    begin();
    for (int once_only = 0; once_only < 2; once_only++) {
        struct sigaction action;
        save_and_put_back(SIGSEGV);
        save_and_put_back(SIGBUS);
        if (once_only) {
            CHECK(wherry_nofault_init() == 0 && sigaction(SIGSEGV, NULL, &action) == 0);
            action.sa_flags |= (int)SA_RESETHAND;
            CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
        }
        CHECK(status_now().path == by_calls() && status_now().sigsegv == WHERRY_NOFAULT_SOMEBODY);
        CHECK(strstr(status_now().message, "wherry_nofault_init") && all_right(false));
        CHECK(wherry_nofault_init() == 0);
        CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE && status_now().sigsegv == WHERRY_NOFAULT_OURS);
        CHECK(all_right(true));
        calls = 0;
        if (sigsetjmp(escape, 1) == 0)
            crash_by((char *)edge + 9);
        CHECK(calls == 1 && where == (uintptr_t)edge + 9);
    }
}

/* A signal takes microseconds: the page that the kernel has named is not met a second time to find out where it begins.
 */
static volatile bool named = true; /* as page faults, by the kernel; qemu-user 7.2 does not */
static void host_counts_all(int signo, siginfo_t *info, void *context)
{
    calls++;
    named &= ((ucontext_t *)context)->uc_mcontext.gregs[REG_TRAPNO] == 14;
    host_forwards(signo, info, context);
}
static void one_signal(void)
{
    static unsigned char other[8192];
    own(SIGSEGV, host_counts_all, 0);
    own(SIGBUS, host_counts_all, 0);
    CHECK(wherry_nofault_init_hosted() == 0);
    for (int file = 0; file < 2; file++) {
        unsigned char *end = edge_of(file);
        for (size_t n = 1; n <= 6000; n += n < 300 ? 1 : 97) {
            const size_t there[] = {0, 1 % n, n / 3, n / 2, n - 1};
            for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
                const size_t left = n - (there[i] < PAGE ? there[i] : PAGE);
                calls = 0;
                CHECK(wherry_copy_nofault(other, end + left - n, n, NULL) == left);
                CHECK(calls == 1 || (!named && calls == 2));
                calls = 0;
                CHECK(wherry_copy_nofault(end + left - n, other, n, NULL) == left);
                CHECK(calls == 1 || calls == 2);
            }
        }
    }
}

static void taken(void)
{
    begin();
    CHECK(all_right(true));
    own(SIGBUS, host_jumps, 0);
    struct wherry_nofault_status status = status_now();
    CHECK(status.sigsegv == WHERRY_NOFAULT_OURS && status.sigbus == WHERRY_NOFAULT_SOMEBODY);
    CHECK(status.sigbus_handler == (void *)host_jumps);
    CHECK(status.path == by_calls() && strstr(status.message, "another handler"));
    CHECK(all_right(false) && calls == 0);
    begin();
    CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE && all_right(true));
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)edge_of(true));
    CHECK(calls == 1);
    signal(SIGSEGV, SIG_DFL);
    status = status_now();
    CHECK(status.sigsegv == WHERRY_NOFAULT_NOBODY && status.path == by_calls());
    CHECK(strstr(status.message, "default action") && !strstr(status.message, "another handler"));
    CHECK(all_right(false));
    begin();
    CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE && all_right(true));
}

/* A handler that puts back the one before it and raises the signal anew, as Python's faulthandler does. */
static struct sigaction before_it;
static void host_raises(int signo, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    if (calls++ > 3)
        _exit(8); /* it and ours call each other */
    sigaction(signo, &before_it, NULL);
    raise(signo);
}
static void raising(void)
{
    begin();
    struct sigaction action = {.sa_sigaction = host_raises, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before_it);
    begin();
    CHECK(all_right(true) && calls == 0);
    CHECK(end_of(crash_now) == -SIGSEGV);
    CHECK(end_of(sent) == -SIGSEGV);
}

/* A handler that is armed anew, over and over, keeps what it finds in force as the one before it: without this library
 * never itself. It hands on by a call, or by raising the signal anew, to one that mends the fault. */
static volatile int mended;
static void host_mends(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    mended++;
    CHECK(mprotect(edge, PAGE, PROT_READ) == 0);
}

static void host_hands_on(int signo, siginfo_t *info, void *context)
{
    if (calls++ > 3)
        _exit(8); /* it and ours call each other */
    before_it.sa_sigaction(signo, info, context);
}

static void arm(void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags}, found;
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGSEGV, &action, &found) == 0);
    if (found.sa_sigaction != handler)
        before_it = found;
}

static void rearmed_by(void (*handler)(int, siginfo_t *, void *))
{
    own(SIGSEGV, host_mends, 0);
    begin();
    for (int i = 0; i < 8; i++) {
        arm(handler, SA_NODEFER);
        begin();
        arm(handler, i > 5 ? SA_RESTART | SA_NODEFER : SA_NODEFER); /* the last two by other flags */
        if (i % 3 == 1)
            arm(handler, SA_NODEFER); /* the second time it finds itself */
        begin();
        calls = mended = 0;
        crash_by((char *)edge + 5);
        CHECK(calls == 1 && mended == 1);
        CHECK(mprotect(edge, PAGE, PROT_NONE) == 0);
        begin();
        CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE && all_right(true));
    }
}

static void rearmed(void) { rearmed_by(host_hands_on); }
static void rearmed_raising(void) { rearmed_by(host_raises); }

/* Ours leads to it and is what it calls, until somebody says so. */
static void rearmed_unsaid(void)
{
    own(SIGSEGV, host_mends, 0);
    begin();
    for (int i = 0; i < 3; i++) {
        arm(host_hands_on, 0);
        begin();
        arm(host_hands_on, 0);
        calls = mended = 0;
        crash_by((char *)edge + 5);
        CHECK(calls == 1 && mended == 1);
        CHECK(mprotect(edge, PAGE, PROT_NONE) == 0);
        begin();
        CHECK(all_right(true) && calls == 1);
    }
}

/* Nobody was met before it, and it has forgotten itself who was: the default action, and no circle. */
static void rearmed_first(void)
{
    own(SIGSEGV, host_mends, 0);
    arm(host_hands_on, 0);
    begin();
    arm(host_hands_on, 0);
    begin();
    CHECK(all_right(true) && end_of(crash_now) == -SIGSEGV);
}

/* Of two handlers the one below is armed anew, over the other. */
static struct sigaction before_upper;
static volatile int upper_calls;
static void host_upper(int signo, siginfo_t *info, void *context)
{
    if (upper_calls++ > 3)
        _exit(8);
    before_upper.sa_sigaction(signo, info, context);
}
static void rearmed_below(void)
{
    own(SIGSEGV, host_mends, 0);
    begin();
    arm(host_hands_on, 0);
    begin();
    struct sigaction action = {.sa_sigaction = host_upper, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGSEGV, &action, &before_upper) == 0);
    begin();
    arm(host_hands_on, 0);
    begin();
    crash_by((char *)edge + 5);
    CHECK(calls == 1 && upper_calls == 1 && mended == 1 && all_right(true));
}

/* Another thread asks all the time: what it saw before a change does not outlive it. */
static atomic_bool asking, enough;
static void *asks(void *unused)
{
    while (!atomic_load(&enough)) {
        wherry_nofault_status(NULL);
        atomic_store(&asking, true);
    }
    return unused;
}
static void asked_meanwhile(void)
{
    for (int i = 0; i < 200; i++) {
        pthread_t other;
        struct wherry_fault fault;
        char byte;
        atomic_store(&asking, false);
        atomic_store(&enough, false);
        CHECK(pthread_create(&other, NULL, asks, NULL) == 0);
        while (!atomic_load(&asking))
            sched_yield();
        const bool theirs = i % 2;
        if (theirs) {
            own(SIGSEGV, host_jumps, 0);
            CHECK(status_now().path == by_calls());
        } else {
            begin();
        }
        atomic_store(&enough, true);
        CHECK(pthread_join(other, NULL) == 0);
        CHECK(wherry_copy_nofault(&byte, edge, 1, &fault) == 1 && fault.signo == (theirs ? 0 : SIGSEGV));
    }
}

/* Another thread installs its handler in the same moment: it comes before ours or behind, and is not lost. */
static atomic_uint round_begun;
static void *installs(void *rounds)
{
    for (unsigned i = 1; i <= (unsigned)(uintptr_t)rounds; i++) {
        while (atomic_load(&round_begun) < i)
            sched_yield();
        own(SIGSEGV, host_jumps, 0);
        atomic_store(&asking, true);
    }
    return NULL;
}
static void crash_and_return(void)
{
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)edge);
}
static void in_the_same_moment(void)
{
    const unsigned rounds = briefly ? 500 : 20000;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, installs, (void *)(uintptr_t)rounds) == 0);
    for (unsigned i = 1; i <= rounds; i++) {
        signal(SIGSEGV, SIG_DFL);
        atomic_store(&asking, false);
        atomic_store(&round_begun, i);
        for (volatile unsigned wait = i % 512; wait > 0; wait--)
            ;
        begin();
        while (!atomic_load(&asking))
            sched_yield();
        begin();
        crash_and_return();
        CHECK(calls == (int)i);
    }
    CHECK(pthread_join(other, NULL) == 0 && all_right(true));
}

/* It is installed anew, and ours before it, while other threads are on their way to it. */
static void *crashes(void *unused)
{
    while (!atomic_load(&enough)) {
        crash_to_be_stepped_over(edge);
        atomic_store(&asking, true);
    }
    return unused;
}
/* qemu-user changes an action field by field, so that ours may return as the other's does, as if that had called it:
 * there both return alike. */
static void own_in_emulator(void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct action_of_kernel action;
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, NULL, &action, sizeof action.mask) == 0);
    action.handler = handler;
    action.flags = action.flags | SA_SIGINFO | (unsigned)flags;
    action.mask = 0;
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, sizeof action.mask) == 0);
}
static void rearmed_meanwhile(void)
{
    pthread_t other[2];
    own(SIGSEGV, host_steps_over, SA_NODEFER);
    begin();
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&other[i], NULL, crashes, NULL) == 0);
    while (!atomic_load(&asking))
        sched_yield();
    for (int i = 0; i < (briefly ? 500 : 20000); i++) {
        if (briefly)
            own_in_emulator(host_steps_over, SA_NODEFER);
        else
            own(SIGSEGV, host_steps_over, SA_NODEFER);
        begin();
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(other[i], NULL) == 0);
}

/* Whoever installs its handler again and again costs no more than one installation of ours. */
static void again(void)
{
    for (int i = 0; i < 100; i++) {
        own(SIGSEGV, host_jumps, 0);
        begin();
        begin();
        CHECK(status_now().path == WHERRY_NOFAULT_BY_TABLE);
    }
    CHECK(all_right(true));
    for (int i = 0; i < 40; i++) { /* with another mask each time it is the same one */
        struct sigaction action = {.sa_sigaction = host_looks, .sa_flags = SA_SIGINFO};
        sigemptyset(&action.sa_mask);
        sigaddset(&action.sa_mask, SIGRTMIN + i % 20);
        sigaction(SIGSEGV, &action, NULL);
        begin();
        if (sigsetjmp(escape, 1) == 0)
            crash_by((char *)edge);
        CHECK(sigismember(&mask_seen, SIGRTMIN + i % 20) && !sigismember(&mask_seen, SIGRTMIN + (i + 19) % 20));
        if (i % 3 == 0) { /* nor is the default action one */
            signal(SIGSEGV, SIG_DFL);
            begin();
        }
    }
    int refused = 0, met = 2;
    while (!refused && met < 20) { /* different ones, which nobody calls */
        struct sigaction action = {.sa_handler = (void (*)(int))((uintptr_t)host_jumps_plain + (uintptr_t)met)};
        sigaction(SIGSEGV, &action, NULL);
        refused = wherry_nofault_init();
        met += !refused;
    }
    CHECK(met == 16);
    CHECK(refused == ENOSPC && status_now().path == by_calls() && all_right(false));
    CHECK(strstr(status_now().message, "too many"));
    signal(SIGSEGV, SIG_DFL); /* the one too many has gone again */
    CHECK(strstr(status_now().message, "set back") && wherry_nofault_init() == 0);
    CHECK(strstr(status_now().message, "ready") && all_right(true));
}

const struct named_scene scenes_of_later_handlers[] = {
    SCENE(forwarded),         SCENE(hosted),         SCENE(taken),           SCENE(raising),
    SCENE(rearmed),           SCENE(rearmed_unsaid), SCENE(rearmed_first),   SCENE(rearmed_raising),
    SCENE(rearmed_below),     SCENE(again),          SCENE(asked_meanwhile), SCENE(in_the_same_moment),
    SCENE(rearmed_meanwhile), SCENE(one_signal),     SCENE(put_back),        {0}};
