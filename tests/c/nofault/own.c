/* Who owns SIGSEGV and SIGBUS, scene by scene: own SCENE. Exit status 0 when all was as it must be. */
#include <pthread.h>
#include <setjmp.h>
#include <sys/time.h>

#include "scene.h"

static unsigned char *edge;
static sigjmp_buf escape;
static volatile int calls;
static volatile uintptr_t where, stack_of_handler;
static volatile bool right_in_handler;

static void begin(void) { CHECK(wherry_nofault_init() == 0); }

/* --- what is not ours -------------------------------------------------------------------------------------------- */
static void host_jumps(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    int local;
    calls++;
    where = (uintptr_t)info->si_addr;
    stack_of_handler = (uintptr_t)&local;
    siglongjmp(escape, 1);
}

static void host_jumps_plain(int signo)
{
    (void)signo;
    calls++;
    siglongjmp(escape, 1);
}

/* A handler that was there before gets what is not ours, as often as it happens, and may jump out. */
static void chain(void)
{
    own(SIGSEGV, host_jumps, 0);
    begin();
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(escape, 1) == 0)
            crash_by((char *)edge + 5);
        CHECK(calls == i + 1 && where == (uintptr_t)edge + 5);
        CHECK(all_right(true));
    }
    CHECK(status_now().sigsegv == WHERRY_NOFAULT_OURS);
}

static void chain_plain(void)
{
    signal(SIGBUS, host_jumps_plain);
    begin();
    unsigned char *truncated = edge_of(true);
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)truncated);
    CHECK(calls == 1 && all_right(true));
}

/* The handler that was there before runs with just the signals blocked that it asked for. */
static sigset_t mask_seen;
static void host_looks(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    (void)context;
    sigprocmask(SIG_BLOCK, NULL, &mask_seen);
    siglongjmp(escape, 1);
}
static void chain_mask(void)
{
    struct sigaction action = {.sa_sigaction = host_looks, .sa_flags = SA_SIGINFO};
    sigset_t before, after;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
    begin();
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)edge);
    CHECK(sigismember(&mask_seen, SIGUSR1) && sigismember(&mask_seen, SIGUSR2) && sigismember(&mask_seen, SIGSEGV));
    CHECK(!sigismember(&mask_seen, SIGBUS) && !sigismember(&mask_seen, SIGTERM));
    sigprocmask(SIG_BLOCK, NULL, &after);
    CHECK(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGUSR1) && !sigismember(&after, SIGSEGV));
}

static void crash_now(void) { crash_by((char *)edge); }
static void crash_bus(void) { crash_by((char *)edge_of(true)); }
static void crash_wild(void) { crash_by((char *)(uintptr_t)0x8000000000000000u); }
static void crash_twice(void)
{
    if (sigsetjmp(escape, 1) == 0)
        crash_now();
    CHECK(calls == 1);
    crash_now();
}
static void sent(void)
{
    raise(SIGSEGV);
    _exit(0);
}
/* The default action kills as it would have: by the same signal. */
static void by_default(void)
{
    begin();
    CHECK(end_of(crash_now) == -SIGSEGV);
    CHECK(end_of(crash_bus) == -SIGBUS);
    CHECK(end_of(crash_wild) == -SIGSEGV);
    CHECK(end_of(sent) == -SIGSEGV);
    CHECK(all_right(true));
}

static void ignored(void)
{
    signal(SIGSEGV, SIG_IGN);
    begin();
    CHECK(end_of(sent) == 0);
    CHECK(end_of(crash_now) == -SIGSEGV); /* the kernel ignores no fault either */
    CHECK(all_right(true));
}

static void once(void)
{
    own(SIGSEGV, host_jumps, SA_RESETHAND);
    begin();
    CHECK(end_of(crash_twice) == -SIGSEGV);
}

