/* Plans come and go while others are inside a call: whatever has been read of the words in force by then, the call is
 * right, and runs no instruction that neither the tier before nor the one after has.
 *
 * Each call is made an instruction at a time by the processor's trap flag, of which the first LOOKED_AT are looked at:
 * once without a change, and once for each that refers to data, before which the plan then changes. Between two of them
 * nothing tells whether it did. Both sides end where a page begins that may not be touched, or begin where one ends.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "cpu/caches.h"
#include "dispatch/choice.h"
#include "dispatch/load.h"
#include "wherry.h"

enum { PAGE = 4096, ROOM = 4 * PAGE, LOOKED_AT = 32, EVEX = 0x62, TRAP_FLAG = 0x100, MARGIN = 64 };

struct way {
    const char *name;
    void (*fn)(void);
    enum { COPY, COPY_TO_END, COPY_SWAPPED, SET, ZERO } kind;
};

/* What this must find: a copy that asks twice whether the tier is AVX2, and goes on in AVX-512 when only the second
 * answer is yes. */
void asks_twice(void);
__asm__(".text\n"
        "asks_twice:\n\t"
        "cmpb $1, wherry_copy_choice+4(%rip)\n\t"
        "je wherry_memcpy\n\t"
        "cmpb $1, wherry_copy_choice+4(%rip)\n\t"
        "jne wherry_memcpy\n\t"
        "vpxord %zmm16, %zmm16, %zmm16\n\t"
        "jmp wherry_memcpy");
static const struct way planted = {"a planted error", asks_twice, COPY};

static const struct way ways[] = {
    {"memcpy", (void (*)(void))wherry_memcpy, COPY},       {"mempcpy", (void (*)(void))wherry_mempcpy, COPY_TO_END},
    {"bcopy", (void (*)(void))wherry_bcopy, COPY_SWAPPED}, {"memset", (void (*)(void))wherry_memset, SET},
    {"bzero", (void (*)(void))wherry_bzero, ZERO},
};

struct state {
    enum wherry_isa isa;
    struct wherry_thresholds thresholds;
    const char *name;
};

static struct wherry_cpu cpu;
static struct state states[2 * WHERRY_ISA_COUNT];
static unsigned state_count;

/* What the handler goes by. */
static const struct state *next;
static unsigned change_at, steps;
static const uint8_t *met[LOOKED_AT + 1]; /* the instructions, in the order in which they were carried out */
static bool evex_is_right, evex_met;
static sigjmp_buf out;

static unsigned failures;
static unsigned long calls, changes;
/* Where all that the program may write begins and ends. */
extern const uint8_t __data_start[], _end[];

static void use(const struct state *state) { wherry_dispatch_use(&cpu, state->isa, &state->thresholds); }

static void on_step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    met[steps] = at;
    if (steps == change_at)
        use(next);
    if (*at == EVEX && !evex_is_right)
        evex_met = true;
    /* Where any instruction is right nothing is to be seen after the change. */
    if (++steps > LOOKED_AT || evex_met || (evex_is_right && steps > change_at))
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    siglongjmp(out, signal);
}

/* One call; from the first instruction of fn on on_step sees each before it is carried out. */
static uintptr_t stepped(void (*fn)(void), uintptr_t a, uintptr_t b, uintptr_t c)
{
    uintptr_t result;
    __asm__ volatile("pushfq\n\torq %[flag], (%%rsp)\n\tpopfq\n\t"
                     "call *%[fn]\n\t"
                     "pushfq\n\tandq %[no_flag], (%%rsp)\n\tpopfq"
                     : "=a"(result), "+D"(a), "+S"(b), "+d"(c)
                     : [fn] "r"(fn), [flag] "i"(TRAP_FLAG), [no_flag] "i"(~TRAP_FLAG)
                     : "rcx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return result;
}

/* The signal that ended the call, or 0. */
static int attempt(const struct way *way, uintptr_t to, uintptr_t from, size_t n, uintptr_t *result)
{
    const int signal = sigsetjmp(out, 1);
    if (signal)
        return signal;
    if (way->kind == ZERO)
        *result = stepped(way->fn, to, n, 0);
    else if (way->kind == SET)
        *result = stepped(way->fn, to, 0xa7, n);
    else if (way->kind == COPY_SWAPPED)
        *result = stepped(way->fn, from, to, n);
    else
        *result = stepped(way->fn, to, from, n);
    return 0;
}

static uint8_t *between_guards(void)
{
    uint8_t *area = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area + PAGE, ROOM, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(2);
    }
    return area + PAGE;
}

/* What is wrong after the call, or null. */
static const char *wrong(const struct way *way, const uint8_t *to, const uint8_t *from, size_t n, uintptr_t result)
{
    if (evex_met)
        return "an instruction that neither tier has";
    for (size_t i = 0; i < n; i++)
        if (to[i] != (way->kind == SET ? 0xa7 : way->kind == ZERO ? 0 : from[i]))
            return "wrong bytes";
    if (way->kind == COPY || way->kind == SET)
        return result == (uintptr_t)to ? NULL : "a wrong result";
    return way->kind == COPY_TO_END && result != (uintptr_t)to + n ? "a wrong result" : NULL;
}

static bool untouched(const uint8_t *from, const uint8_t *to)
{
    for (; from < to; from++)
        if (*from != 0x11)
            return false;
    return true;
}

/* Does an instruction read what a plan may change, or whatever a register points to? The distance from the instruction
 * behind it may stand anywhere in it, before an immediate operand. */
