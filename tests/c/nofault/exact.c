/* Copies from, and sets of, memory that ends with a page: what is left must be exact wherever registers are only seen
 * through an emulator. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "wherry.h"

enum { PAGES = 16, PAGE = 4096, BEYOND = 50 };

int main(void)
{
    static unsigned char buffer[PAGES * PAGE + BEYOND];
    unsigned char *pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *const end = pages + PAGES * PAGE;
    if (pages == MAP_FAILED || mprotect(end, PAGE, PROT_NONE) || wherry_nofault_init())
        return 2;
    unsigned wrong = 0;
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
