/* Calls that may crash or hang: other people's code, loaded at run time. */
#ifndef RUNNER_GUARDED_H
#define RUNNER_GUARDED_H

#include <stdbool.h>

/* How a guarded call ended. */
struct guarded_result {
    bool crashed, hung;
    int signo;     /* of a crash */
    void *address; /* si_addr of a crash */
};

/* Runs call(context) with SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGTRAP caught on a stack of their own and,
 * with limit_ms > 0, stopped after that wall time. After a crash or a hang the call's side effects are whatever they
 * were (locks held, memory half-written): report it and leave the process soon. Not to be nested; one thread. */
struct guarded_result guarded_call(void (*call)(void *), void *context, unsigned limit_ms);

#endif
