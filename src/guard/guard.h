/* SIGSEGV and SIGBUS: from a fault to the fault table, and who owns the two signals. */
#ifndef WHERRY_GUARD_H
#define WHERRY_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "wherry.h"

/* Is this a fault of an instruction in the table? Then the context goes on at its resume when the handler returns. */
bool wherry_guard_fix(int signo, const siginfo_t *info, void *ucontext);

/* Makes our handlers the first for both signals; those in force before are chained to. 0, or an errno value. */
int wherry_guard_install(void);

/* What the last wherry_guard_install failed of; 0: nothing. */
int wherry_guard_refused(void);

/* Takes the handlers in force for ones that call wherry_nofault_handle. 0, EINVAL when a signal has none, or what the
 * kernel answers instead of telling. */
int wherry_guard_trust(void);

/* A fault was fixed for a handler that is not ours: it is one that calls wherry_nofault_handle. */
void wherry_guard_noted(int signo);

/* Asks the kernel who owns the signals; where that is forbidden they are as they were when it was last asked. Returns
 * whether a fault of ours would be fixed; fills in everything but the path. */
bool wherry_guard_look(struct wherry_nofault_status *status);

/* Does the kernel tell who owns the signals? */
bool wherry_guard_asks(void);

/* The same work by system calls, which say EFAULT instead of raising a signal. They return the bytes not done. */
size_t wherry_guard_copy_by_calls(void *dst, const void *src, size_t n, struct wherry_fault *fault);
size_t wherry_guard_set_by_calls(void *dst, int c, size_t n, struct wherry_fault *fault);
/* Which of them is allowed: WHERRY_NOFAULT_BY_VM, WHERRY_NOFAULT_BY_PIPE or WHERRY_NOFAULT_BY_NOTHING, and then what a
 * pipe fails of, an errno value. */
enum wherry_nofault_path wherry_guard_calls_allowed(int *error);

#endif
