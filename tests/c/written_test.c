/* Past the caches goes only what was written before (routines/written.h): in every tier, by every public function that
 * has both ways. With the argument "uninitialised": copies and sets what was never set, for Valgrind to look at. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/thresholds.h"
#include "ways.h"

enum {
    STREAM_FROM = 2048,
    PLACE = 100,
    SIZE = STREAM_FROM + 204,
    OTHER = 1 << 16,
    ROOM = 2 * OTHER,
    TRAP_FLAG = 0x100
};

static unsigned failures;
static uint8_t *to, *from;
static const char *tier;
static const struct way *way;

static void expect(const char *what, bool right)
{
    if (right)
        return;
    failures++;
    printf("%s of %s: %s\n", way->name, tier, what);
}

static bool brought(const uint8_t *dst, const uint8_t *src, uint8_t byte)
{
    if (!way->sets)
        return !memcmp(dst, src, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        if (dst[i] != (way->two ? 0 : byte))
            return false;
    return true;
}

static bool met_string, met_fence;

static void on_step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    const uint8_t *const at = (const uint8_t *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    met_string |= at[0] == 0xf3 && (at[1] == 0xa4 || at[1] == 0xaa); /* rep movsb, rep stosb */
    met_fence |= at[0] == 0x0f && at[1] == 0xae && at[2] == 0xf8;    /* sfence, which ends what went past the caches */
}

/* One instruction at a time. */
static void call(uint64_t a, uint64_t b, uint64_t c)
{
    static struct wherry_fault fault;
    uint64_t fourth = (uint64_t)(uintptr_t)&fault;
    __asm__ volatile("pushfq\n\t"
                     "orq %[trap], (%%rsp)\n\t"
                     "popfq\n\t"
                     "call *%[fn]\n\t"
                     "pushfq\n\t"
                     "andq %[no_trap], (%%rsp)\n\t"
                     "popfq"
                     : "+D"(a), "+S"(b), "+d"(c), "+c"(fourth)
                     : [fn] "r"(way->fn), [trap] "i"(TRAP_FLAG), [no_trap] "i"(~TRAP_FLAG)
                     : "rax", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Which way the call goes: behind what it brings nothing changes. */
static enum { LOOP, STRING, PAST } goes(uint8_t *dst, const uint8_t *src, uint8_t byte)
{
    const uint8_t before = dst[-1], behind = dst[SIZE];
    const uint64_t d = (uintptr_t)dst, s = (uintptr_t)src;
    met_string = met_fence = false;
    if (way->swapped)
        call(s, d, SIZE);
    else if (way->two)
        call(d, SIZE, 0);
    else
        call(d, way->sets ? byte : s, SIZE);
    expect("wrong bytes", brought(dst, src, byte) && dst[-1] == before && dst[SIZE] == behind);
    return met_fence ? PAST : met_string ? STRING : LOOP;
}

static void look(void)
{
    uint8_t *const dst = to + PLACE, *const other = to + OTHER + PLACE;
    const uint8_t *const zeroes = from + OTHER;
    memset(wherry_written_zeroes, 0, sizeof wherry_written_zeroes);
    memset(to, 0, ROOM);
    if (!way->two)
        expect("new, but not by a string instruction", goes(dst, from, 0x33) == STRING);
    memset(dst, 7, SIZE);
    expect("written, but not past the caches", goes(dst, from, 0x33) == PAST);
    memset(dst, 0, SIZE);
    memset(dst + SIZE - 300, 1, 300);
    expect("written at its end, but not past the caches", goes(dst, from, 0x33) == PAST);
    memset(dst, 0, SIZE);
    dst[-1] = dst[SIZE] = 1;
    expect("zeroes to what may be new, but not by a string instruction", goes(dst, zeroes, 0) == STRING);
    expect("zeroes once more, but not past the caches", goes(dst, zeroes, 0) == PAST);
    expect("zeroes to another place, but not by a string instruction", goes(other, zeroes, 0) == STRING);
    expect("zeroes to that place once more, but not past the caches", goes(other, zeroes, 0) == PAST);
    if (!way->two)
        expect("something where zeroes were brought, but not by a string instruction", goes(dst, from, 0x33) == STRING);
    wherry_thresholds.copy_rep_to = wherry_thresholds.set_rep_to = STREAM_FROM - 1;
    memset(to, 0, ROOM);
    expect("new, and beyond a window that ends before, but not by a loop", goes(dst, from, 0x33) == LOOP);
    wherry_thresholds.copy_rep_to = wherry_thresholds.set_rep_to = STREAM_FROM;
    if (way->sets)
        return;
    memset(to, 0, ROOM);
    memcpy(dst + 64, from, SIZE);
    met_fence = false;
    if (way->swapped)
        call((uintptr_t)dst + 64, (uintptr_t)dst, SIZE);
    else
        call((uintptr_t)dst, (uintptr_t)dst + 64, SIZE);
    expect("overlapping sides", !memcmp(dst, from, SIZE) && !met_fence);
}

/* What reads of a destination nobody has set, Valgrind tells. */
static int uninitialised(void)
{
    const size_t n = (size_t)80 << 20; /* more than any plan begins at */
    uint8_t *const dst = malloc(n), *const src = calloc(1, n);
    if (!dst || !src)
        return 2;
    printf("%s\n", wherry_thresholds.copy_stream_from == SIZE_MAX ? "never past the caches" : "past the caches");
    wherry_memcpy(dst, src, n);
    free(dst);
    uint8_t *const set = malloc(n);
    if (!set)
        return 2;
    wherry_memset(set, 0, n);
    return set[n / 2] != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "uninitialised"))
        return uninitialised();
    to = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || wherry_nofault_init() < 0)
        return 2;
    from = to + ROOM;
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    for (size_t i = 0; i < OTHER; i++)
        from[i] = (uint8_t)(i * 31 >> 3 | 1);
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = 1025,
        .copy_rep_to = STREAM_FROM,
        .copy_stream_from = STREAM_FROM,
        .set_rep_from = 1025,
        .set_rep_to = STREAM_FROM,
        .set_stream_from = STREAM_FROM,
        .copy_rep_recent_from = 1025,
        .set_rep_recent_from = 1025,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
    });
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        wherry_nofault_force((enum wherry_isa)isa);
        tier = wherry_isa_names[isa];
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            way = &ways[i];
            look();
        }
        printf("%s looked at\n", tier);
    }
    return failures != 0;
}
