/* System calls by hand. The C library's wrappers set errno, and a sanitizer or a preloaded library may stand between
 * them and the kernel; what counts here is what the kernel knows. */
#ifndef WHERRY_GUARD_KERNEL_H
#define WHERRY_GUARD_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Returns the result, or an errno value, negative. */
static inline long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* struct sigaction and the signal set as the kernel has them; signal s is bit s - 1. */
struct kernel_action {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

static inline uint64_t kernel_bit(int signo) { return (uint64_t)1 << (signo - 1); }

/* Either may be NULL. */
static inline long kernel_sigaction(int signo, const struct kernel_action *action, struct kernel_action *old)
{
    return kernel_call(SYS_rt_sigaction, signo, (long)action, (long)old, sizeof(uint64_t), 0, 0);
}

static inline long kernel_sigmask(int how, const uint64_t *set, uint64_t *old)
{
    return kernel_call(SYS_rt_sigprocmask, how, (long)set, (long)old, sizeof(uint64_t), 0, 0);
}

#endif
