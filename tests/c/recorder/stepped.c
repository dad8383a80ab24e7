/* recorder-stepped MODE: makes calls that a signal interrupts after each of their instructions, and says how many of
 * which size there were. The recorder has no lock, so a handler that copies may come between any two instructions.
 *   nested  the handler copies, and returns
 *   left    the handler copies, and never returns to the call that it interrupted
 *   forked  the handler forks, now and then copies in the child too, and both return to the call
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { TRAP_FLAG = 0x100, CALLS = 150, NESTED = 3, LEFT = 70, AFTER = 5, EACH = 60, FURTHER = 29, MOST_STEPS = 6000 };
enum { WHOLE = 150, FORKED_EACH = 397, COPIES_EACH = 5 };

static char from[1024], to[1024], other[1024];
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static unsigned long steps, leave_at, inside, left;
static bool leaves, forks, child;
static sigjmp_buf back;

static void copies(unsigned count, size_t n)
{
    for (unsigned i = 0; i < count; i++)
        copy(other, from, n);
    inside += count;
}

static void fork_here(ucontext_t *context)
{
    const pid_t forked = child ? -1 : fork();
    int status = 0;
    if (forked == 0) {
        child = true;
        context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG; /* it need not be looked at itself */
        if (steps % COPIES_EACH == 0)
            copy(other, from, 901);
    } else if (forked > 0) {
        inside++;
        left += steps % COPIES_EACH == 0;
        if (waitpid(forked, &status, 0) != forked || status) {
            printf("a child that was forked after %lu instructions ended with %d\n", steps, status);
            exit(1);
        }
    }
}

static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    steps++;
    if (forks) {
        if (!child && (steps < WHOLE || steps % FORKED_EACH == 0))
            fork_here(context);
    } else if (!leaves) {
        copies(NESTED, 901);
    } else if (steps == leave_at) {
        copies(LEFT, 901);
        left++;
        siglongjmp(back, 1);
    }
}

static void stepping(bool on)
{
    if (on)
        __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "cc", "memory");
    else
        __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~TRAP_FLAG) : "cc", "memory");
}

static void stepped_call(void)
{
    stepping(true);
    copy(to, from, 902);
    stepping(false);
    if (child)
        exit(0);
}

int main(int argc, char **argv)
{
    leaves = argc > 1 && strcmp(argv[1], "left") == 0;
    forks = argc > 1 && strcmp(argv[1], "forked") == 0;
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    static unsigned long after, calls;
    if (!leaves) {
        for (; calls < CALLS; calls++)
            stepped_call();
    } else {
        for (leave_at = 1; leave_at < MOST_STEPS; leave_at += leave_at < EACH ? 1 : FURTHER) {
            steps = 0;
            calls++;
            if (sigsetjmp(back, 1) == 0)
                stepped_call();
            for (unsigned i = 0; i < AFTER; i++, after++)
                copy(other, from, 903);
        }
    }
    printf("%lu %lu %lu %lu %lu\n", inside, calls, left, after, steps);
    return 0;
}
