/* How far wherry_iszero reads behind the first byte that is not zero, in each tier: what lies so many bytes behind it
 * (the argument, 256 as promised) is inaccessible, though the n bytes go on there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dispatch/dispatch.h"
#include "wherry.h"

enum { PAGE = 4096, READABLE = 4 * PAGE, ROOM = 32 * PAGE };

static void faulted(int signo)
{
    static const char told[] = "read too far behind a byte that is not zero\n";
    (void)signo;
    _exit(write(STDOUT_FILENO, told, sizeof told - 1) < 0 ? 2 : 1);
}

int main(int argc, char **argv)
{
    const size_t reach = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
    unsigned char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mprotect(room + READABLE, ROOM - READABLE, PROT_NONE) != 0)
        return 2;
    signal(SIGSEGV, faulted);
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        for (size_t behind = reach; behind < reach + 256; behind++) {
            unsigned char *other = room + READABLE - behind - 1;
            *other = 1;
            for (size_t before = 0; before < READABLE - 1024; before += before < 300 ? 1 : 97)
                for (size_t n = before + behind + 2; n < ROOM - READABLE; n *= 2)
                    if (wherry_iszero(other - before, n))
                        return 2;
            *other = 0;
        }
    }
    return 0;
}
