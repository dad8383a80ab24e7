/* A library that calls memcpy and its relatives as early as anybody can: from the resolver of an IFUNC of its own,
 * while the loader has yet to relocate a preloaded object, and from a constructor. */
#include "exercise.h"

static unsigned char room[EXERCISE_ROOM];
/* Static: the loader would copy those that the program names, and lose what the resolver wrote. */
static int from_resolver = -1, from_constructor = -1;
static const void *resolver_memcpy;

static int forty_two(void) { return 42; }

__attribute__((used)) static int (*resolve(void))(void)
{
    resolver_memcpy = (const void *)memcpy;
    from_resolver = exercise(room, 9000);
    return forty_two;
}

static int answer(void) __attribute__((ifunc("resolve")));

/* A word of data that holds the address: the loader calls the resolver when it relocates it. */
static int (*volatile const asked)(void) = answer;

int early_answer(void) { return asked(); }

int early_from_resolver(void) { return from_resolver; }

int early_from_constructor(void) { return from_constructor; }

const void *early_memcpy(void) { return resolver_memcpy; }

__attribute__((constructor(101))) static void construct(void) { from_constructor = exercise(room, 9000); }
