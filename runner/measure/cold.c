#include "cold.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"
#include "random.h"

/* 2048 lines hold twice the largest L1 instruction cache there is (64 KiB), and more lines than any cache of decoded
 * instructions has entries. They stay within L2, where the routine's own code is then found. JUMPS a line make 40,960
 * branches, since a front end that still knows a routine's jumps fetches its lines ahead and shows next to nothing
 * (with 24,576 a Zen 5 still knew them). */
enum {
    LINE = 64,
    LINES = 2048,
    BYTES = LINE * LINES,
    JUMPS = 20,
    BRANCHES = 64,
    TURNS = 200,
    NOTHINGS = 2000,
    TRIES = 5
};

/* cold_call.S */
uint64_t cold_time_call(loop_fn *fn, void *dst, const void *src, size_t n);
uint64_t cold_time_nothing(void);

struct writer {
    uint8_t *at;
};

static void put(struct writer *to, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *to->at++ = (uint8_t)bytes[i];
}

static void put_int32(struct writer *to, int32_t value)
{
    for (int shift = 0; shift < 32; shift += 8)
        *to->at++ = (uint8_t)((uint32_t)value >> shift);
}

/* Each line jumps to another one in an order that no prefetcher guesses. In some a branch hangs on a bit of the
 * argument: the history of branches differs from pass to pass, as in a program that did something else. */
static void write_stretch(uint8_t *code, uint64_t *random)
{
    uint16_t order[LINES], entry[LINES];
    for (unsigned i = 0; i < LINES; i++) {
        order[i] = (uint16_t)i;
        /* Where in its line the code begins: branches of all lines shall not share sets of the predictors. */
        entry[i] = (uint16_t)(random_below(random, LINE - 16 - 2 * JUMPS));
    }
    for (unsigned i = LINES - 1; i > 1; i--) { /* the first line stays the first */
        unsigned other = 1 + (unsigned)random_below(random, i);
        uint16_t held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
    entry[0] = 0;
    memset(code, 0xcc, BYTES);
    for (unsigned i = 0; i < LINES; i++) {
        struct writer to = {code + order[i] * LINE + entry[order[i]]};
        for (int jump = 1; jump < JUMPS; jump++)
            put(&to, "\xeb\x00", 2); /* jmp to what follows */
        if (i % (LINES / BRANCHES) == 0) {
            put(&to, "\xf7\xc7", 2); /* test edi, bit */
            put_int32(&to, (int32_t)(UINT32_C(1) << random_below(random, 32)));
            put(&to, "\x74\x03", 2);     /* jz over the next */
            put(&to, "\x0f\x1f\x00", 3); /* nop of three bytes */
        }
        if (i + 1 == LINES) {
            put(&to, "\xc3", 1); /* ret */
            break;
        }
        const uint8_t *next = code + order[i + 1] * LINE + entry[order[i + 1]];
        put(&to, "\xe9", 1); /* jmp */
        put_int32(&to, (int32_t)(next - (to.at + 4)));
    }
}

const char *cold_make(struct cold *cold, uint64_t seed)
{
    if (cold->stretch)
        return NULL;
    uint8_t *code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return "code=cold: no memory for the code that runs between calls";
    write_stretch(code, &seed);
    if (mprotect(code, BYTES, PROT_READ | PROT_EXEC) != 0) {
        munmap(code, BYTES);
        return "code=cold: this system does not let a program make code that it then runs";
    }
    memcpy(&cold->stretch, &code, sizeof code);
    cold->nothing_ticks = INFINITY;
    for (int try = 0; try < TRIES; try++) { /* the least: an interrupt only adds */
        uint64_t sum = 0;
        for (int i = 0; i < NOTHINGS; i++)
            sum += cold_time_nothing();
        cold->nothing_ticks = fmin(cold->nothing_ticks, (double)sum / NOTHINGS);
    }
    uint64_t begin = clock_ns();
    for (int i = 0; i < TURNS; i++)
        cold->stretch(random_next(&seed));
    cold->stretch_ns = (double)(clock_ns() - begin) / TURNS;
    return NULL;
}

double cold_calls(const struct cold *cold, loop_fn *fn, struct walk *walk, uint64_t calls, uint64_t *random)
{
    uint64_t spent = 0, begin_ns = clock_ns(), begin = __builtin_ia32_rdtsc();
    for (uint64_t left = calls; left; left--) {
        const struct one_call call = walk_next(walk);
        cold->stretch(random_next(random));
        spent += cold_time_call(fn, call.dst, call.src, call.n);
    }
    /* The counter's own rate, from the whole of this sample. */
    double tick_ns = (double)(clock_ns() - begin_ns) / (double)(__builtin_ia32_rdtsc() - begin);
    return fmax((double)spent - cold->nothing_ticks * (double)calls, 0) * tick_ns;
}
