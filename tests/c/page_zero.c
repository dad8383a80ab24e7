/* Copies to the first page there is, which whoever runs as root may map: what an address less some blocks comes to is
 * then below 0. Exit status 77 where it cannot be mapped. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "wherry.h"

enum { PLACES = 300, MOST = 700, ROOM = 4096 };

static unsigned char source[MOST], wanted[ROOM];

static int wrong(const char *what, size_t at, size_t n)
{
    printf("%s, %s: %zu bytes to address %zu\n", wherry_isa(), what, n, at);
    return 1;
}

static int copies(unsigned char *page, size_t at, size_t n)
{
    const uint16_t sum = wherry_csum_fold(wherry_csum_partial(source, n, 0));
    uint32_t survived = 0;
    memset(wanted, 0, ROOM);
    memcpy(wanted + at, source, n);
    memset(page, 0, ROOM);
    if (wherry_csum_fold(wherry_csum_partial_copy(page + at, source, n, 0)) != sum || memcmp(page, wanted, ROOM) != 0)
        return wrong("csum_partial_copy", at, n);
    memset(page, 0, ROOM);
    if (wherry_csum_copy_nofault(page + at, source, n, &survived, NULL) != 0 || wherry_csum_fold(survived) != sum ||
        memcmp(page, wanted, ROOM) != 0)
        return wrong("csum_copy_nofault", at, n);
    memset(page, 0, ROOM);
    wherry_memcpy(page + at, source, n);
    if (memcmp(page, wanted, ROOM) != 0)
        return wrong("memcpy", at, n);
    memset(page, 0, ROOM);
    if (wherry_copy_nofault(page + at, source, n, NULL) != 0 || memcmp(page, wanted, ROOM) != 0)
        return wrong("copy_nofault", at, n);
    wherry_set_nofault(page + at, 0, n, NULL);
    if (!wherry_iszero(page, ROOM))
        return wrong("set_nofault", at, n);
    return 0;
}

int main(void)
{
    unsigned char *page = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    __asm__("" : "+r"(page)); /* not the null pointer that the compiler knows */
    if (page == MAP_FAILED)
        return 77;
    for (size_t i = 0; i < MOST; i++)
        source[i] = (unsigned char)(i * 37 + 11);
    if (wherry_nofault_init() != 0)
        return 1;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        wherry_nofault_force((enum wherry_isa)isa);
        for (size_t at = 1; at < PLACES; at += at < 70 ? 1 : 23)
            for (size_t n = 0; n <= MOST; n++)
                if (copies(page, at, n))
                    return 1;
    }
    return 0;
}
