#include "single.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host.h"
#include "timed.h"

/* A stretch is as short as may be without asking the kernel after each call: what another program disturbs of it is
 * lost, and so many calls more are not counted. BEYOND: of the calls so many lie past the percentile, or chance alone
 * would tell it. */
static const double CLEARLY = 1.2;
enum { READINGS = 1000, RATE_NS = 2000000, STRETCH_NS = 300000, TIMES = 3, AGAIN = 4096, BEYOND = 10, LEAST = 100 };

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void single_make(struct single *single)
{
    if (single->tick_ns > 0)
        return;
    uint64_t step = 0, last = counter();
    for (int i = 0; i < READINGS; i++) {
        const uint64_t now = counter();
        step = common_divisor(step, now - last);
        last = now;
    }
    single->step_ticks = step ? (uint32_t)step : 1;
    const uint64_t begin_ns = clock_ns(), begin = counter();
    while (clock_ns() - begin_ns < RATE_NS)
        ;
    single->tick_ns = (double)(clock_ns() - begin_ns) / (double)(counter() - begin);
}

uint32_t *single_room(void)
{
    void *room = mmap(NULL, SINGLE_MOST * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room == MAP_FAILED ? NULL : room;
}

uint64_t single_least(double percentile) { return (uint64_t)fmax(ceil(BEYOND / (1 - percentile / 100) - 0.5), LEAST); }

static long switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The part of the calls whose reading is `ticks` and more. */
static double beyond(const uint32_t *sorted, uint64_t count, int64_t ticks)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (sorted[middle] < ticks)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)(count - low) / (double)count;
}

/* The counter may go by steps of 10 ns, so a call of 44 ns reads 40 or 50, as chance has it. But the part of the calls
 * that read k steps and more is the part that last longer than x steps, averaged over x from k - 1 to k. Within such a
 * step, between two others, the times are taken to lie at one place, which that average tells: calls that all last
 * 44 ns are told as such, at every percentile. Whether the percentile lies in the step of its reading or in the next
 * one is decided by which has clearly more of the calls around it; else it lies between both. */
static double percentile_of(const uint32_t *sorted, uint64_t count, double percentile, uint32_t step)
{
    const uint64_t rank = (uint64_t)(percentile / 100 * (double)count);
    const uint32_t reading = sorted[rank < count ? rank : count - 1];
    double part[4]; /* from the step before the reading's to the second after it */
    for (int i = 0; i < 4; i++)
        part[i] = beyond(sorted, count, (int64_t)reading + (i - 1) * (int64_t)step);
    const double here = part[0] - part[2], next = part[1] - part[3];
    const double at = reading - step + step * (part[1] - part[2]) / here;
    const double behind = reading + step * (part[2] - part[3]) / next;
    const double way = (part[1] - (1 - percentile / 100)) / (part[1] - part[2]);
    if (here > CLEARLY * next)
        return fmax(at, 0);
    return next > CLEARLY * here ? behind : fmax(at + (behind - at) * fmin(fmax(way, 0), 1), 0);
}

static uint64_t next_call(single_call *time_call, loop_fn *fn, struct walk *walk)
{
    const struct one_call call = walk_next(walk);
    return time_call(fn, call.dst, call.src, call.n);
}

double single_calls(const struct single *single, loop_fn *fn, struct walk *walk, uint64_t calls, double percentile,
                    uint32_t *ticks, bool *calm)
{
    for (uint64_t i = 0; i < calls; i++) /* its pages shall be there */
        ((volatile uint32_t *)ticks)[i] = 0;
    single_call *time_call = loop_of_one();
    const uint64_t stretch = (uint64_t)(STRETCH_NS / single->tick_ns), most = TIMES * calls;
    uint64_t done = 0, made = 0;
    for (*calm = true; done < calls;) {
        const uint64_t first = done;
        const long before = switches();
        for (uint64_t spent = 0; done < calls && spent < stretch; made++) {
            const uint64_t took = next_call(time_call, fn, walk);
            spent += took;
            ticks[done++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
        }
        if (switches() == before)
            continue;
        if (made >= most) {
            *calm = false;
            continue;
        }
        done = first;
        /* What it has put out of the caches. */
        for (uint64_t i = 0, spent = 0; i < AGAIN && spent < stretch; i++)
            spent += next_call(time_call, fn, walk);
    }
    qsort(ticks, calls, sizeof *ticks, ascending);
    return percentile_of(ticks, calls, percentile, single->step_ticks) * single->tick_ns;
}
