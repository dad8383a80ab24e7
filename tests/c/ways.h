/* Every public function that copies or sets and has more than one way of doing it, and a look at which way it goes: one
 * instruction at a time by the trap flag, as far as a string instruction. */
#ifndef WAYS_H
#define WAYS_H

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "wherry.h"

struct way {
    const char *name;
    void (*fn)(void);
    bool sets, swapped, two; /* bcopy has the source first; bzero takes no value */
};

/* Or others of these names, out of a shared object. */
static struct way ways[] = {
    {"memcpy", (void (*)(void))wherry_memcpy, false, false, false},
    {"memmove", (void (*)(void))wherry_memmove, false, false, false},
    {"mempcpy", (void (*)(void))wherry_mempcpy, false, false, false},
    {"bcopy", (void (*)(void))wherry_bcopy, false, true, false},
    {"copy_nofault", (void (*)(void))wherry_copy_nofault, false, false, false},
    {"memset", (void (*)(void))wherry_memset, true, false, false},
    {"bzero", (void (*)(void))wherry_bzero, true, false, true},
    {"set_nofault", (void (*)(void))wherry_set_nofault, true, false, false},
};

enum { WAYS = sizeof ways / sizeof *ways };

/* Takes them out of a shared object, by libc's names; what it lacks becomes NULL. */
static inline void ways_out_of(const char *file)
{
    void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; i < WAYS; i++) {
        ways[i].fn = NULL;
        if (library)
            *(void **)&ways[i].fn = dlsym(library, ways[i].name);
    }
}

static inline bool ways_survives(const struct way *way)
{
    return way->fn == (void (*)(void))wherry_copy_nofault || way->fn == (void (*)(void))wherry_set_nofault;
}

/* What is looked at, and how often it was not as it must be. */
static const char *tier;
static const struct way *way;
static unsigned failures;

static inline void expect(const char *what, bool right)
{
    if (right)
        return;
    failures++;
    printf("%s of %s: %s\n", way->name, tier, what);
}

enum { WAYS_TRAP_FLAG = 0x100 };

/* What the handler reads and writes: no compiler sees that it comes in between. */
static volatile struct {
    bool string, fence; /* rep movsb or stosb; sfence, which ends what went past the caches */
    unsigned steps;
    uint8_t *at; /* the string instruction */
} ways_met;

/* Who looks for a string instruction alone need not wait for the end of a loop; 0: to the end. */
static volatile unsigned ways_most_steps;

/* In whose place stands a breakpoint, once, or null: who knows which string instruction there would be need not step.
 */
static uint8_t *volatile ways_planted;

enum { WAYS_INT3 = 0xcc, WAYS_REP = 0xf3 };

static inline void ways_step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint8_t *const at = (uint8_t *)registers[REG_RIP];
    if (ways_planted && at == ways_planted + 1) {
        ways_met.string = true;
        *ways_planted = WAYS_REP;
        registers[REG_RIP]--;
        return;
    }
    ways_met.fence |= at[0] == 0x0f && at[1] == 0xae && at[2] == 0xf8;
    const bool string = at[0] == 0xf3 && (at[1] == 0xa4 || at[1] == 0xaa); /* it would be a step for each byte */
    ways_met.string |= string;
    if (string)
        ways_met.at = at;
    if (string || ++ways_met.steps == ways_most_steps)
        registers[REG_EFL] &= ~(greg_t)WAYS_TRAP_FLAG;
}

static inline void ways_watch(void)
{
    struct sigaction action = {.sa_sigaction = ways_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
}

static inline void ways_call(const struct way *way, uint64_t a, uint64_t b, uint64_t c)
{
    static struct wherry_fault fault;
    uint64_t fourth = (uint64_t)(uintptr_t)&fault;
    ways_met.string = ways_met.fence = false;
    ways_met.steps = 0;
    __asm__ volatile("pushfq\n\t"
                     "orq %[trap], (%%rsp)\n\t"
                     "popfq\n\t"
                     "call *%[fn]\n\t"
                     "pushfq\n\t"
                     "andq %[no_trap], (%%rsp)\n\t"
                     "popfq"
                     : "+D"(a), "+S"(b), "+d"(c), "+c"(fourth)
                     : [fn] "r"(way->fn), [trap] "i"(WAYS_TRAP_FLAG), [no_trap] "i"(~WAYS_TRAP_FLAG)
                     : "rax", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Copies n bytes, or sets them to byte; bzero takes that for 0. */
static inline void ways_go(const struct way *way, uint8_t *dst, const uint8_t *src, uint8_t byte, size_t n)
{
    const uint64_t d = (uintptr_t)dst, s = (uintptr_t)src;
    if (way->swapped)
        ways_call(way, s, d, n);
    else if (way->two)
        ways_call(way, d, n, 0);
    else
        ways_call(way, d, way->sets ? byte : s, n);
}

/* Whether a tier is among those that are named, of which none means all. */
static inline bool ways_asked_for(const char *tier, char *const *names)
{
    bool asked = !*names;
    for (; *names; names++)
        asked |= strcmp(*names, tier) == 0;
    return asked;
}

/* Looks at each of them in each tier that this CPU has, or in those that are named; says in how many tiers. */
static inline int ways_in_every_tier(void (*look)(void), char *const *names)
{
    int looked = 0;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!ways_asked_for(wherry_isa_names[isa], names) || !wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        wherry_nofault_force((enum wherry_isa)isa);
        tier = wherry_isa_names[isa];
        for (size_t i = 0; i < WAYS; i++) {
            way = &ways[i];
            look();
        }
        printf("%s looked at\n", tier);
        looked++;
    }
    return looked;
}

#endif
