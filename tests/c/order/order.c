/* What happens in which order: order-test SCENE [PLAN] lets a thread do something, and after each of its instructions,
 * in a child that is forked there, has somebody else do something whole: another thread, or a handler of signals. Then
 * the first goes on to its end, and all must be as if the two had come one after the other.
 *
 * Says how many instructions there were, and how many were looked at.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "scene.h"

enum { TRAP_FLAG = 0x100, SECONDS = 60 };

const char *order_plan;
static const struct scene *scene;
static volatile unsigned long steps, looked_at;
static unsigned long all;

static void *between(void *unused)
{
    scene->between();
    return unused;
}

static void do_between(void)
{
    pthread_t other;
    if (scene->who == HANDLER)
        scene->between();
    else if (pthread_create(&other, NULL, between, NULL) || pthread_join(other, NULL))
        _exit(2);
}

static void step(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    steps++;
    if (!all || (scene->each && steps + scene->last < all && steps % scene->each))
        return;
    looked_at++;
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        do_between();
        if (!scene->goes_on)
            _exit(!scene->right());
        all = 0;
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (code != SKIPPED)
            printf("%s: wrong (%d) when it comes after %lu of %lu instructions\n", scene->name, code, steps, all);
        fflush(stdout);
        _exit(code == SKIPPED ? SKIPPED : 1);
    }
}

static void stepping(bool on)
{
    if (on)
        __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "cc", "memory");
    else
        __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~TRAP_FLAG) : "cc", "memory");
}

static unsigned long go(void)
{
    const pid_t self = getpid();
    steps = 0;
    stepping(true);
    scene->stepped();
    stepping(false);
    if (getpid() != self)
        _exit(!scene->right());
    return steps;
}

int main(int argc, char **argv)
{
    const struct scene *const files[] = {scenes_of_owners, scenes_of_looks};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (const struct scene *one = files[i]; one->name; one++) {
            if (argc < 2)
                puts(one->name);
            else if (!strcmp(argv[1], one->name))
                scene = one;
        }
    if (!scene)
        return argc < 2 ? 0 : 2;
    order_plan = argc > 2 ? argv[2] : NULL;
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    scene->first();
    /* How many there are, in a child, since what it does may be done but once. */
    int ends[2];
    if (pipe(ends))
        return 2;
    const pid_t counts = fork();
    if (counts == 0) {
        const unsigned long found = go();
        _exit(write(ends[1], &found, sizeof found) != sizeof found);
    }
    unsigned long found;
    if (counts < 0 || read(ends[0], &found, sizeof found) != sizeof found || waitpid(counts, NULL, 0) != counts)
        return 2;
    if (!found) {
        puts("nothing steps here");
        return SKIPPED;
    }
    all = found;
    go();
    printf("%lu %lu\n", steps, looked_at);
    return 0;
}
