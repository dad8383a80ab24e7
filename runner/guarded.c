#include "guarded.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
enum { FATAL_COUNT = sizeof fatal_signals / sizeof fatal_signals[0], STACK_BYTES = 64 * 1024 };

static sigjmp_buf escape;
static volatile sig_atomic_t caught_signal, escaping;
static void *volatile caught_address;
static char handler_stack[STACK_BYTES] __attribute__((aligned(64)));

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    /* A routine may have left the direction flag set; the code after the jump is compiled for a clear one. */
    __asm__ volatile("cld");
    /* The frame that the jump goes to may be overwritten: a fault there must not come back here for ever. */
    if (escaping) {
        if (signo != SIGALRM)
            signal(signo, SIG_DFL);
        return;
    }
    escaping = 1;
    caught_signal = signo;
    caught_address = info->si_addr;
    siglongjmp(escape, 1);
}

struct guarded_result guarded_call(void (*call)(void *), void *context, unsigned limit_ms)
{
    struct guarded_result result = {0};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old[FATAL_COUNT],
                     old_alarm;
    stack_t stack = {.ss_sp = handler_stack, .ss_size = STACK_BYTES}, old_stack;
    sigaltstack(&stack, &old_stack);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; i++)
        sigaction(fatal_signals[i], &action, &old[i]);
    sigaction(SIGALRM, &action, &old_alarm);
    const struct itimerval off = {0};
    escaping = 0;
    if (sigsetjmp(escape, 1) == 0) {
        const struct itimerval limit = {.it_value = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000}};
        if (limit_ms)
            setitimer(ITIMER_REAL, &limit, NULL);
        call(context);
    } else if (caught_signal == SIGALRM) {
        result.hung = true;
    } else {
        result.crashed = true;
        result.signo = caught_signal;
        result.address = caught_address;
    }
    if (limit_ms)
        setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &old_alarm, NULL);
    for (int i = 0; i < FATAL_COUNT; i++)
        sigaction(fatal_signals[i], &old[i], NULL);
    if (!(old_stack.ss_flags & SS_DISABLE))
        sigaltstack(&old_stack, NULL);
    return result;
}
