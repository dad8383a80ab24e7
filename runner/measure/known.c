#include "known.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "host.h"
#include "loops.h"
#include "random.h"
#include "stats.h"

enum { LINK_BYTES = 4, TURN_LINKS = 64, TURNS = 2000, RUNS = 9, PAGE = 4096 };

loop_fn known_copy, known_chain;
extern const char known_copy_end[];
void known_long_run(uint64_t turns);
extern const char known_chain_end[];
extern const char *known_entry;

const char *known_entry = known_chain_end;

/* "known_chain+561": true, and how many links. */
static bool is_chain(const char *name, unsigned *links)
{
    static const char stem[] = "known_chain+";
    if (strncmp(name, stem, sizeof stem - 1) != 0)
        return false;
    const char *digits = name + sizeof stem - 1;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 4 || digits[count] || (digits[0] == '0' && count > 1))
        return false;
    *links = (unsigned)strtoul(digits, NULL, 10);
    return *links <= KNOWN_LINKS;
}

static bool has(const struct target_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/* A copy of known_copy in a page that lies anywhere, `place` bytes behind its beginning, as an object that was loaded
 * would. NULL when no page may be executed. */
static loop_fn *put(size_t place)
{
    static uint64_t random;
    if (!random && getrandom(&random, sizeof random, 0) < 0)
        random = (uint64_t)(uintptr_t)&random ^ clock_ns();
    /* Where code lies is what branches and stores are predicted by: not always as far from the timed loops. */
    uintptr_t anywhere = ((uintptr_t)1 << 44) + random_below(&random, (uint64_t)1 << 30) * PAGE;
    char *page = mmap((void *)anywhere, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    const char *code = (const char *)(uintptr_t)known_copy;
    memset(page, 0xcc, PAGE); /* int3 */
    memcpy(page + place, code, (size_t)(known_copy_end - code));
    if (mprotect(page, PAGE, PROT_READ | PROT_EXEC) != 0) {
        munmap(page, PAGE);
        return NULL;
    }
    return (loop_fn *)(uintptr_t)(page + place);
}

static loop_fn *copy_of(const char *name)
{
    static struct {
        const char *name;
        size_t place;
    } copies[] = {{"known_copy_a", 320}, {"known_copy_b", 320}, {"known_copy_moved", 2048}};
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++)
        if (strcmp(name, copies[i].name) == 0)
            return put(copies[i].place);
    return NULL;
}

bool known_add(struct target_list *list, const struct row *row)
{
    bool any = false;
    for (size_t i = 0; i < row->routine_count; i++) {
        const char *name = row->routines[i];
        unsigned links = 0;
        bool chain = is_chain(name, &links);
        any = any || chain;
        if (has(list, name))
            continue;
        loop_fn *fn = chain ? known_chain : copy_of(name);
        if (fn)
            targets_add_known(list, name, (void (*)(void))fn, links);
    }
    return any;
}

void known_enter(const struct target *target)
{
    known_entry = known_chain_end - (size_t)LINK_BYTES * (target ? target->links : 0);
}

static double raw_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double known_link_ns(void)
{
    double runs[RUNS];
    known_long_run(TURNS);
    for (int i = 0; i < RUNS; i++) {
        double began = raw_ns();
        known_long_run(TURNS);
        runs[i] = (raw_ns() - began) / ((double)TURNS * TURN_LINKS);
    }
    return stats_median(runs, RUNS, 0, 1);
}
