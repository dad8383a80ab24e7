/* A first look at every registry routine: sizes 0 to 600 at every destination offset in a line and at both ends of
 * guarded pages, a few large sizes, n = 0 with null pointers, the return value, and the state that must survive a call
 * (direction flag, MXCSR, x87). wherry-run verify is the thorough one; this is what to run after each edit.
 *
 * Usage: routines_smoke [ROUTINE ...]
 */
#include "plan/plan.h"
#include "routines/registry.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ARENA = 4 * PAGE, MAX_SMALL = 600, OFFSETS = 64 };

static unsigned failures;
static const struct wherry_routine *current;

static void fail(const char *what, size_t n, size_t dst_offset, size_t src_offset)
{
    failures++;
    fprintf(stderr, "%s (%s): %s at size %zu, destination offset %zu, source offset %zu\n", current->name,
            wherry_op_names[current->op], what, n, dst_offset, src_offset);
}

/* An access outside the buffers meets a guard page: name the routine before going. */
static void on_fault(int signo)
{
    static const char what[] = ": access outside the buffers (signal)\n";
    (void)signo;
    if (write(STDERR_FILENO, current->name, strlen(current->name)) >= 0)
        (void)!write(STDERR_FILENO, what, sizeof what - 1);
    _exit(1);
}

static uint8_t *map_guarded(size_t bytes)
{
    uint8_t *base = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || mprotect(base + PAGE, bytes, PROT_READ | PROT_WRITE) != 0) {
        perror("routines_smoke: mapping memory");
        exit(1);
    }
    return base + PAGE;
}

static void fill_random(uint8_t *p, size_t n)
{
    static uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        p[i] = (uint8_t)(state >> 32);
    }
}

/* What fnsave stores, less the pointers to the last instruction and operand, which the save format shortens. */
struct x87_state {
    uint16_t control, pad0, status, pad1, tag, pad2;
    uint32_t pointers[4];
    uint8_t registers[80];
};

static void x87_read(struct x87_state *state)
{
    memset(state, 0, sizeof *state);
    __asm__ volatile("fnsave %0\n\tfrstor %0" : "+m"(*state));
    memset(state->pointers, 0, sizeof state->pointers);
}

static uint32_t mxcsr_read(void)
{
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static bool direction_flag(void)
{
    uint64_t flags;
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags));
    return flags >> 10 & 1;
}

static void *call(uint8_t *dst, const uint8_t *src, int c, size_t n)
{
    if (current->op == WHERRY_OP_copy || current->op == WHERRY_OP_move)
        return current->copy(dst, src, n);
    return current->set(dst, c, n);
}

static bool reads_source(void) { return current->op == WHERRY_OP_copy || current->op == WHERRY_OP_move; }

/* One call on dst inside [arena, arena + ARENA), where canary holds what the arena holds before. */
static void check_small(uint8_t *arena, const uint8_t *canary, size_t at, const uint8_t *src, size_t src_at, size_t n)
{
    static uint8_t want[ARENA];
    int c = current->op == WHERRY_OP_set ? 0x1a5 : 0; /* a byte with noise above it, which memset must drop */
    memcpy(want, canary, ARENA);
    if (reads_source())
        memcpy(want + at, src, n);
    else
        memset(want + at, c, n);
    if (call(arena + at, src, c, n) != arena + at)
        fail("wrong return value", n, at, src_at);
    if (memcmp(arena, want, ARENA) != 0)
        fail("wrong bytes", n, at, src_at);
    memcpy(arena, canary, ARENA);
}

static void check_sizes(uint8_t *arena, uint8_t *source)
{
    static uint8_t canary[ARENA];
    static const uint8_t src_offsets[] = {0, 1, 4, 8, 31};
    memcpy(canary, arena, ARENA);
    for (size_t n = 0; n <= MAX_SMALL; n += current->quantum) {
        size_t src_offset = src_offsets[n / current->quantum % sizeof src_offsets];
        for (size_t offset = 0; offset < OFFSETS; offset++) {
            check_small(arena, canary, offset, source + src_offset, src_offset, n);
            check_small(arena, canary, ARENA - n - offset, source + ARENA - n, ARENA - n, n);
        }
    }
}

/* Zeroing what is partly zero already takes other paths in the routines that look first. */
static void check_sparse(uint8_t *arena, const uint8_t *source)
{
    static uint8_t sparse[ARENA];
    memset(sparse, 0, ARENA);
    for (size_t i = 7; i < ARENA; i += 1 + i % 97)
        sparse[i] = 1;
    memcpy(arena, sparse, ARENA);
    for (size_t n = 0; n <= 3 * PAGE; n += 4 * current->quantum * (n < MAX_SMALL ? 1 : 37)) {
        check_small(arena, sparse, n % 61, source, 0, n);
        check_small(arena, sparse, ARENA - n, source, 0, n);
    }
}

