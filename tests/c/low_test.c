/* A copy or set of any bytes at null or just above it must end the program as libc's does, not return as if there had
 * been nothing to do: ways that take such an address for that of an empty buffer ask how many bytes there are. In every
 * tier; or, with a shared object's name, of what it has under the names of libc. */
#include <setjmp.h>
#include <sys/mman.h>

#include "ways.h"

enum { MOST = 5000, PAGE = 4096 };

static const unsigned places[] = {0, 1, 31, 63, 64, 65, 66, 127, 4000};
static const unsigned sizes[] = {1,  2,  3,   4,   7,   8,   15,  16,  17,  31,  32,   33,   63,
                                 64, 65, 100, 128, 129, 255, 256, 257, 512, 513, 1024, 1025, MOST};
static uint8_t room[MOST];
static sigjmp_buf escape;
static unsigned faults;

static void on_fault(int signo)
{
    (void)signo;
    siglongjmp(escape, 1);
}

static void call(unsigned which, uintptr_t dst, uintptr_t src, uintptr_t n)
{
    void (*fn)(void) = ways[which].fn;
    if (ways[which].swapped)
        ((void (*)(uintptr_t, uintptr_t, uintptr_t))fn)(src, dst, n);
    else if (ways[which].two)
        ((void (*)(uintptr_t, uintptr_t))fn)(dst, n);
    else
        ((void *(*)(uintptr_t, uintptr_t, uintptr_t))fn)(dst, ways[which].sets ? 1 : src, n);
}

static void must_fault(const char *whose, unsigned which, uintptr_t dst, uintptr_t src, unsigned n)
{
    if (sigsetjmp(escape, 1)) {
        faults++;
        return;
    }
    call(which, dst, src, n);
    failures++;
    printf("%s, %s: %u bytes from %#lx to %#lx: returned\n", whose, ways[which].name, n, (unsigned long)src,
           (unsigned long)dst);
}

static void look_at(const char *whose)
{
    const uintptr_t there = (uintptr_t)room;
    for (unsigned which = 0; which < WAYS; which++) {
        if (!ways[which].fn || ways_survives(&ways[which]))
            continue;
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                must_fault(whose, which, places[p], there, sizes[s]);
                if (!ways[which].sets)
                    must_fault(whose, which, there, places[p], sizes[s]);
            }
    }
    printf("%s looked at\n", whose);
}

int main(int count, char **words)
{
    munmap(NULL, PAGE); /* should somebody have mapped that page here */
    const struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    if (count > 1) {
        ways_out_of(words[1]);
        look_at(words[1]);
    } else {
        for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++)
            if (wherry_dispatch_force((enum wherry_isa)isa))
                look_at(wherry_isa_names[isa]);
    }
    printf("%u faults\n", faults);
    return failures || !faults;
}
