/* Whether the pace is told, and what waiting for it takes, on a machine that is made up: its time goes by where it
 * copies, measures and sleeps. Prints the milliseconds measured and waited, and the rounds beside which the pace was
 * slow.
 *
 *   crowded  others share the cache: what lay there is gone after each round, and comes back in a hundred passes
 *   phases   a neighbour works for a second, and pauses for ten milliseconds
 *   for-good the memory takes twice as long from the first round on
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dispatch/dispatch.h"
#include "measure/host.h"
#include "measure/pace.h"

enum { ROUNDS = 400, ROUND_NS = 3000000, PASS_NS = 16000, L2 = 512 << 10 };

volatile int host_interrupted;
const char *const wherry_isa_names[WHERRY_ISA_COUNT] = {[WHERRY_ISA_SSE2] = "sse2"};

static const char *machine;
static uint64_t now = 1000000000, begun, waited;
static double gone; /* of what lies in the cache, and more: lines that have to be written back first */

static double neighbour(void)
{
    if (!begun)
        return 1;
    if (strcmp(machine, "phases") == 0)
        return (now - begun) % 1010000000 < 1000000000 ? 1.5 : 1;
    return strcmp(machine, "for-good") == 0 ? 2 : 1;
}

static void lose(void) { gone = strcmp(machine, "crowded") == 0 ? 2 : 0; }

uint64_t clock_ns(void) { return now += 100; }

int nanosleep(const struct timespec *asked, struct timespec *left)
{
    (void)left;
    now += (uint64_t)asked->tv_nsec;
    waited += (uint64_t)asked->tv_nsec;
    lose();
    return 0;
}

static void *copy(void *dst, const void *src, size_t n)
{
    (void)src;
    (void)n;
    now += (uint64_t)(PASS_NS * neighbour() * (1 + gone));
    gone *= 0.96;
    return dst;
}

void wherry_cpu_detect(struct wherry_cpu *cpu) { memset(cpu, 0, sizeof *cpu); }
enum wherry_isa wherry_plan_isa(const struct wherry_cpu *cpu)
{
    (void)cpu;
    return WHERRY_ISA_SSE2;
}
const struct wherry_routine *wherry_routine_find(const char *name)
{
    static const struct wherry_routine routine = {.copy = copy};
    (void)name;
    return &routine;
}

int main(int argc, char **argv)
{
    machine = argc > 1 ? argv[1] : "";
    struct pace pace;
    pace_init(&pace, L2, (struct reading){0, 0});
    begun = now;
    unsigned slow = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const struct reading before = pace_wait(&pace);
        now += ROUND_NS;
        lose();
        slow += pace_is_slow(&pace, before) || pace_is_slow(&pace, pace_read(&pace));
    }
    printf("%d %llu %u\n", ROUNDS * (ROUND_NS / 1000000), (unsigned long long)waited / 1000000, slow);
    return 0;
}
