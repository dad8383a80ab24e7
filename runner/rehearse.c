/* Small copies, moves and sets of every class of sizes, with everything in the nearest cache: what a recorder that is
 * preloaded times here is what the same calls take at best, and what its way of timing adds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "json.h"
#include "measure/random.h"

enum {
    LARGEST_LOG = 11, /* classes of two an octave, below this */
    CALLS = 8000,     /* the recorder times one in 61 */
    PAGE = 4096,
    FAR = PAGE / 2,
    ROOM = 2 * PAGE,
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Calls through the names that a program calls, whoever answers them. */
static void rehearse_class(char *to, const char *from, size_t least, size_t sizes, uint64_t *random)
{
    for (unsigned op = 0; op < 3; op++) {
        for (unsigned i = 0; i < CALLS; i++) {
            const size_t n = least + random_below(random, sizes);
            /* Half a page apart: string instructions crawl where the sides are nearly alike mod 4096. */
            const size_t at = random_below(random, 64), other = FAR + 7 * at % 64;
            if (op == 0)
                memcpy(to + at, from + other, n);
            else if (op == 1)
                memmove(to + at, from + other, n);
            else
                memset(to + at, 0x5a, n);
        }
    }
}

int command_rehearse(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return puts("usage: wherry-run rehearse\n\nCopies, moves and sets below 2 KiB, cached, so that a recorder can "
                    "time them, "
                    "and tells how many\nticks the processor's clock makes in a nanosecond. For wherry record, which "
                    "preloads its recorder into\nit once after each boot."),
               EXIT_OK;
    if (argc > 1)
        return misuse("rehearse: unknown argument '%s'; wherry-run rehearse --help", argv[1]);
    char *to = aligned_alloc(PAGE, ROOM), *from = aligned_alloc(PAGE, ROOM);
    if (!to || !from) {
        free(to);
        free(from);
        fputs("wherry-run: rehearse: out of memory\n", stderr);
        return EXIT_FAILED;
    }
    memset(to, 1, ROOM);
    memset(from, 2, ROOM);
    uint64_t random = 1;
    const uint64_t begin_ns = now_ns(), begin = __builtin_ia32_rdtsc();
    rehearse_class(to, from, 0, 1, &random);
    for (unsigned octave = 0; octave < LARGEST_LOG; octave++) {
        const size_t half = octave ? (size_t)1 << (octave - 1) : 1;
        for (size_t part = 0; part < (octave ? 2 : 1); part++)
            rehearse_class(to, from, ((size_t)1 << octave) + part * half, half, &random);
    }
    while (now_ns() - begin_ns < 50000000)
        ;
    const uint64_t end = __builtin_ia32_rdtsc();
    json_begin("rehearsed");
    json_double("ticks_per_ns", (double)(end - begin) / (double)(now_ns() - begin_ns));
    json_end();
    free(to);
    free(from);
    return EXIT_OK;
}