/* A signal that somebody sends while a copy is at an instruction of the table is not a fault of that copy. */
static volatile sig_atomic_t got_sent;
static void host_counts(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    if (info->si_code <= 0)
        got_sent++;
    else
        _exit(9);
}
static void *sender(void *thread)
{
    for (int i = 0; i < 2000; i++)
        pthread_kill(*(pthread_t *)thread, i % 2 ? SIGSEGV : SIGBUS);
    return NULL;
}
static void sent_inside(void)
{
    enum { BYTES = 1 << 20 };
    own(SIGSEGV, host_counts, 0);
    own(SIGBUS, host_counts, 0);
    begin();
    unsigned char *from = malloc(BYTES), *to = malloc(BYTES);
    memset(from, 7, BYTES);
    pthread_t self = pthread_self(), other;
    pthread_create(&other, NULL, sender, &self);
    size_t left = 0;
    for (int i = 0; i < 300; i++)
        left |= wherry_copy_nofault(to, from, BYTES - (size_t)i, NULL) | wherry_copy_nofault(to, from, 100, NULL);
    pthread_join(other, NULL);
    CHECK(left == 0 && got_sent > 0);
}

/* --- state that must not change ---------------------------------------------------------------------------------- */
static void unchanged(void)
{
    sigset_t before, after;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, stack_after;
    begin();
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    sigaddset(&before, SIGALRM);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaltstack(&stack, NULL);
    errno = 4242;
    CHECK(all_right(true));
    CHECK(errno == 4242);
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int s = 1; s < 32; s++)
        CHECK(sigismember(&before, s) == sigismember(&after, s));
    sigaltstack(NULL, &stack_after);
    CHECK(stack_after.ss_sp == stack.ss_sp && !(stack_after.ss_flags & SS_ONSTACK));
}

/* Where there is an alternate stack handlers run on it, ours and the one before. */
static void alternate(void)
{
    unsigned char *room = malloc(65536);
    stack_t stack = {.ss_sp = room, .ss_size = 65536};
    own(SIGSEGV, host_jumps, SA_ONSTACK);
    begin();
    sigaltstack(&stack, NULL);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(escape, 1) == 0)
            crash_by((char *)edge);
        CHECK(stack_of_handler > (uintptr_t)room && stack_of_handler < (uintptr_t)room + 65536);
        CHECK(all_right(true));
    }
}

/* --- inside handlers ---------------------------------------------------------------------------------------------- */
static void host_copies(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    (void)context;
    calls++;
    right_in_handler = all_right(true);
    siglongjmp(escape, 1);
}
/* A crash handler that looks at memory which may be missing: it has SA_NODEFER. */
static void nested(void)
{
    own(SIGSEGV, host_copies, SA_NODEFER);
    begin();
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(escape, 1) == 0)
            crash_by((char *)edge);
        CHECK(calls == i + 1 && right_in_handler);
    }
}

static volatile bool tick_wrong;
static void on_tick(int signo)
{
    static const struct itimerval off;
    (void)signo;
    if (++calls == 100) /* where this takes longer than a tick nothing else would ever go on */
        setitimer(ITIMER_REAL, &off, NULL);
    if (!all_right(true))
        tick_wrong = true;
}
/* A timer's handler that interrupts copies, faults of theirs included, with faulting copies of its own. */
static void interrupted(void)
{
    struct sigaction action = {.sa_handler = on_tick};
    sigemptyset(&action.sa_mask);
    begin();
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval tick = {{0, 700}, {0, 700}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &tick, NULL);
    for (int i = 0; i < 3000 && calls < 100; i++)
        CHECK(all_right(true));
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(calls > 3 && !tick_wrong);
}

/* --- threads, small stacks, fork ---------------------------------------------------------------------------------- */
static void *faulting(void *arg)
{
    if (arg) {
        stack_t stack = {.ss_sp = malloc(16384), .ss_size = 16384};
        sigaltstack(&stack, NULL);
    }
    unsigned char *mine = edge_of(false), to[200];
    for (int i = 0; i < 3000; i++)
        if (wherry_copy_nofault(to, mine - i % 190, 200, NULL) != 200u - (unsigned)i % 190)
            return (void *)1;
    munmap(mine - PAGE, 2 * PAGE);
    return NULL;
}
static void threads_of(void *alternate_stack)
{
    pthread_t thread[8];
    pthread_attr_t small;
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, 16384) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&thread[i], &small, faulting, alternate_stack) == 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        CHECK(!wrong);
    }
}
static void threads(void)
{
    begin();
    threads_of(NULL);
}
static void threads_alternate(void)
{
    begin();
    threads_of((void *)1);
}

