/* Copies from, and sets of, memory that ends with a page: what is left must be exact wherever registers are only seen
 * through an emulator. exact DISTANCE: destinations into a page that cannot be written lie no less than that below a
 * source that overlaps; an emulator that makes one store of two spoils nearer ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wherry.h"

enum { PAGES = 16, PAGE = 4096, BEYOND = 50 };

/* Both sides overlap around the end of what can be read (or written, where the rest is read-only). */
static unsigned overlap(size_t nearest)
{
    enum { WRITABLE = 2 * PAGE, ALL = 5 * PAGE, STEP = 3 };
    static unsigned char model[ALL];
    static const size_t distances[] = {1, 5, 13, 16, 17, 31, 32, 40, 63, 200, 1000};
    unsigned char *at = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++)
        for (int kind = 0; kind < 4; kind++) {
            const size_t distance = distances[i];
            const int below = kind & 1, readable = kind & 2; /* dst below src; what is behind can be read */
            if (below && readable && distance < nearest)
                continue;
            for (size_t have = 1; have < 1500; have += have < 40 ? STEP : 41) {
                const size_t start = WRITABLE - have, n = have + 1700; /* have: of the side that ends first */
                const size_t dst = readable || !below ? start : start - distance;
                const size_t src = below ? dst + distance : dst - distance;
                if (mprotect(at, ALL, PROT_READ | PROT_WRITE))
                    return 1;
                for (size_t j = 0; j < ALL; j++)
                    at[j] = model[j] = (unsigned char)(j * 7 + j / 256);
                if (mprotect(at + WRITABLE, ALL - WRITABLE, readable ? PROT_READ : PROT_NONE))
                    return 1;
                const size_t left = wherry_copy_nofault(at + dst, at + src, n, NULL);
                memmove(model + dst, model + src, have);
                if (mprotect(at, ALL, PROT_READ))
                    return 1;
                if (left == n - have && memcmp(at, model, ALL) == 0)
                    continue;
                wrong++;
                printf("%zu there, dst %zu %s src, %s: %zu left of %zu, or wrong bytes\n", have, distance,
                       below ? "below" : "above", readable ? "read-only" : "gone", left, n);
            }
        }
    return wrong;
}

int main(int argc, char **argv)
{
    static unsigned char buffer[PAGES * PAGE + BEYOND];
    unsigned char *pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *const end = pages + PAGES * PAGE;
    if (pages == MAP_FAILED || mprotect(end, PAGE, PROT_NONE) || wherry_nofault_init())
        return 2;
    unsigned wrong = overlap(argc > 1 ? strtoul(argv[1], NULL, 10) : 0);
    /* Both sides end, each at its own byte: what is left is told by the nearer. */
    unsigned char *other = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other == MAP_FAILED || mprotect(other + PAGE, PAGE, PROT_NONE))
        return 2;
    for (size_t n = 1; n <= 24; n++)
        for (size_t i = 0; i < (n + 1) * (n + 1); i++) {
            const size_t to = i % (n + 1), from = i / (n + 1), there = from < to ? from : to;
            const size_t left = wherry_copy_nofault(other + PAGE - to, end - from, n, NULL);
            if (left == n - there)
                continue;
            wrong++;
            printf("%zu bytes, %zu of them there, %zu of the destination: %zu left\n", n, from, to, left);
        }
    for (size_t have = 0; have <= PAGES * PAGE; have += have < 700 ? 1 : 4099) {
        struct wherry_fault fault = {0};
        memset(pages, 7, PAGES * PAGE);
        memset(buffer, 1, sizeof buffer);
        const size_t copied = wherry_copy_nofault(buffer, end - have, have + BEYOND, &fault);
        const bool whole = !have || (!memcmp(buffer, end - have, have) && buffer[have] == 1);
        const size_t set = wherry_set_nofault(end - have, 9, have + BEYOND, NULL);
        if (copied == BEYOND && set == BEYOND && whole && fault.addr == end && !fault.writing)
            continue;
        wrong++;
        printf("%zu there: %zu left of a copy, %zu of a set, not %d\n", have, copied, set, BEYOND);
    }
    return wrong != 0;
}
