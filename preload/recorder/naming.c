/* Threads that get their names after their first call, as each of Rust's and many of C++'s do. The two functions of
 * libc that name threads pass through here, so that no call that is counted has to ask for a name. What a thread
 * counted before is told under its new name, too, but for one whose block has the counts of others of another name.
 * Nothing is asked of the kernel but what the caller asks: it may have forbidden itself system calls. */
#include "recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int (*next_setname)(uintptr_t thread, const char *name);
static int (*clock_of)(uintptr_t thread, int *clock);
static int (*next_prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

void recorder_find_naming(void)
{
    next_setname = (int (*)(uintptr_t, const char *))recorder_find("pthread_setname_np");
    next_prctl = (int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long))recorder_find("prctl");
    clock_of = (int (*)(uintptr_t, int *))recorder_find("pthread_getcpuclockid");
}

uintptr_t recorder_thread(void)
{
    uintptr_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return self;
}

uint32_t recorder_parents_number(void)
{
    int clock;
    if (!clock_of || clock_of(recorder_thread(), &clock) != 0)
        return 0;
    return ~(uint32_t)(clock >> 3); /* as the kernel has it in the number of a thread's clock */
}

/* What is thread-local lies equally far from the thread pointer in all threads. */
void recorder_note_name(uintptr_t thread, const char *name)
{
    if (!*recorder_alive)
        return;
    const uintptr_t self = recorder_thread();
    struct recorder_block *block = *(struct recorder_block **)(thread + ((uintptr_t)&recorder_mine - self));
    if ((uintptr_t)block <= (uintptr_t)CLAIMING)
        return;
    const char *before = (const char *)(thread + ((uintptr_t)recorder_before - self));
    char given[THREAD_NAME] = {0};
    for (unsigned i = 0; i < THREAD_NAME - 1 && name[i]; i++)
        given[i] = name[i];
    recorder_name(block, block->claims == 1 || recorder_same_name(given, before) ? given : NULL);
}

__attribute__((visibility("default"))) int pthread_setname_np(uintptr_t thread, const char *name)
{
    if (!next_setname && recorder_find_next())
        recorder_find_naming();
    if (!next_setname)
        return ENOSYS;
    const int failed = next_setname(thread, name);
    if (!failed)
        recorder_note_name(thread, name);
    return failed;
}

__attribute__((visibility("default"))) int prctl(int option, ...)
{
    va_list list;
    va_start(list, option);
    const unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long),
                        c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    if (!next_prctl && recorder_find_next())
        recorder_find_naming();
    if (!next_prctl) {
        /* Before libc is there; its errno is none of ours. */
        const long answer = recorder_syscall(SYS_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
        return answer < 0 ? -1 : (int)answer;
    }
    const int result = next_prctl(option, a, b, c, d);
    if (option == PR_SET_NAME && !result)
        recorder_note_name(recorder_thread(), (const char *)a);
    return result;
}
