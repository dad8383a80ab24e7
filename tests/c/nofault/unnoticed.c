/* What a program sees of its own signals stays as it was before wherry_nofault_init: unnoticed SCENE. Exit status 0
 * when it did. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "scene.h"

static sigjmp_buf escape;
static volatile uintptr_t stack_of_handler;

static void needs_much_stack(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    volatile char room[100 * 1024];
    for (size_t i = 0; i < sizeof room; i += 512)
        room[i] = 1;
    stack_of_handler = (uintptr_t)&room[0];
    siglongjmp(escape, 1);
}

static void does_nothing(int signo) { (void)signo; }

static void with_flags(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    CHECK(sigaction(signo, &action, NULL) == 0);
}

/* A handler that did not ask for the alternate stack is not put on it: it may need more than there is. */
static void stack(void)
{
    static char alternate[16 * 1024];
    const stack_t own = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK(sigaltstack(&own, NULL) == 0);
    with_flags(SIGSEGV, needs_much_stack, 0);
    CHECK(wherry_nofault_init() == 0);
    if (sigsetjmp(escape, 1) == 0)
        crash_by((char *)edge_of(false));
    CHECK(stack_of_handler && stack_of_handler - (uintptr_t)alternate >= sizeof alternate);
    CHECK(all_right(true));
}

/* read() from a pipe while another thread sends the signal, and then a byte. */
static pthread_t reader;
static int ends[2];

static void *disturb(void *unused)
{
    usleep(100000);
    pthread_kill(reader, SIGSEGV);
    usleep(100000);
    CHECK(write(ends[1], "x", 1) == 1);
    return unused;
}

static long read_disturbed(void)
{
    pthread_t other;
    char byte;
    reader = pthread_self();
    CHECK(pipe(ends) == 0 && pthread_create(&other, NULL, disturb, NULL) == 0);
    const long got = read(ends[0], &byte, 1);
    pthread_join(other, NULL);
    close(ends[0]);
    close(ends[1]);
    return got;
}

/* A system call that a signal interrupted goes on where it did, and where the signal was ignored. */
static void restart(void)
{
    struct sigaction action = {.sa_handler = does_nothing, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && read_disturbed() == 1);
    CHECK(wherry_nofault_init() == 0);
    CHECK(read_disturbed() == 1 && all_right(true));
}

static void no_restart(void)
{
    struct sigaction action = {.sa_handler = does_nothing};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(wherry_nofault_init() == 0);
    CHECK(read_disturbed() == -1 && errno == EINTR);
}

/* Whatever flags came with it: signal() sets SA_RESTART, sigaction does not. */
static void ignored(void)
{
    const struct sigaction action = {.sa_handler = SIG_IGN};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && read_disturbed() == 1);
    CHECK(wherry_nofault_init() == 0);
    CHECK(read_disturbed() == 1 && all_right(true));
}

/* Signals that other processes send in a flood wait for the handler in force, as they do without this library, and do
 * not nest until the alternate stack is used up: one that nobody handles, or a handler that asked for it. */
enum { FLOOD = 10000, SENDERS = 2 };

static void flood_of(void (*handler)(int))
{
    static char alternate[16 * 1024];
    const stack_t own = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK(sigaltstack(&own, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0 && wherry_nofault_init() == 0);
    pid_t senders[SENDERS];
    const pid_t self = getpid();
    for (int i = 0; i < SENDERS; i++)
        if ((senders[i] = fork()) == 0) {
            for (int sent = 0; sent < FLOOD; sent++)
                kill(self, SIGSEGV);
            _exit(0);
        }
    for (int i = 0; i < SENDERS; i++)
        while (waitpid(senders[i], NULL, WNOHANG) == 0)
            CHECK(all_right(true));
}

static void flood(void) { flood_of(does_nothing); }
static void flood_ignored(void) { flood_of(SIG_IGN); }

/* Has signals come at once: the kernel begins the handler of each that the handlers begun before do not block. */
static void at_once(int other, bool sent_to_thread)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigaddset(&set, other);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && kill(getpid(), SIGSEGV) == 0);
    CHECK(sent_to_thread ? raise(other) == 0 : kill(getpid(), other) == 0);
    CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static volatile uintptr_t frames[2];
static volatile int begun;

static void notes_frame(int signo)
{
    (void)signo;
    if (begun < 2)
        frames[begun] = (uintptr_t)__builtin_frame_address(0);
    begun++;
}

/* One signal waits until the handler of the other has returned. */
static void in_turn(void)
{
    CHECK(signal(SIGSEGV, notes_frame) != SIG_ERR && wherry_nofault_init() == 0);
    at_once(SIGSEGV, true);
    CHECK(begun == 2 && frames[0] == frames[1]);
}

/* A handler of another signal never begins while SIGSEGV is blocked on this library's account: its copies may fault. */
static volatile sig_atomic_t copied;
static void copies(int signo)
{
    (void)signo;
    copied = all_right(true);
}

static void beside(void)
{
    CHECK(signal(SIGUSR1, copies) != SIG_ERR && signal(SIGSEGV, SIG_IGN) != SIG_ERR && wherry_nofault_init() == 0);
    at_once(SIGUSR1, false);
    CHECK(copied);
}

/* A child of fork finds no thread at work that was at work in its parent. */
static atomic_bool enough;

static void *installs(void *unused)
{
    while (!atomic_load(&enough))
        wherry_nofault_init();
    return unused;
}

static void forked(void)
{
    pthread_t other;
    CHECK(pthread_create(&other, NULL, installs, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            _exit(wherry_nofault_init() == 0 && copies_right(20, 64, false, true) ? 0 : 1);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    atomic_store(&enough, true);
    pthread_join(other, NULL);
}

/* The first process of a container, whom no signal kills that somebody sends with the default action. Status 77: not to
 * be had here. */
static void first(void)
{
    if (unshare(CLONE_NEWPID))
        _exit(77);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(getpid() == 1 && wherry_nofault_init() == 0);
        CHECK(kill(1, SIGSEGV) == 0 && raise(SIGBUS) == 0);
        _exit(all_right(true) ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
#define SCENE(name) {#name, name}
    SCENE(stack),         SCENE(restart), SCENE(no_restart), SCENE(ignored), SCENE(flood),
    SCENE(flood_ignored), SCENE(in_turn), SCENE(beside),     SCENE(forked),  SCENE(first),
#undef SCENE
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        if (argc < 2) {
            puts(scenes[i].name);
        } else if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].run();
            return 0;
        }
    return argc < 2 ? 0 : 2;
}
