#include "yardsticks.h"

#include <immintrin.h>
#include <string.h>

#include "cpu/cpu.h"
#include "ops.h"
#include "plan/plan.h"
#include "words.h"

enum { LINE = 64, VECTORS = 4, PARTS = 5 };

/* What is less than a vector. The empty statements keep the compiler from making a call of a loop. */
static inline void read_rest(const char *at, const char *end)
{
    for (; end - at >= (ptrdiff_t)sizeof(unaligned_word); at += sizeof(unaligned_word)) {
        const uint64_t word = *(const unaligned_word *)at;
        __asm__ volatile("" : : "r"(word));
    }
    for (; at < end; at++) {
        char byte = *at;
        __asm__ volatile("" : : "q"(byte));
    }
}

static inline void write_rest(char *at, const char *end, char byte)
{
    const uint64_t word = 0x0101010101010101u * (unsigned char)byte;
    for (; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        *(unaligned_word *)at = word;
        __asm__ volatile("" : : : "memory");
    }
    for (; at < end; at++) {
        *at = byte;
        __asm__ volatile("" : : : "memory");
    }
}

static inline void copy_rest(char *to, const char *from, const char *end)
{
    for (uint64_t word; end - from >= (ptrdiff_t)sizeof word; from += sizeof word, to += sizeof word) {
        word = *(const unaligned_word *)from;
        __asm__ volatile("" : "+r"(word));
        *(unaligned_word *)to = word;
    }
    for (; from < end; from++, to++) {
        char byte = *from;
        __asm__ volatile("" : "+q"(byte));
        *to = byte;
    }
}

/* Plain loops of four vectors a turn, with a last one that overlaps. A loaded vector is handed to an empty
 * statement: it is loaded, and nothing is done with it. Streaming stores have to begin at a line's beginning, and
 * nothing overlaps them, since that would fetch the line again. */
