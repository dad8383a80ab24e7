/* Two stacks of one thread take turns; what a switch saves is chosen by the method's name. */
#include "stacks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "switch.h"

enum { STACK_BYTES = 256 << 10, AREA_BYTES = 16 << 10, ENTRY_WORDS = 7, WARM_TURNS = 200 };

static const struct method {
    const char *name;
    stack_switch *go;
    bool wide; /* saves more than x87 and SSE */
    bool saves;
} methods[] = {
    {"never", stack_never, false, false},     {"fxsave", stack_fxsave, false, true},
    {"xsave", stack_xsave, true, true},       {"xsavec", stack_xsavec, true, true},
    {"xsaveopt", stack_xsaveopt, true, true}, {"in_use", stack_in_use, true, true},
};

static const struct method *method_of(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static struct {
    struct stack stacks[2]; /* the caller's, the partner's */
    const struct method *method;
    const struct turns *turns;
    uint64_t seen; /* by the partner, after a switch, when it was not what it had left */
    bool checking;
} both;

static char problem[160];

const char *stacks_unavailable(const char *name, enum live live)
{
    const struct method *method = method_of(name);
    if (!method)
        return "no such method; there are never, fxsave, xsave, xsavec, xsaveopt and in_use";
    if (method->saves && !method->wide && live > LIVE_SSE)
        return "saves x87 and SSE registers only";
    if (method->wide && !xsave_bytes())
        return "this CPU or its operating system has no XSAVE";
    if (xsave_bytes() > AREA_BYTES)
        return "the registers of this CPU take more than 16 KiB";
    if (strcmp(name, "xsaveopt") == 0 && !xsave_has_optimised())
        return "this CPU has no XSAVEOPT";
    if ((strcmp(name, "xsavec") == 0 || strcmp(name, "in_use") == 0) && !xsave_has_compacted())
        return "this CPU has no XSAVEC";
    if (strcmp(name, "in_use") == 0 && !live_told())
        return "this CPU does not tell which registers are in use (XGETBV with ECX = 1)";
    return NULL;
}

static void partner(void)
{
    const struct turns *turns = both.turns;
    if (both.method->saves) /* else they are the caller's, whose tiles trap without their configuration */
        live_clear();
    if (turns->child_live)
        live_begin(turns->live, 1.5f);
    for (;;) {
        if (turns->child_live)
            live_turn(turns->live);
        if (turns->size)
            switch_copy(turns, 1);
        const bool checking = both.checking && turns->child_live;
        const uint64_t before = checking ? live_read(turns->live) : 0;
        both.method->go(&both.stacks[1], &both.stacks[0]);
        if (checking && live_read(turns->live) != before)
            both.seen++;
    }
}

static unsigned char *areas;

static const char *begin(const struct method *method, const struct turns *turns)
{
    static unsigned char *stack;
    if (!stack) {
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        areas = mmap(NULL, 2 * AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED || (void *)areas == MAP_FAILED)
            return "no memory for a second stack";
    }
    memset(areas, 0, 2 * AREA_BYTES); /* the header of an area must be zero before its first use */
    both.method = method;
    both.turns = turns;
    both.seen = 0;
    uint32_t low, high;
    if (xsave_bytes()) {
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        stack_mask = (uint64_t)high << 32 | low;
    }
    for (int i = 0; i < 2; i++)
        both.stacks[i] = (struct stack){.area = areas + i * AREA_BYTES};
    live_clear();
    if (method->saves && !method->wide)
        __asm__ volatile("fxsave64 %0" : "=m"(*(char (*)[512])(areas + AREA_BYTES)));
    /* What enter_stack pops, and the function it returns to, with the stack as a call leaves it. */
    uint64_t *top = (uint64_t *)(void *)(stack + STACK_BYTES - 64);
    *--top = 0;
    *--top = (uint64_t)(uintptr_t)partner;
    for (int i = 1; i < ENTRY_WORDS; i++)
        *--top = 0;
    both.stacks[1].top = top;
    return NULL;
}

static void go(uint64_t count)
{
    const struct turns *turns = both.turns;
    while (count-- > 0) {
        if (turns->parent_live)
            live_turn(turns->live);
        if (turns->size)
            switch_copy(turns, 0);
        both.method->go(&both.stacks[0], &both.stacks[1]);
    }
}

const char *stacks_check(const char *name, enum live live)
{
    const struct method *method = method_of(name);
    if (live == LIVE_NONE)
        return NULL;
    /* What saves nothing keeps the caller's registers as long as the partner uses none. */
    const struct turns turns = {.live = live, .parent_live = true, .child_live = method->saves};
    const char *why = begin(method, &turns);
    if (why)
        return why;
    both.checking = true;
    unsigned lost = 0;
    live_begin(live, 1.25f);
    for (int i = 0; i < 5; i++) {
        const uint64_t before = live_read(live);
        go(1);
        /* The turn itself changes what is read, by what it would do without a switch. */
        const uint64_t after = live_read(live);
        live_begin(live, 1.25f);
        for (int k = 0; k <= i; k++)
            live_turn(live);
        lost += live_read(live) != after || (before == after && live != LIVE_OPMASK && live != LIVE_AMX);
    }
    both.checking = false;
    live_clear();
    if (!lost && !both.seen)
        return NULL;
    snprintf(problem, sizeof problem, "%s lost the registers of %s", name, lost ? "the caller" : "the partner");
    return problem;
}

const char *stacks_sample(const char *name, const struct turns *turns)
{
    const char *why = begin(method_of(name), turns);
    if (why)
        return why;
    if (turns->parent_live)
        live_begin(turns->live, 1.25f);
    go(WARM_TURNS);
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    const uint64_t start = clock_ns();
    go(turns->calls);
    const uint64_t end = clock_ns();
    getrusage(RUSAGE_THREAD, &after);
    figures_of_usage(turns, &before, &after);
    turns->figures->ns = (double)(end - start) / (double)turns->calls;
    turns->figures->parts[PART_IN_USE] = live_told() ? (double)live_in_use() : NAN;
    live_clear();
    return NULL;
}
