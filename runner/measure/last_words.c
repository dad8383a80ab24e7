#include "last_words.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "json.h"

struct words {
    volatile bool over;
    volatile int64_t row;
    char routine[80]; /* empty: nobody's */
};

static struct words *words;
static pid_t process; /* who has it */

static _Noreturn void wait_for_the_end(pid_t parent)
{
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGUSR1);
    sigprocmask(SIG_BLOCK, &end, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    int signo;
    if (getppid() == parent)
        sigwait(&end, &signo);
    if (!words->over && words->routine[0]) {
        json_begin("crash");
        json_int("id", words->row);
        json_string("routine", words->routine);
        json_int("signal", 0);
        json_string("message", "ended the process");
        json_end();
    }
    _exit(0);
}

void last_words_begin(void)
{
    void *page = mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    words = page;
    fflush(NULL);
    process = getpid();
    /* Not by fork(), which would call what a peer may have asked it to call in the child. */
    if (syscall(SYS_fork) == 0)
        wait_for_the_end(process);
}

void last_words_of(int64_t row, const char *routine)
{
    if (!words)
        return;
    if (getpid() != process)
        _exit(0); /* a call has forked and returned in both: one of the two measures on */
    words->row = row;
    snprintf(words->routine, sizeof words->routine, "%s", routine ? routine : "");
}

void last_words_over(void)
{
    if (words)
        words->over = true;
}