#define BANDWIDTHS(isa, features, vector, load, store, stream, spread)                                                 \
    __attribute__((target(features), noinline)) static void read_##isa(const char *at, size_t n)                       \
    {                                                                                                                  \
        const char *end = at + n;                                                                                      \
        for (; (size_t)(end - at) >= VECTORS * sizeof(vector); at += VECTORS * sizeof(vector)) {                       \
            const vector *from = (const vector *)at;                                                                   \
            vector a = load(from), b = load(from + 1), c = load(from + 2), d = load(from + 3);                         \
            __asm__ volatile("" : : "v"(a), "v"(b), "v"(c), "v"(d));                                                   \
        }                                                                                                              \
        for (; (size_t)(end - at) >= sizeof(vector); at += sizeof(vector)) {                                           \
            vector a = load((const vector *)at);                                                                       \
            __asm__ volatile("" : : "v"(a));                                                                           \
        }                                                                                                              \
        if (at < end && n >= sizeof(vector)) {                                                                         \
            vector last = load((const vector *)(end - sizeof(vector)));                                                \
            __asm__ volatile("" : : "v"(last));                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        read_rest(at, end);                                                                                            \
    }                                                                                                                  \
    static void *read_src_##isa(void *dst, const void *src, size_t n)                                                  \
    {                                                                                                                  \
        read_##isa(src, n);                                                                                            \
        return dst;                                                                                                    \
    }                                                                                                                  \
    static void *read_dst_##isa(void *dst, const void *src, size_t n)                                                  \
    {                                                                                                                  \
        (void)src;                                                                                                     \
        read_##isa(dst, n);                                                                                            \
        return dst;                                                                                                    \
    }                                                                                                                  \
    __attribute__((target(features), noinline)) static void *write_##isa(void *dst, const void *src, size_t n)         \
    {                                                                                                                  \
        char *at = dst, *end = at + n, byte = (char)(uintptr_t)src;                                                    \
        const vector all = spread(byte);                                                                               \
        for (; (size_t)(end - at) >= VECTORS * sizeof(vector); at += VECTORS * sizeof(vector)) {                       \
            vector *to = (vector *)at;                                                                                 \
            store(to, all), store(to + 1, all), store(to + 2, all), store(to + 3, all);                                \
        }                                                                                                              \
        for (; (size_t)(end - at) >= sizeof(vector); at += sizeof(vector))                                             \
            store((vector *)at, all);                                                                                  \
        if (at < end && n >= sizeof(vector))                                                                           \
            store((vector *)(end - sizeof(vector)), all);                                                              \
        else                                                                                                           \
            write_rest(at, end, byte);                                                                                 \
        return dst;                                                                                                    \
    }                                                                                                                  \
    __attribute__((target(features), noinline)) static void *write_nt_##isa(void *dst, const void *src, size_t n)      \
    {                                                                                                                  \
        char *at = dst, *end = at + n, byte = (char)(uintptr_t)src;                                                    \
        const vector all = spread(byte);                                                                               \
        size_t head = -(uintptr_t)at % LINE;                                                                           \
        head = head < n ? head : n;                                                                                    \
        write_rest(at, at + head, byte);                                                                               \
        for (at += head; (size_t)(end - at) >= VECTORS * sizeof(vector); at += VECTORS * sizeof(vector)) {             \
            vector *to = (vector *)at;                                                                                 \
            stream(to, all), stream(to + 1, all), stream(to + 2, all), stream(to + 3, all);                            \
        }                                                                                                              \
        for (; (size_t)(end - at) >= sizeof(vector); at += sizeof(vector))                                             \
            stream((vector *)at, all);                                                                                 \
        write_rest(at, end, byte);                                                                                     \
        _mm_sfence();                                                                                                  \
        return dst;                                                                                                    \
    }                                                                                                                  \
    __attribute__((target(features), noinline)) static void *copy_##isa(void *dst, const void *src, size_t n)          \
    {                                                                                                                  \
        char *to = dst;                                                                                                \
        const char *from = src, *end = from + n;                                                                       \
        for (; (size_t)(end - from) >= VECTORS * sizeof(vector); from += VECTORS * sizeof(vector)) {                   \
            const vector *at = (const vector *)from;                                                                   \
            vector *out = (vector *)to;                                                                                \
            vector a = load(at), b = load(at + 1), c = load(at + 2), d = load(at + 3);                                 \
            store(out, a), store(out + 1, b), store(out + 2, c), store(out + 3, d);                                    \
            to += VECTORS * sizeof(vector);                                                                            \
        }                                                                                                              \
        for (; (size_t)(end - from) >= sizeof(vector); from += sizeof(vector), to += sizeof(vector))                   \
            store((vector *)to, load((const vector *)from));                                                           \
        if (from < end && n >= sizeof(vector))                                                                         \
            store((vector *)(to + (end - from)) - 1, load((const vector *)end - 1));                                   \
        else                                                                                                           \
            copy_rest(to, from, end);                                                                                  \
        return dst;                                                                                                    \
    }                                                                                                                  \
    /* From the lines in which both sides begin: the same work wherever in them they begin. */                         \
    static void *copy_lines_##isa(void *dst, const void *src, size_t n)                                                \
    {                                                                                                                  \
        return copy_##isa((char *)dst - (uintptr_t)dst % LINE, (const char *)src - (uintptr_t)src % LINE, n);          \
    }                                                                                                                  \
    __attribute__((target(features), noinline)) static void *copy_nt_##isa(void *dst, const void *src, size_t n)       \
    {                                                                                                                  \
        char *to = dst;                                                                                                \
        const char *from = src, *end = from + n;                                                                       \
        size_t head = -(uintptr_t)to % LINE;                                                                           \
        head = head < n ? head : n;                                                                                    \
        copy_rest(to, from, from + head);                                                                              \
        to += head;                                                                                                    \
        for (from += head; (size_t)(end - from) >= VECTORS * sizeof(vector); from += VECTORS * sizeof(vector)) {       \
            const vector *at = (const vector *)from;                                                                   \
            vector *out = (vector *)to;                                                                                \
            vector a = load(at), b = load(at + 1), c = load(at + 2), d = load(at + 3);                                 \
            stream(out, a), stream(out + 1, b), stream(out + 2, c), stream(out + 3, d);                                \
            to += VECTORS * sizeof(vector);                                                                            \
        }                                                                                                              \
        for (; (size_t)(end - from) >= sizeof(vector); from += sizeof(vector), to += sizeof(vector))                   \
            stream((vector *)to, load((const vector *)from));                                                          \
        copy_rest(to, from, end);                                                                                      \
        _mm_sfence();                                                                                                  \
        return dst;                                                                                                    \
    }                                                                                                                  \
    /* A line of each part in turn: memory may answer several rows at once. */                                         \
    __attribute__((target(features), noinline)) static void *copy_nt_parts_##isa(void *dst, const void *src, size_t n) \
    {                                                                                                                  \
        const size_t part = n / PARTS / LINE * LINE;                                                                   \
        size_t head = -(uintptr_t)dst % LINE;                                                                          \
        head = head < n ? head : n;                                                                                    \
        const size_t parts = n - head >= PARTS * part ? PARTS * part : 0;                                              \
        copy_rest(dst, src, (const char *)src + head);                                                                 \
        for (size_t at = head; parts && at < head + part; at += LINE)                                                  \
            for (size_t i = 0; i < PARTS; i++)                                                                         \
                for (size_t j = 0; j < LINE; j += sizeof(vector)) {                                                    \
                    const size_t here = at + i * part + j;                                                             \
                    stream((vector *)((char *)dst + here), load((const vector *)((const char *)src + here)));          \
                }                                                                                                      \
        copy_nt_##isa((char *)dst + head + parts, (const char *)src + head + parts, n - head - parts);                 \
        return dst;                                                                                                    \
    }

BANDWIDTHS(sse2, "sse2", __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128, _mm_set1_epi8)
BANDWIDTHS(avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256, _mm256_set1_epi8)
BANDWIDTHS(avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, _mm512_set1_epi8)

static const struct {
    const char *name;
    /* by tier; for an op with a source, and for one without */
    loop_fn *with_source[WHERRY_ISA_COUNT], *without[WHERRY_ISA_COUNT];
} yardsticks[] = {
    {"call_floor", {call_floor, call_floor, call_floor}, {call_floor, call_floor, call_floor}},
    {"read_bandwidth",
     {read_src_sse2, read_src_avx2, read_src_avx512},
     {read_dst_sse2, read_dst_avx2, read_dst_avx512}},
    {"write_bandwidth", {write_sse2, write_avx2, write_avx512}, {write_sse2, write_avx2, write_avx512}},
    {"write_nt_bandwidth",
     {write_nt_sse2, write_nt_avx2, write_nt_avx512},
     {write_nt_sse2, write_nt_avx2, write_nt_avx512}},
    {"copy_bandwidth", {copy_sse2, copy_avx2, copy_avx512}, {0}},
    {"copy_lines", {copy_lines_sse2, copy_lines_avx2, copy_lines_avx512}, {0}},
    {"copy_nt_bandwidth", {copy_nt_sse2, copy_nt_avx2, copy_nt_avx512}, {0}},
    {"copy_nt_parts_bandwidth", {copy_nt_parts_sse2, copy_nt_parts_avx2, copy_nt_parts_avx512}, {0}},
};
enum { COUNT = sizeof yardsticks / sizeof yardsticks[0] };

static int find(const char *name)
{
    int at = 0;
    while (at < COUNT && strcmp(yardsticks[at].name, name) != 0)
        at++;
    return at;
}

bool is_yardstick(const char *name) { return find(name) < COUNT; }

loop_fn *yardstick(const char *name, enum wherry_op op)
{
    int at = find(name);
    if (at == COUNT)
        return NULL;
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    enum wherry_isa isa = wherry_plan_isa(&cpu);
    const bool source = op_copies(op) || op_reads(op) != (op == WHERRY_OP_iszero);
    if (op_reads(op) && at > find("read_bandwidth")) /* the others write */
        return NULL;
    return source ? yardsticks[at].with_source[isa] : yardsticks[at].without[isa];
}
