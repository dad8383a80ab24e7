/* Faults that are not ours, state that must not change, handlers, threads and forks in which copies fault. */
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "scenes.h"

static volatile bool right_in_handler;

/* --- what is not ours -------------------------------------------------------------------------------------------- */
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

static void crash_bus(void) { crash_by((char *)edge_of(true)); }
static void crash_wild(void) { crash_by((char *)(uintptr_t)0x8000000000000000u); }
static void crash_twice(void)
{
    if (sigsetjmp(escape, 1) == 0)
        crash_now();
    CHECK(calls == 1);
    crash_now();
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

static void handled(void)
{
    calls = 0;
    if (sigsetjmp(escape, 1) == 0)
        crash_now();
    CHECK(calls == 1);
}
static void crash_once_each(void)
{
    handled();
    own(SIGSEGV, host_jumps, SA_RESETHAND);
    begin();
    handled();
}
static void once(void)
{
    own(SIGSEGV, host_jumps, SA_RESETHAND);
    begin();
    CHECK(end_of(handled) == 0 && end_of(crash_twice) == -SIGSEGV);
    CHECK(end_of(crash_once_each) == 0); /* installed anew it has its one fault again */
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

/* What the pages say of its size: the kernel's least and 1024 bytes more are enough, MINSIGSTKSZ of old is not where
 * the frame of a signal is larger, though the stack itself has room. Emulators do not say what the least is. */
static void on_alternate_of_2048(void)
{
    static unsigned char room[2048];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    CHECK(sigaltstack(&stack, NULL) == 0);
    copies_right(3, 17, false, true);
}
static void alternate_least(void)
{
    const size_t least = getauxval(AT_MINSIGSTKSZ);
    begin();
    if (briefly || least == 0)
        return;
    if (least > 2048)
        CHECK(end_of(on_alternate_of_2048) == -SIGSEGV);
    const size_t bytes = least + 1024, pages = (bytes + PAGE - 1) / PAGE * PAGE;
    unsigned char *at = mmap(NULL, PAGE + pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && mprotect(at + PAGE, pages, PROT_READ | PROT_WRITE) == 0);
    memset(at + PAGE, 0x5a, pages);
    const stack_t stack = {.ss_sp = at + PAGE, .ss_size = bytes};
    CHECK(sigaltstack(&stack, NULL) == 0 && all_right(true));
    for (size_t i = bytes; i < pages; i++)
        CHECK(at[PAGE + i] == 0x5a);
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

/* --- what status says -------------------------------------------------------------------------------------------- */
static void blocked(void)
{
    sigset_t set;
    begin();
    sigemptyset(&set);
    sigaddset(&set, SIGBUS);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct wherry_nofault_status status = status_now();
    CHECK(status.sigbus_blocked && !status.sigsegv_blocked && strstr(status.message, "blocked"));
    CHECK(status.path == WHERRY_NOFAULT_BY_TABLE);
    signal(SIGSEGV, SIG_DFL); /* nobody raises a signal then */
    CHECK(status_now().path == by_calls() && all_right(false));
    begin();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(!status_now().sigbus_blocked && strstr(status_now().message, "ready"));
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK(!status_now().sigbus_blocked && status_now().sigsegv_blocked);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(!status_now().sigsegv_blocked);
}

static void uninitialised(void)
{
    struct wherry_nofault_status status = status_now();
    CHECK(!status.initialised && status.path == by_calls() && status.sigsegv == WHERRY_NOFAULT_NOBODY);
    CHECK(strstr(status.message, "wherry_nofault_init") && all_right(false));
    siginfo_t none = {0};
    CHECK(!wherry_nofault_handle(SIGUSR1, &none, NULL));
}

/* The program's first thread has ended: by the process's own number the kernel finds no memory any more. */
static pthread_t first;
static bool by_vm;
static void *goes_on(void *unused)
{
    CHECK(!unused && pthread_join(first, NULL) == 0);
    char byte = 1, other = 0;
    const struct iovec from = {&byte, 1}, to = {&other, 1};
    while (by_vm && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1)
        sched_yield();
    CHECK(all_right(false));
    const struct rlimit none = {0, 0};
    if (by_vm) {
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        CHECK(status_now().path == WHERRY_NOFAULT_BY_VM);
        CHECK(wherry_copy_nofault(&other, &byte, 1, NULL) == 0 && other == 1);
    }
    exit(0);
}
static void first_thread_gone(void)
{
    pthread_t second;
    first = pthread_self();
    by_vm = by_calls() == WHERRY_NOFAULT_BY_VM;
    CHECK(pthread_create(&second, NULL, goes_on, NULL) == 0);
    pthread_exit(NULL);
}

const struct named_scene scenes_of_faults[] = {SCENE(chain),
                                               SCENE(chain_plain),
                                               SCENE(chain_mask),
                                               SCENE(by_default),
                                               SCENE(ignored),
                                               SCENE(once),
                                               SCENE(sent_inside),
                                               SCENE(unchanged),
                                               SCENE(alternate),
                                               SCENE(alternate_least),
                                               SCENE(nested),
                                               SCENE(interrupted),
                                               SCENE(threads),
                                               SCENE(threads_alternate),
                                               SCENE(forked),
                                               SCENE(blocked),
                                               SCENE(uninitialised),
                                               SCENE(first_thread_gone),
                                               {0}};
