/* Calls the public functions before anything of the library has been set up: from an IFUNC resolver, which runs while
 * this program is still being relocated, and from a constructor that runs before the library's. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "wherry.h"

static char source[3000], from_resolver[3000], from_constructor[3000];
static int resolver_right = -1, constructor_right = -1;

static int works(char *target)
{
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (char)(i * 37 + 11);
    int right = 1;
    for (size_t n = 0; n <= sizeof source; n = n * 2 + 1) {
        right &= wherry_memcpy(target, source, n) == target;
        for (size_t i = 0; i < n; i++)
            right &= target[i] == source[i];
        right &= wherry_memset(target, 0x7e, n) == target;
        for (size_t i = 0; i < n; i++)
            right &= target[i] == 0x7e;
        wherry_bzero(target, n);
        for (size_t i = 0; i < n; i++)
            right &= target[i] == 0;
    }
    static const uintptr_t nowhere[] = {0, 1, 63, 64, 65, 4095, UINTPTR_MAX - 63, UINTPTR_MAX};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        char *none = (char *)nowhere[i]; /* of no bytes nothing is read or written, whatever the tier */
        right &= wherry_memcpy(none, none, 0) == none && wherry_mempcpy(target, none, 0) == target;
        right &= wherry_memset(none, 0x7e, 0) == none;
        wherry_bcopy(none, target, 0);
        wherry_bzero(none, 0);
    }
    return right;
}

static int answer(void) { return 42; }

__attribute__((used)) static int (*resolve(void))(void)
{
    resolver_right = works(from_resolver);
    return answer;
}

int ask(void) __attribute__((ifunc("resolve")));

__attribute__((constructor(101))) static void early(void) { constructor_right = works(from_constructor); }

int main(void)
{
    printf("resolver %d constructor %d main %d isa %s\n", resolver_right, constructor_right, works(from_resolver),
           wherry_isa());
    return !(ask() == 42 && resolver_right == 1 && constructor_right == 1);
}