static void child_copies(void) { CHECK(all_right(true) && status_now().path == WHERRY_NOFAULT_BY_TABLE); }
static void child_copies_by_calls(void) { CHECK(all_right(false)); }
static void forked(void)
{
    CHECK(end_of(child_copies_by_calls) == 0);
    begin();
    CHECK(end_of(child_copies) == 0);
    CHECK(all_right(true));
}

/* --- handlers that come later ------------------------------------------------------------------------------------- */
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
    own(SIGBUS, host_forwards, SA_ONSTACK);
    CHECK(all_right(true));
    struct wherry_nofault_status status = status_now();
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

static void blocked(void)
{
    sigset_t set;
    begin();
    sigemptyset(&set);
    sigaddset(&set, SIGBUS);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct wherry_nofault_status status = status_now();
    CHECK(status.sigbus_blocked && !status.sigsegv_blocked && strstr(status.message, "blocked"));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(!status_now().sigbus_blocked && strstr(status_now().message, "ready"));
}

static void uninitialised(void)
{
    struct wherry_nofault_status status = status_now();
    CHECK(!status.initialised && status.path == by_calls() && status.sigsegv == WHERRY_NOFAULT_NOBODY);
    CHECK(strstr(status.message, "wherry_nofault_init") && all_right(false));
    siginfo_t none = {0};
    CHECK(!wherry_nofault_handle(SIGUSR1, &none, NULL));
}

/* A load can read memory that is mapped for writing only, and process_vm_readv will not. Either side, or both in one.
 */
static void writable_only(void)
{
    static unsigned char other[2 * PAGE];
    for (int table = 0; table < 2; table++) {
        if (table)
            begin();
        else if (by_calls() != WHERRY_NOFAULT_BY_VM)
            continue; /* an emulator goes by what the mapping says */
        for (size_t n = 1; n <= PAGE; n += n < 70 ? 1 : 211) {
            unsigned char *end = edge_of(false), *at = end - n;
            struct wherry_fault fault = {0};
            uint32_t sum = 0;
            CHECK(mprotect(end - PAGE, PAGE, PROT_WRITE) == 0);
            CHECK(wherry_csum_copy_nofault(other, at, n, &sum, NULL) == 0 && memcmp(other, at, n) == 0);
            CHECK(wherry_csum_fold(sum) == wherry_csum_fold(wherry_csum_partial(other, n, 0)));
            memset(other, 0, sizeof other);
            CHECK(wherry_copy_nofault(other, at, n + 7, &fault) == 7 && memcmp(other, at, n) == 0);
            CHECK(fault.addr == end && !fault.writing);
            CHECK(wherry_copy_nofault(end - PAGE, at, n / 2, NULL) == 0 && memcmp(end - PAGE, other, n / 2) == 0);
            CHECK(wherry_set_nofault(at, 9, n, NULL) == 0 && *at == 9);
            CHECK(wherry_copy_nofault(at, other, n + 7, &fault) == 7 && memcmp(other, at, n) == 0);
            CHECK(fault.addr == end && fault.writing);
            CHECK(wherry_copy_nofault(at, at - (n < PAGE), n, NULL) == 0); /* up by one, then down again */
            CHECK(n == PAGE || memcmp(at + 1, other, n - 1) == 0);
            CHECK(n == PAGE || wherry_copy_nofault(at - 1, at, n, NULL) == 0);
            CHECK(n == PAGE || memcmp(at, other, n - 1) == 0);
            munmap(end - PAGE, 2 * PAGE);
        }
    }
}

