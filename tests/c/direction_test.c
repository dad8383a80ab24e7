/* Which way the loop of a large copy goes, by copy_backward_ahead: in every tier, by every public function that copies;
 * and that a large buffer which is moved to where it is is left alone.
 * A page in the middle of the source is missing: what had been stored when the copy came to it tells the way. */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "routines/thresholds.h"
#include "wherry.h"

enum { PAGE = 4096, PAGES = 7, MISSING = 3, SIZE = (PAGES - 1) * PAGE };

static unsigned failures;
static uint8_t *to, *from;
static sigjmp_buf before;

static void on_fault(int signo)
{
    (void)signo;
    siglongjmp(before, 1);
}

static void swapped(void *dst, const void *src, size_t n) { wherry_bcopy(src, dst, n); }

static const struct way {
    const char *name;
    void (*fn)(void);
} ways[] = {
    {"memcpy", (void (*)(void))wherry_memcpy},
    {"memmove", (void (*)(void))wherry_memmove},
    {"mempcpy", (void (*)(void))wherry_mempcpy},
    {"bcopy", (void (*)(void))swapped},
};

/* The destination so many bytes ahead of the source, mod 4096. */
static bool backward(const struct way *way, size_t ahead)
{
    const uint8_t *const src = from + 100;
    uint8_t *const dst = to + (100 + ahead) % PAGE;
    memset(to, 0, (PAGES + 1) * PAGE);
    if (sigsetjmp(before, 1) == 0) {
        ((void (*)(void *, const void *, size_t))way->fn)(dst, src, SIZE);
        failures++;
        printf("%s: read a missing page\n", way->name);
    }
    const bool low = dst[(MISSING - 1) * PAGE] != 0, high = dst[(MISSING + 2) * PAGE] != 0;
    if (low == high) {
        failures++;
        printf("%s: %zu ahead, %s side of the missing page was stored\n", way->name, ahead, low ? "either" : "neither");
    }
    return high;
}

/* Onto itself, where nothing can be written. */
static bool leaves_itself(const struct way *way)
{
    if (sigsetjmp(before, 1))
        return false;
    ((void (*)(void *, const void *, size_t))way->fn)(from, from, MISSING * PAGE);
    return true;
}

int main(void)
{
    static const size_t aheads[] = {1, 63, 200, 1536, 1537, 2048, 4095, 0};
    static const size_t spans[] = {0, 31, ALIAS_SPAN, ALIAS_BYTES - 1};
    to = mmap(NULL, (2 * PAGES + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED)
        return 2;
    from = to + (PAGES + 1) * PAGE;
    memset(from, 7, PAGES * PAGE);
    if (mprotect(from, PAGES * PAGE, PROT_READ) || mprotect(from + MISSING * PAGE, PAGE, PROT_NONE))
        return 2;
    const struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        for (size_t i = 0; i < 4 * sizeof spans / sizeof *spans; i++) {
            const size_t span = spans[i / 4];
            wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
                .copy_rep_from = SIZE_MAX,
                .copy_stream_from = SIZE_MAX,
                .set_rep_from = SIZE_MAX,
                .set_stream_from = SIZE_MAX,
                .copy_backward_ahead = span,
                .copy_ymm_from = i % 2 ? YMM_LEAST : SIZE_MAX,
                .copy_source_lines_to = i / 2 % 2 ? 0 : SIZE_MAX,
            });
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                if (!leaves_itself(&ways[w])) {
                    failures++;
                    printf("%s of %s: stored what it had read where it was\n", ways[w].name, wherry_isa_names[isa]);
                }
                for (size_t a = 0; a < sizeof aheads / sizeof *aheads; a++) {
                    const bool wanted = aheads[a] && aheads[a] <= span;
                    if (backward(&ways[w], aheads[a]) == wanted)
                        continue;
                    failures++;
                    printf("%s of %s: %zu ahead of at most %zu, not %s\n", ways[w].name, wherry_isa_names[isa],
                           aheads[a], span, wanted ? "backward" : "forward");
                }
            }
        }
        printf("%s looked at\n", wherry_isa_names[isa]);
    }
    return failures != 0;
}
