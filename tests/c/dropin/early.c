/* Calls from a library's resolver and constructor (early_library.c), from this program's .preinit_array, which runs
 * before every constructor, and from main. */
#include "exercise.h"

#include <dlfcn.h>
#include <stdio.h>

int early_answer(void), early_from_resolver(void), early_from_constructor(void);
const void *early_memcpy(void); /* as the resolver saw it */

static unsigned char room[EXERCISE_ROOM];
static int from_preinit = -1, constructed_at_preinit = -1;

static void preinit(void)
{
    constructed_at_preinit = early_from_constructor();
    from_preinit = exercise(room, 9000);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all)(void) = preinit;

int main(void)
{
    Dl_info info = {.dli_fname = "nowhere"};
    dladdr(early_memcpy(), &info);
    int from_main = exercise(room, 9000);
    printf("resolver %d preinit %d constructor %d main %d memcpy %s\n", early_from_resolver(), from_preinit,
           early_from_constructor(), from_main, info.dli_fname);
    return !(early_answer() == 42 && early_from_resolver() == 1 && from_preinit == 1 && constructed_at_preinit == -1 &&
             early_from_constructor() == 1 && from_main == 1);
}
