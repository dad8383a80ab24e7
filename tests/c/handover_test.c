/* Which bytes the thread that hands lines over touches, and how: what it may not read or write ends this process by
 * SIGSEGV, since that thread blocks all signals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "measure/handover.h"

enum { PAGE = 4096, LINE = 64, CALLS = 5 };

/* What the CPUs are is no matter here. */
bool thread_pin(unsigned cpu)
{
    (void)cpu;
    return true;
}
bool cpus_share_core(unsigned cpu, unsigned other) { return cpu / 2 == other / 2; }

static char *pages(int first, int second)
{
    char *at = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(77);
    memset(at, 7, (size_t)2 * PAGE);
    mprotect(at, PAGE, first);
    mprotect(at + PAGE, PAGE, second);
    return at;
}

static void hand_over(char *src, char *dst, size_t n, enum sides sides, uint64_t calls)
{
    static struct host host = {.cpu = 0, .cpus = {0, 1, 9, 2}, .cpu_count = 4};
    const struct row row = {.handed = sides, .handed_by = -1};
    static const struct slot slots[CALLS] = {{32, 4}, {8, 30}, {16, 12}, {24, 20}, {0, 0}};
    const uint64_t sizes[] = {n};
    const struct walk walk = {.dst = dst,
                              .src = src,
                              .slots = slots,
                              .slots_end = slots + CALLS,
                              .slot = slots + CALLS - 1, /* so that it goes on at the first */
                              .sizes = sizes,
                              .sizes_end = sizes + 1,
                              .size = sizes};
    const char *problem;
    struct handover *handover = handover_to(&host, &row, &problem);
    if (!handover) {
        printf("%s\n", problem);
        exit(1);
    }
    printf("by CPU %u\n", handover_cpu(handover));
    for (int turn = 0; turn < 2; turn++) {
        handover_begin(handover);
        for (int pass = 0; pass < 3; pass++)
            handover_lines(handover, &walk, sides, calls);
        handover_end(handover);
    }
}

/* Tells the places of the bytes that are not as they were, and what they are. */
static void tell(const char *name, const char *at)
{
    printf("%s", name);
    for (int i = 0; i < 2 * PAGE; i++)
        if (at[i] != 7)
            printf(" %d:%d", i, at[i]);
    printf("\n");
}

/* The CPU that is asked for, or why not. */
static int ask(int handed_by)
{
    static struct host host = {.cpu = 4, .cpus = {4, 5, 0, 1}, .cpu_count = 4};
    const struct row row = {.handed = SIDES_SOURCE, .handed_by = handed_by};
    const char *problem;
    struct handover *handover = handover_to(&host, &row, &problem);
    printf("%s", handover ? "" : problem);
    if (handover)
        printf("by CPU %u", handover_cpu(handover));
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    const enum sides sides = argc > 2 ? (enum sides)atoi(argv[2]) : SIDES_NONE;
    const int all = PROT_READ | PROT_WRITE;
    if (argc == 3 && strcmp(argv[1], "bytes") == 0) {
        char *src = pages(all, all), *dst = pages(all, all);
        hand_over(src + 5, dst + 9, 100, sides, 3);
        tell("source", src);
        tell("destination", dst);
        return 0;
    }
    if (argc == 6 && strcmp(argv[1], "pages") == 0) { /* SIDES PROTECTION-OF-SOURCE OF-DESTINATION BYTES */
        char *src = pages(atoi(argv[3]), PROT_NONE), *dst = pages(atoi(argv[4]), PROT_NONE);
        hand_over(src, dst, (size_t)atoi(argv[5]), sides, 1);
        return 0;
    }
    return argc == 3 && strcmp(argv[1], "ask") == 0 ? ask(atoi(argv[2])) : 2;
}