/* Which side is told where there is nothing, and where both are in one page that is not there. */
static void nowhere(void)
{
    static unsigned char other[2 * PAGE];
    static const uintptr_t wild[] = {0, 1, PAGE - 1, (uintptr_t)1 << 47, (uintptr_t)1 << 63, (uintptr_t)-PAGE};
    const size_t sizes[] = {1, 7, 16, 33, 100, 300, 1100, PAGE, (size_t)-PAGE};
    enum { WILD = sizeof wild / sizeof *wild, SIZES = sizeof sizes / sizeof *sizes };
    unsigned char *const end = edge_of(false);
    begin();
    for (int size = 0; size < SIZES; size++) {
        const size_t n = sizes[size];
        struct wherry_fault fault = {0};
        for (int i = 0; i < WILD; i++) {
            unsigned char *const at = (unsigned char *)wild[i];
            CHECK(wherry_copy_nofault(other, at, n, &fault) == n && fault.addr == at && !fault.writing);
            CHECK(wherry_copy_nofault(at, end - PAGE, n, &fault) == n && fault.addr == at && fault.writing);
            for (int k = 0; k < WILD; k++) { /* the source comes first */
                CHECK(wherry_copy_nofault((void *)wild[k], at, n, &fault) == n);
                CHECK(fault.addr == at && !fault.writing);
            }
        }
        for (size_t apart = 1; apart < PAGE; apart += 273) {
            CHECK(wherry_copy_nofault(end, end + apart, n, &fault) == n);
            CHECK(fault.addr == end + apart && !fault.writing);
            CHECK(wherry_copy_nofault(end + apart, end, n, &fault) == n && fault.addr == end && !fault.writing);
        }
    }
    CHECK(mprotect(end, PAGE, PROT_READ) == 0);
    for (size_t n = 1; n < PAGE / 2; n += 61) {
        struct wherry_fault fault = {0};
        CHECK(wherry_copy_nofault(end + 5, end + PAGE / 2, n, &fault) == n && fault.addr == end + 5 && fault.writing);
        CHECK(wherry_copy_nofault(end + PAGE / 2, end + 5, n, &fault) == n && fault.writing);
        CHECK(fault.addr == end + PAGE / 2);
    }
}

/* What a protection key denies to loads no way may read. Three pages: before, locked, behind. */
static void keys(void)
{
    enum { DENY_ALL = 1, DENY_STORES = 2, BYTES = 3 * PAGE };
    const int closed = key_that_denies(DENY_ALL), constant = key_that_denies(DENY_STORES);
    if (closed < 0 || constant < 0)
        exit(77);
    static unsigned char kept[BYTES], to[BYTES + 1];
    unsigned char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *const locked = at + PAGE;
    CHECK(at != MAP_FAILED);
    for (size_t i = 0; i < BYTES; i++)
        kept[i] = at[i] = (unsigned char)(i * 7 + i / 256 + 1);
    for (int table = 0; table < 2; table++) {
        if (table)
            begin();
        CHECK(status_now().path == (table ? WHERRY_NOFAULT_BY_TABLE : by_calls()));
        struct wherry_fault fault;
        for (size_t there = 0; there <= PAGE; there += there < 70 ? 1 : 671) {
            const size_t n = there + 1 + there % 5 * 1000;
            uint32_t sum = 0;
            lock_page(locked, closed);
            memset(to, 0, sizeof to);
            CHECK(wherry_copy_nofault(to, locked - there, n, &fault) == n - there);
            CHECK(fault.addr == locked && !fault.writing && (table ? fault.signo == SIGSEGV : fault.code == EFAULT));
            CHECK(memcmp(to, locked - there, there) == 0 && to[there] == 0 && to[n - 1] == 0);
            CHECK(wherry_csum_copy_nofault(to + 1, locked - there, n, &sum, &fault) == n - there);
            CHECK(memcmp(to + 1, locked - there, there) == 0 && to[there + 1] == 0 && fault.addr == locked);
            CHECK(wherry_csum_fold(sum) == wherry_csum_fold(wherry_csum_partial(to + 1, there, 0)));
            if (there > 0) /* up by one: the destination is denied first */
                CHECK(wherry_copy_nofault(locked - there + 1, locked - there, n, &fault) == n - there + 1 &&
                      fault.writing);
            lock_page(locked, constant);
            memcpy(at, kept, PAGE);
            CHECK(wherry_copy_nofault(to, locked - there, n, NULL) == 0 && memcmp(to, locked - there, n) == 0);
            CHECK(wherry_copy_nofault(locked - there, to, n, &fault) == n - there);
            CHECK(fault.addr == locked && fault.writing && memcmp(at, kept, BYTES) == 0);
            CHECK(wherry_set_nofault(locked - there, kept[PAGE - there], n, &fault) == n - there);
            CHECK(fault.addr == locked && fault.writing && memcmp(locked, kept + PAGE, BYTES - PAGE) == 0);
            memcpy(at, kept, PAGE);
        }
        CHECK(wherry_copy_nofault(to, at, BYTES, NULL) == 0 && memcmp(to, kept, BYTES) == 0);
    }
}

