#include "ghz.h"

#include <stdint.h>

#include "host.h"

enum { LINKS = 64, TURNS = 1000, RUNS = 9, WARM_UP_NS = 20000000 };

/* Each addition waits for the one before and takes one cycle on every x86-64 CPU. The second operand is a register:
 * additions of constants are folded into one another by some CPUs. */
static __attribute__((noinline)) void chain(uint64_t turns)
{
    uint64_t sum = 1, step = 3;
    __asm__ volatile(".p2align 5\n"
                     "1:\n\t"
                     ".rept %c3\n\t"
                     "addq %2, %0\n\t"
                     ".endr\n\t"
                     "decq %1\n\t"
                     "jnz 1b"
                     : "+r"(sum), "+r"(turns)
                     : "r"(step), "i"(LINKS)
                     : "cc");
}

double clock_ghz(void)
{
    for (uint64_t began = clock_ns(); clock_ns() - began < WARM_UP_NS;)
        chain(TURNS);
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) { /* an interrupt spoils one, not all */
        uint64_t began = clock_ns();
        chain(TURNS);
        uint64_t took = clock_ns() - began;
        least = took < least ? took : least;
    }
    return (double)(LINKS * TURNS) / (double)least;
}