static void check_large(void)
{
    static const size_t sizes[] = {4096, 65536 + 96, 1048576 - 64, 8192000, (33u << 20) + 192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i] - sizes[i] % current->quantum, bytes = (n + 63 + PAGE) & ~(size_t)(PAGE - 1);
        uint8_t *dst = map_guarded(bytes), *src = map_guarded(bytes);
        fill_random(src, bytes);
        memset(dst, 0x5c, bytes);
        size_t at = bytes - n; /* flush with the end */
        int c = current->op == WHERRY_OP_set ? 0xa5 : 0;
        if (call(dst + at, src + at, c, n) != dst + at)
            fail("wrong return value", n, at, at);
        if (!reads_source())
            memset(src + at, c, n);
        if (memcmp(dst + at, src + at, n) != 0)
            fail("wrong bytes", n, at, at);
        for (size_t k = 0; k < at; k++)
            if (dst[k] != 0x5c) {
                fail("a byte before the destination changed", n, at, at);
                break;
            }
        munmap(dst - PAGE, bytes + 2 * PAGE);
        munmap(src - PAGE, bytes + 2 * PAGE);
    }
}

static void check_state(uint8_t *arena, uint8_t *source)
{
    static const size_t sizes[] = {0, 64, 128, 256, 512, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        struct x87_state before, after;
        uint16_t control = 0x127f; /* 53 bits: not what fninit sets */
        uint32_t mxcsr = 0x1f80 | 1 << 13, mxcsr_default = mxcsr_read();
        bool clobbers = current->traits & (TRAIT_X87_CLOBBER | TRAIT_MMX_CLOBBER);
        __asm__ volatile("fninit\n\tfldcw %0" ::"m"(control));
        if (!clobbers) /* values on the stack: the routine must not disturb them */
            __asm__ volatile("fldpi\n\tfldl2e\n\tfld1" :::);
        __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr));
        x87_read(&before);
        call(arena, source, 0, n);
        x87_read(&after);
        uint32_t mxcsr_after = mxcsr_read();
        __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr_default));
        __asm__ volatile("fninit");
        if (direction_flag()) {
            __asm__ volatile("cld");
            fail("direction flag left set", n, 0, 0);
        }
        if ((mxcsr_after & ~0x3fu) != (mxcsr & ~0x3fu))
            fail("MXCSR changed", n, 0, 0);
        if (after.control != before.control)
            fail("x87 control word changed", n, 0, 0);
        if (after.tag != before.tag)
            fail(clobbers ? "x87 stack not empty" : "x87 tags changed", n, 0, 0);
        if (!clobbers && memcmp(&before, &after, sizeof before) != 0)
            fail("x87 state changed", n, 0, 0);
    }
}

/* i686_pagezero promises not to write to what is zero already: read-only memory would fault. */
static void check_clean(void)
{
    if (strcmp(current->name, "i686_pagezero") != 0)
        return;
    uint8_t *clean = map_guarded(ARENA);
    mprotect(clean, ARENA, PROT_READ);
    for (size_t n = ARENA - 5; n <= ARENA; n++)
        call(clean + ARENA - n, NULL, 0, n);
    munmap(clean - PAGE, ARENA + 2 * PAGE);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    struct wherry_cpu cpu;
    wherry_cpu_detect_all(&cpu);
    for (int i = 1; i < argc; i++)
        if (!wherry_routine_find(argv[i])) {
            fprintf(stderr, "routines_smoke: no routine is called \"%s\"; wherry-run list shows them\n", argv[i]);
            return 2;
        }
    signal(SIGSEGV, on_fault);
    uint8_t *arena = map_guarded(ARENA), *source = map_guarded(ARENA);
    unsigned checked = 0, skipped = 0;
    for (size_t i = 0; i < wherry_routine_count; i++) {
        current = &wherry_routines[i];
        if (!wanted(current->name, argc, argv) || current->op > WHERRY_OP_zero) /* of the four ops that libc has */
            continue;
        if (!wherry_plan_can_run(&cpu, current->needs)) {
            skipped++;
            continue;
        }
        checked++;
        if (call(NULL, NULL, 0, 0) != NULL)
            fail("wrong return value for null pointers", 0, 0, 0);
        fill_random(arena, ARENA);
        fill_random(source, ARENA);
        check_sizes(arena, source);
        check_sparse(arena, source);
        check_large();
        check_state(arena, source);
        check_clean();
    }
    printf("%u routines checked, %u not for this CPU, %u failures\n", checked, skipped, failures);
    return failures != 0;
}