static bool may_read(const uint8_t *at, const uint8_t *behind, bool *points)
{
    enum { LONGEST = 15, LEA = 0x8d, BY_MEMORY = 0xff };
    if (behind <= at || behind > at + LONGEST)
        return *at == BY_MEMORY; /* a jump */
    for (const uint8_t *own = at + 1; own + sizeof(int32_t) <= behind; own++) {
        int32_t far;
        memcpy(&far, own, sizeof far);
        if (behind + far >= __data_start && behind + far < _end) {
            *points |= own - at >= 2 && own[-2] == LEA;
            return true;
        }
    }
    return *points;
}

/* The plan changes at each instruction of one call in turn that can tell. */
static void change_everywhere(const struct way *way, size_t n, bool at_end, const struct state *before,
                              const struct state *after, uint8_t *from_room, uint8_t *to_room)
{
    uint8_t *to = at_end ? to_room + ROOM - n : to_room, *from = at_end ? from_room + ROOM - n : from_room;
    uint8_t *lower = to - to_room < MARGIN ? to_room : to - MARGIN;
    uint8_t *upper = to_room + ROOM - (to + n) < MARGIN ? to_room + ROOM : to + n + MARGIN;
    next = after;
    evex_is_right = before->isa >= WHERRY_ISA_AVX512 || after->isa >= WHERRY_ISA_AVX512;
    bool reads[LOOKED_AT], points = false;
    for (unsigned turn = 0; turn <= LOOKED_AT; turn++) {
        if (turn > 0 && !reads[turn - 1])
            continue;
        change_at = turn > 0 ? turn - 1 : LOOKED_AT + 1;
        memset(lower, 0x11, (size_t)(upper - lower));
        steps = 0;
        evex_met = false;
        use(before);
        calls++;
        uintptr_t result = 0;
        const int signal = attempt(way, (uintptr_t)to, (uintptr_t)from, n, &result);
        /* Where the CPU has no such instruction either it has raised a signal, which tells less. */
        const char *what = signal && !evex_met ? strsignal(signal) : wrong(way, to, from, n, result);
        if (!what && !(untouched(lower, to) && untouched(to + n, upper)))
            what = "bytes beside the destination";
        if (what && ++failures <= 20)
            printf("%s of %zu bytes, %s becomes %s before instruction %u: %s\n", way->name, n, before->name,
                   after->name, change_at, what);
        for (unsigned i = 0; turn == 0 && i < LOOKED_AT; i++) {
            reads[i] = i + 1 < steps && may_read(met[i], met[i + 1], &points);
            changes += reads[i];
        }
    }
}

/* Each tier without any method but the loop, and behind it with all, from the least sizes on. */
static void list_states(void)
{
    const struct wherry_thresholds never = {.copy_rep_from = SIZE_MAX,
                                            .copy_stream_from = SIZE_MAX,
                                            .set_rep_from = SIZE_MAX,
                                            .set_stream_from = SIZE_MAX,
                                            .copy_ymm_from = SIZE_MAX,
                                            .copy_source_lines_to = SIZE_MAX};
    const struct wherry_thresholds all = {.copy_rep_from = 128,
                                          .copy_rep_to = 3000,
                                          .copy_stream_from = 3000,
                                          .set_rep_from = 128,
                                          .set_rep_to = 3000,
                                          .set_stream_from = 3000,
                                          .copy_backward_ahead = 4095,
                                          .copy_ymm_from = YMM_LEAST,
                                          .copy_source_lines_to = 0};
    for (enum wherry_isa isa = 0; isa < WHERRY_ISA_COUNT; isa++)
        if (wherry_plan_can_run(&cpu, wherry_plan_needs(isa))) {
            states[state_count++] = (struct state){isa, never, wherry_isa_names[isa]};
            states[state_count++] = (struct state){isa, all, wherry_isa_names[isa]};
        }
}

/* A step costs microseconds: between tiers of which one has no AVX-512, without methods, and between none and all of
 * one tier, for sizes that have any. */
static bool worth(unsigned before, unsigned after, size_t n)
{
    if (before / 2 == after / 2)
        return before != after && n > 128;
    return before % 2 == 0 && after % 2 == 0 &&
           (states[before].isa < WHERRY_ISA_AVX512 || states[after].isa < WHERRY_ISA_AVX512);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {15, 16, 33, 65, 129, 257, 513, 1100, 4200};
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "planted"))) {
        fputs("usage: midcall-test [planted]\n", stderr);
        return 2;
    }
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    list_states();
    const struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    const struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &step, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGILL, &fault, NULL);
    uint8_t *from = between_guards(), *to = between_guards();
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 31 >> 3);
    unsigned most = 0;
    const unsigned way_count = argc == 2 ? 1 : sizeof ways / sizeof *ways;
    for (unsigned way = 0; way < way_count; way++)
        for (unsigned size = 0; size < sizeof sizes / sizeof *sizes; size++)
            for (unsigned a = 0; a < state_count; a++)
                for (unsigned b = 0; b < state_count; b++)
                    if (worth(a, b, sizes[size])) {
                        change_everywhere(argc == 2 ? &planted : &ways[way], sizes[size], (a + b + size) % 4 > 1,
                                          &states[a], &states[b], from, to);
                        most = steps > most ? steps : most;
                    }
    if (!most) {
        puts("skipped: nothing here carries out one instruction at a time");
        return 0;
    }
    /* Each has at least one: the plan is what it goes by. */
    if (changes < calls / 2)
        printf("%lu changes only\n", changes);
    printf("%lu calls, %u wrong\n", calls, failures);
    return failures != 0 || changes < calls / 2;
}