/* --- beyond 4 GiB ------------------------------------------------------------------------------------------------- */
/* For an emulator, where 4 GiB by a pipe take 14 s. */
static bool briefly;

static void huge(void)
{
    const size_t piece = (size_t)64 << 20, whole = (size_t)66 * piece, more = 12345; /* 4.125 GiB */
    /* The source above the destination: what overlaps if all of it were there is then copied upwards. */
    unsigned char *to =
        mmap(NULL, 2 * whole + 2 * piece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *from = to + whole + piece;
    CHECK(to != MAP_FAILED && mprotect(from, whole, PROT_READ | PROT_WRITE) == 0);
    int fd = memfd_create("piece", 0); /* the destination is one piece of memory, over and over */
    CHECK(fd >= 0 && ftruncate(fd, (off_t)piece) == 0);
    for (size_t i = 0; i < whole + piece; i += piece)
        CHECK(mmap(to + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == to + i);
    from[whole - 1] = 77;
    struct wherry_fault fault;
    for (int table = 0; table < 2; table++) {
        to[0] = 0;
        if (table)
            begin();
        CHECK(wherry_copy_nofault(to, from, whole + more, &fault) == more);
        CHECK(fault.addr == from + whole && to[whole - 1] == 77);
        if (table || !briefly)
            CHECK(wherry_copy_nofault(to, from, (size_t)1 << 40, &fault) == ((size_t)1 << 40) - whole);
    }
    CHECK(mprotect(to + whole, PAGE, PROT_READ) == 0);
    CHECK(wherry_set_nofault(to, 77, whole + more, &fault) == more);
    CHECK(fault.addr == to + whole && fault.writing && to[0] == 77);
    CHECK(wherry_copy_nofault(to, from, whole + more, &fault) == more && fault.addr == from + whole && !fault.writing);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
#define SCENE(name) {#name, name}
    SCENE(chain),         SCENE(chain_plain),     SCENE(chain_mask),        SCENE(by_default), SCENE(ignored),
    SCENE(once),          SCENE(sent_inside),     SCENE(unchanged),         SCENE(alternate),  SCENE(nested),
    SCENE(interrupted),   SCENE(threads),         SCENE(threads_alternate), SCENE(forked),     SCENE(forwarded),
    SCENE(hosted),        SCENE(taken),           SCENE(raising),           SCENE(rearmed),    SCENE(rearmed_unsaid),
    SCENE(rearmed_first), SCENE(rearmed_raising), SCENE(rearmed_below),     SCENE(again),      SCENE(blocked),
    SCENE(uninitialised), SCENE(writable_only),   SCENE(nowhere),           SCENE(keys),       SCENE(huge),
    SCENE(one_signal),    SCENE(put_back),
#undef SCENE
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (argc < 2) {
            puts(scenes[i].name);
        } else if (strcmp(argv[1], scenes[i].name) == 0) {
            edge = edge_of(false);
            briefly = argc > 2 && strcmp(argv[2], "briefly") == 0;
            scenes[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
