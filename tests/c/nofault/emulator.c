/* Does an emulator deliver a signal that a process queues to itself with the code of a fault, as a kernel does? Exit
 * status 0: yes. Knows nothing of the library, which hands faults on to the default action in this way. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    const pid_t child = fork();
    if (child == 0) {
        sigset_t set;
        siginfo_t info = {.si_signo = SIGSEGV, .si_code = SEGV_MAPERR};
        info.si_addr = (void *)64;
        sigemptyset(&set);
        sigaddset(&set, SIGSEGV);
        sigprocmask(SIG_BLOCK, &set, NULL);
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGSEGV, &info);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    printf("status 0x%x\n", (unsigned)status);
    return !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
