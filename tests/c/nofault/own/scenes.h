/* What the files of nofault-own share: handlers of the program, and what these have seen. */
#ifndef NOFAULT_OWN_SCENES_H
#define NOFAULT_OWN_SCENES_H

#include <setjmp.h>

#include "../scene.h"

struct named_scene {
    const char *name;
    void (*run)(void);
};
#define SCENE(name) {#name, name}

/* Each ends with a name that is NULL. */
extern const struct named_scene scenes_of_faults[], scenes_of_later_handlers[], scenes_of_places[];

extern unsigned char *edge; /* a page, and nothing behind it */
extern sigjmp_buf escape;
extern volatile int calls;
extern volatile uintptr_t where, stack_of_handler;
extern sigset_t mask_seen;
extern bool briefly; /* for an emulator, where 4 GiB by a pipe take 14 s */

static inline void begin(void) { CHECK(wherry_nofault_init() == 0); }
static inline void crash_now(void) { crash_by((char *)edge); }

void host_jumps(int signo, siginfo_t *info, void *context);
void host_jumps_plain(int signo);
void host_looks(int signo, siginfo_t *info, void *context);
void sent(void);

#endif
