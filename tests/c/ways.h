/* Every public function that copies or sets and has more than one way of doing it. */
#ifndef WAYS_H
#define WAYS_H

#include <stdbool.h>

#include "wherry.h"

struct way {
    const char *name;
    void (*fn)(void);
    bool sets, swapped, two; /* bcopy has the source first; bzero takes no value */
};

static const struct way ways[] = {
    {"memcpy", (void (*)(void))wherry_memcpy, false, false, false},
    {"memmove", (void (*)(void))wherry_memmove, false, false, false},
    {"mempcpy", (void (*)(void))wherry_mempcpy, false, false, false},
    {"bcopy", (void (*)(void))wherry_bcopy, false, true, false},
    {"copy_nofault", (void (*)(void))wherry_copy_nofault, false, false, false},
    {"memset", (void (*)(void))wherry_memset, true, false, false},
    {"bzero", (void (*)(void))wherry_bzero, true, false, true},
    {"set_nofault", (void (*)(void))wherry_set_nofault, true, false, false},
};

#endif
