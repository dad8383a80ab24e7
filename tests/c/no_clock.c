/* A process that may not read the time-stamp counter, by prctl or in seccomp's strict mode: no-clock tsc|strict PLAN.
 * It copies and sets sizes that nobody can foresee, more than often enough for the watch of AVX-512 to look; with
 * `default` in the place of a plan by the default one, with `none` too, and then just by those calls that never read
 * the counter.
 */
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <wherry.h>

int main(int argc, char **argv)
{
    enum { CALLS = 300000, MOST = 1000 };
    static unsigned char to[MOST], from[MOST];
    if (argc < 3 || wherry_nofault_init() != 0)
        return 2;
    const bool plain = strcmp(argv[2], "none") != 0, defaults = strcmp(argv[2], "default") == 0;
    if (plain && !defaults && wherry_plan_load(argv[2]) != 0)
        return 3;
    if (strcmp(argv[1], "tsc") == 0 ? prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)
                                    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 4;
    unsigned dice = 1;
    long wrong = 0;
    for (int i = 0; i < CALLS; i++) {
        dice = dice * 1103515245 + 12345;
        const size_t n = (dice >> 16) % MOST;
        uint32_t sum = 0;
        if (plain) {
            wherry_memcpy(to, from, n);
            wherry_memset(to, i, n);
        }
        wrong += wherry_copy_nofault(to, from, n, NULL) != 0;
        wrong += wherry_set_nofault(to, i, n, NULL) != 0;
        wrong += wherry_csum_copy_nofault(to, from, n, &sum, NULL) != 0;
        wherry_csum_partial_copy(to, from, n, wherry_crc32c(0, from, n));
        wherry_pagezero(to, n);
    }
    syscall(SYS_exit, wrong ? 1 : 0); /* exit() ends by a call that the strict mode has not */
}
