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

static void ignored(void)
{
    CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR && wherry_nofault_init() == 0);
    CHECK(read_disturbed() == 1 && all_right(true));
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
    SCENE(stack), SCENE(restart), SCENE(no_restart), SCENE(ignored), SCENE(forked), SCENE(first),
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
