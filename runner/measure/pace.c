#include "pace.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dispatch/dispatch.h"
#include "host.h"
#include "routines/registry.h"

enum { TURNS = 1500, WARM_UP_NS = 30000000, PATIENCE_MS = 1500, NAP_MS = 10, MOST_BYTES = 4 << 20 };
enum { PASSES = 12, PASSES_NS = 2000000 };

/* A reading of the core repeats within 2 %, one of the memory within 5 %; a neighbour costs 20 % and more. */
static const double SLOW_CORE = 1.07, SLOW_MEMORY = 1.12;

/* Sixteen additions a turn in eight chains: more than a core can do in two cycles, so that a neighbour that takes any
 * of its places slows it down. */
static __attribute__((noinline)) void additions(unsigned turns)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (unsigned i = 0; i < turns; i++)
        __asm__ volatile("addq $1, %0\n\taddq $1, %1\n\taddq $1, %2\n\taddq $1, %3\n\t"
                         "addq $1, %4\n\taddq $1, %5\n\taddq $1, %6\n\taddq $1, %7\n\t"
                         "addq $3, %0\n\taddq $3, %1\n\taddq $3, %2\n\taddq $3, %3\n\t"
                         "addq $3, %4\n\taddq $3, %5\n\taddq $3, %6\n\taddq $3, %7"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
}

struct reading pace_read(struct pace *pace)
{
    uint64_t core = UINT64_MAX, memory = UINT64_MAX;
    for (int i = 0; i < 3; i++) { /* an interrupt spoils one, not three */
        uint64_t began = clock_ns();
        additions(TURNS);
        uint64_t took = clock_ns() - began;
        core = took < core ? took : core;
    }
    /* After a row that works in DRAM the last-level cache is full of lines that have to be written back first; and what
     * a cache that others share has lost in a few milliseconds is all there again only after some hundred passes (Zen
     * 3). So some passes more, and only who is slow then has a neighbour. */
    const double at_most = SLOW_MEMORY * pace->best.memory * (double)pace->bytes / 1024;
    const uint64_t first = clock_ns();
    uint64_t now = first;
    for (int i = 0; pace->memory && (i < 2 || ((double)memory > at_most && (i < PASSES || now - first < PASSES_NS)));
         i++) {
        const uint64_t began = now;
        pace->copy(pace->memory + (i % 2 ? pace->bytes : 0), pace->memory + (i % 2 ? 0 : pace->bytes), pace->bytes);
        now = clock_ns();
        memory = now - began < memory ? now - began : memory;
    }
    struct reading reading = {(double)core / TURNS, pace->memory ? (double)memory * 1024 / (double)pace->bytes : 0};
    pace->best.core = fmin(pace->best.core, reading.core);
    pace->best.memory = fmin(pace->best.memory, reading.memory);
    return reading;
}

void pace_init(struct pace *pace, size_t l2, struct reading known)
{
    const double unknown = 1e9;
    *pace = (struct pace){.best = {known.core > 0 ? known.core : unknown, known.memory > 0 ? known.memory : unknown},
                          .patience_ms = PATIENCE_MS,
                          .bytes = l2 < MOST_BYTES ? l2 : MOST_BYTES};
    /* Not the public function: its tier is forced now and then, and the copy must stay the same. */
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    char name[32]; /* of the CPU, not of the plan in force: not every choice has a routine of its name */
    snprintf(name, sizeof name, "move_%s", wherry_isa_names[wherry_plan_isa(&cpu)]);
    pace->copy = wherry_routine_find(name)->copy;
    void *memory = mmap(NULL, 2 * pace->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pace->bytes && memory != MAP_FAILED) {
        memset(memory, 1, 2 * pace->bytes);
        pace->memory = memory;
    }
    for (uint64_t began = clock_ns(); clock_ns() - began < WARM_UP_NS;)
        pace_read(pace);
}

bool pace_is_slow(const struct pace *pace, struct reading reading)
{
    return reading.core > SLOW_CORE * pace->best.core || reading.memory > SLOW_MEMORY * pace->best.memory;
}

struct reading pace_wait(struct pace *pace)
{
    const double measured_ms = pace->waited_ns ? (double)(clock_ns() - pace->waited_ns) / 1e6 : 0;
    pace->patience_ms = fmin(pace->patience_ms + measured_ms, PATIENCE_MS);
    struct reading reading = pace_read(pace);
    while (pace_is_slow(pace, reading) && !host_interrupted) {
        if (pace->patience_ms <= 0) {
            pace->best = reading;
            break;
        }
        const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
        nanosleep(&nap, NULL);
        pace->patience_ms -= NAP_MS;
        reading = pace_read(pace);
        if (pace_is_slow(pace, reading)) /* after a sleep the caches are cold */
            reading = pace_read(pace);
    }
    pace->waited_ns = clock_ns();
    return reading;
}
