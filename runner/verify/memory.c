/* Memory to be called on, and compare and copy loops that depend on nothing under test. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "verify.h"

typedef uint8_t block __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t word __attribute__((aligned(1), may_alias));

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
    const uint64_t ones = 0x0101010101010101u;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t w = next_random(&state);
        *(word *)(to + i) = parity == 1 ? w | ones : parity == 0 ? w & ~ones : w;
    }
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

void plain_copy(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
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

bool plain_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    for (; n >= 64; n -= 64, a += 64, b += 64) {
        block x = (*(const block *)a ^ *(const block *)b) | (*(const block *)(a + 16) ^ *(const block *)(b + 16)) |
                  (*(const block *)(a + 32) ^ *(const block *)(b + 32)) |
                  (*(const block *)(a + 48) ^ *(const block *)(b + 48));
        typedef uint64_t pair __attribute__((vector_size(16)));
        pair p = (pair)x;
        if (p[0] | p[1])
            return false;
    }
    for (; n >= 8; n -= 8, a += 8, b += 8)
        if (*(const word *)a != *(const word *)b)
            return false;
    for (; n > 0; n--)
        if (*a++ != *b++)
            return false;
    return true;
}

bool plain_all(const uint8_t *a, uint8_t c, size_t n)
{
    const uint64_t wide = c * 0x0101010101010101u;
    uint64_t wrong = 0;
    for (; n >= 32; n -= 32, a += 32)
        wrong |= (*(const word *)a ^ wide) | (*(const word *)(a + 8) ^ wide) | (*(const word *)(a + 16) ^ wide) |
                 (*(const word *)(a + 24) ^ wide);
    for (; n > 0; n--)
        wrong |= (uint64_t)(*a++ ^ c);
    return wrong == 0;
}

size_t first_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

size_t first_other(const uint8_t *a, uint8_t c, size_t n)
{
    size_t i = 0;
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
