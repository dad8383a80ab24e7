/* Memory to be called on, and compare and copy loops that depend on nothing under test. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "verify.h"

typedef uint8_t block __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint8_t wide __attribute__((vector_size(32), aligned(1), may_alias));
typedef long long wide_words __attribute__((vector_size(32)));

/* Most instructions of a verification are here, so they are as wide as this CPU has them, AVX2 at most: with vzeroupper
 * behind it, by name, nothing of it is left in the registers, whatever the compiler is told. */
static bool has_avx2;
#define WIDE __attribute__((target("avx2")))

void memory_init(void)
{
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    has_avx2 = wherry_cpu_has(&cpu, WHERRY_CPU_AVX2);
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t below(struct unit *unit, uint64_t limit)
{
    return limit ? (uint64_t)((unsigned __int128)next_random(&unit->random) * limit >> 64) : 0;
}

struct verify_pulse *own_pulse;

_Noreturn void no_room(void)
{
    own_pulse->no_room = true;
    _Exit(3);
}

void *map_if_possible(size_t length, int protection)
{
    void *at = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void *map_or_die(size_t length, int protection)
{
    void *at = map_if_possible(length, protection);
    if (!at)
        no_room();
    return at;
}

void pattern_fill(uint8_t *to, size_t length, uint64_t seed, int parity)
{
    uint64_t state = seed ^ 0x6a09e667f3bcc908u * (unsigned)(parity + 1);
    const uint64_t ones = 0x0101010101010101u, set = parity == 1 ? ones : 0, clear = parity == 0 ? ones : 0;
    size_t i = 0;
    /* To fill is most of what some cases take: one number for eight words, of which each has another byte at each
     * place, with the same parity. */
    for (; length - i >= 64; i += 64) {
        const uint64_t w = (next_random(&state) | set) & ~clear;
        for (size_t k = 0; k < 8; k++)
            *(word *)(to + i + 8 * k) = w ^ k * 0x241c221a1e162012u;
    }
    for (; length - i >= 8; i += 8)
        *(word *)(to + i) = (next_random(&state) | set) & ~clear;
    for (; i < length; i++)
        to[i] = parity == PARITY_ANY ? (uint8_t)(i * 7) : (uint8_t)(i * 2 + (unsigned)parity);
}

struct arena arena_make(size_t length, uint64_t seed, int parity)
{
    enum { MOAT = 16 * PAGE };
    length = (length + PAGE - 1) & ~(size_t)(PAGE - 1);
    struct arena a = {.length = length};
    uint8_t *whole = map_or_die(length + 2 * MOAT, PROT_NONE);
    a.base = whole + MOAT;
    if (mprotect(a.base, length, PROT_READ | PROT_WRITE) != 0)
        no_room();
    uint8_t *back = map_or_die(length + 2 * MOAT, PROT_NONE);
    a.back = back + MOAT;
    if (mprotect(a.back, length, PROT_READ | PROT_WRITE) != 0)
        no_room();
    pattern_fill(a.back, length, seed, parity);
    plain_copy(a.base, a.back, length);
    mprotect(a.back, length, PROT_READ); /* a stray write must not change what is expected */
    return a;
}

/* Of these the bytes done: whole blocks of 128. */
WIDE static size_t copy_wide(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 128; i += 128) {
        wide a = *(const wide *)(src + i), b = *(const wide *)(src + i + 32);
        wide c = *(const wide *)(src + i + 64), d = *(const wide *)(src + i + 96);
        *(wide *)(dst + i) = a;
        *(wide *)(dst + i + 32) = b;
        *(wide *)(dst + i + 64) = c;
        *(wide *)(dst + i + 96) = d;
    }
    __builtin_ia32_vzeroupper();
    return i;
}

void plain_copy(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    if (has_avx2 && n >= 128) {
        const size_t done = copy_wide(dst, src, n);
        dst += done;
        src += done;
        n -= done;
    }
    for (; n >= 64; n -= 64, dst += 64, src += 64) {
        block a = *(const block *)src, b = *(const block *)(src + 16);
        block c = *(const block *)(src + 32), d = *(const block *)(src + 48);
        *(block *)dst = a;
        *(block *)(dst + 16) = b;
        *(block *)(dst + 32) = c;
        *(block *)(dst + 48) = d;
    }
    for (; n >= 8; n -= 8, dst += 8, src += 8)
        *(word *)dst = *(const word *)src;
    for (; n > 0; n--)
        *dst++ = *src++;
}

void plain_fill(uint8_t *dst, uint8_t c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = c;
}

#define DIFFERENT(type, at) (*(const type *)(a + (at)) ^ *(const type *)(b + (at)))

/* Bytes from the beginning on that are equal: whole blocks of 64, and all such blocks before the first difference. */
WIDE static size_t equal_wide(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t left = n;
    for (; left >= 256; left -= 256, a += 256, b += 256) {
        const wide x = (DIFFERENT(wide, 0) | DIFFERENT(wide, 32)) | (DIFFERENT(wide, 64) | DIFFERENT(wide, 96)) |
                       ((DIFFERENT(wide, 128) | DIFFERENT(wide, 160)) | (DIFFERENT(wide, 192) | DIFFERENT(wide, 224)));
        if (!__builtin_ia32_ptestz256((wide_words)x, (wide_words)x))
            break;
    }
    for (; left >= 64; left -= 64, a += 64, b += 64) {
        const wide x = DIFFERENT(wide, 0) | DIFFERENT(wide, 32);
        if (!__builtin_ia32_ptestz256((wide_words)x, (wide_words)x))
            break;
    }
    __builtin_ia32_vzeroupper();
    return n - left;
}

static size_t equal_blocks(const uint8_t *a, const uint8_t *b, size_t n)
{
    if (has_avx2 && n >= 64)
        return equal_wide(a, b, n);
    size_t left = n;
    for (; left >= 64; left -= 64, a += 64, b += 64) {
        typedef uint64_t pair __attribute__((vector_size(16)));
        const pair p =
            (pair)((DIFFERENT(block, 0) | DIFFERENT(block, 16)) | (DIFFERENT(block, 32) | DIFFERENT(block, 48)));
        if (p[0] | p[1])
            break;
    }
    return n - left;
}
#undef DIFFERENT

bool plain_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    const size_t equal = equal_blocks(a, b, n);
    a += equal;
    b += equal;
    n -= equal;
    if (n >= 64)
        return false;
    for (; n >= 8; n -= 8, a += 8, b += 8)
        if (*(const word *)a != *(const word *)b)
            return false;
    for (; n > 0; n--)
        if (*a++ != *b++)
            return false;
    return true;
}

/* As equal_blocks, of bytes that are c. */
WIDE static size_t all_wide(const uint8_t *a, uint8_t c, size_t n)
{
    const wide other = c - (wide){0};
    size_t left = n;
    for (; left >= 64; left -= 64, a += 64) {
        const wide x = (*(const wide *)a ^ other) | (*(const wide *)(a + 32) ^ other);
        if (!__builtin_ia32_ptestz256((wide_words)x, (wide_words)x))
            break;
    }
    __builtin_ia32_vzeroupper();
    return n - left;
}

static size_t all_blocks(const uint8_t *a, uint8_t c, size_t n)
{
    if (has_avx2 && n >= 64)
        return all_wide(a, c, n);
    const uint64_t eight = c * 0x0101010101010101u;
    size_t left = n;
    for (; left >= 32; left -= 32, a += 32)
        if ((*(const word *)a ^ eight) | (*(const word *)(a + 8) ^ eight) | (*(const word *)(a + 16) ^ eight) |
            (*(const word *)(a + 24) ^ eight))
            break;
    return n - left;
}

bool plain_all(const uint8_t *a, uint8_t c, size_t n) { return first_other(a, c, n) == n; }

size_t first_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t i = equal_blocks(a, b, n);
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

size_t first_other(const uint8_t *a, uint8_t c, size_t n)
{
    size_t i = all_blocks(a, c, n);
    while (n - i >= 8 && *(const word *)(a + i) == c * 0x0101010101010101u)
        i += 8;
    while (i < n && a[i] == c)
        i++;
    return i;
}

bool size_fits(const struct target *target, size_t n)
{
    return !target->routine || target->routine->quantum <= 1 || n % target->routine->quantum == 0;
}

size_t fit(const struct target *target, size_t n)
{
    return target->routine && target->routine->quantum > 1 ? n - n % target->routine->quantum : n;
}

uint8_t *map_repeated(size_t length)
{
    length = (length + PIECE - 1) / PIECE * PIECE;
    uint8_t *base = map_or_die(length, PROT_NONE);
    int fd = memfd_create("wherry-verify", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, PIECE) != 0)
        no_room();
    /* Populated: a fault a page takes three times as long. */
    for (size_t at = 0; at < length; at += PIECE)
        if (mmap(base + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
            no_room();
    close(fd);
    return base;
}
