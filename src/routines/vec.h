/* The vector vocabulary: one set of words over SSE2, AVX2 and AVX-512, chosen by VEC_BYTES (16, 32 or 64).
 * A vec_* operation is one instruction. */
#ifndef WHERRY_VEC_H
#define WHERRY_VEC_H

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

#if VEC_BYTES == 16
typedef __m128i vec;
INLINE vec vec_load(const void *p) { return _mm_loadu_si128(p); }
INLINE void vec_store(void *p, vec v) { _mm_storeu_si128(p, v); }
INLINE void vec_store_aligned(void *p, vec v) { _mm_store_si128(p, v); }
INLINE void vec_store_nt(void *p, vec v) { _mm_stream_si128(p, v); }
INLINE vec vec_set1(int c) { return _mm_set1_epi8((char)c); }
#elif VEC_BYTES == 32 || VEC_BYTES == 64
/* __m256i and __m512i, without immintrin.h, which takes longer to read than a routine to compile. Who needs more than
 * these words includes it. */
typedef long long vec __attribute__((vector_size(VEC_BYTES), may_alias));
typedef long long vec_anywhere __attribute__((vector_size(VEC_BYTES), may_alias, aligned(1)));
typedef char vec_of_bytes __attribute__((vector_size(VEC_BYTES), may_alias));
INLINE vec vec_load(const void *p) { return *(const vec_anywhere *)p; }
INLINE void vec_store(void *p, vec v) { *(vec_anywhere *)p = v; }
INLINE void vec_store_aligned(void *p, vec v) { *(vec *)p = v; }
INLINE void vec_store_nt(void *p, vec v)
{
#ifdef __clang__
    __builtin_nontemporal_store(v, (vec *)p);
#elif VEC_BYTES == 32
    __builtin_ia32_movntdq256((vec *)p, v);
#else
    __builtin_ia32_movntdq512((vec *)p, v);
#endif
}
INLINE vec vec_set1(int c) { return (vec)((vec_of_bytes){0} + (char)c); }
INLINE __m128i vec_lowest(vec v) { return (__m128i){v[0], v[1]}; } /* its first 16 bytes */
#else
#error "VEC_BYTES must be 16, 32 or 64"
#endif

/* One step of a loop is four vectors: enough loads in flight to hide an L1 hit, few enough to stay in registers. */
enum { STEP_BYTES = 4 * VEC_BYTES };
struct step {
    vec part[4];
};
INLINE struct step step_load(const uint8_t *p)
{
    return (struct step){
        {vec_load(p), vec_load(p + VEC_BYTES), vec_load(p + 2 * VEC_BYTES), vec_load(p + 3 * VEC_BYTES)}};
}
INLINE void step_store(uint8_t *p, struct step step)
{
    for (int i = 0; i < 4; i++)
        vec_store(p + i * VEC_BYTES, step.part[i]);
}
INLINE void step_store_aligned(uint8_t *p, struct step step)
{
    for (int i = 0; i < 4; i++)
        vec_store_aligned(p + i * VEC_BYTES, step.part[i]);
}
INLINE void step_store_nt(uint8_t *p, struct step step)
{
    for (int i = 0; i < 4; i++)
        vec_store_nt(p + i * VEC_BYTES, step.part[i]);
}

/* The last vector boundary below end. Up to 4V before end, three vectors before it and one that ends at end cover
 * everything, and only the last of them can lie across two lines. */
INLINE uint8_t *last_boundary(const uint8_t *end)
{
    return (uint8_t *)(((uintptr_t)end - 1) & ~(uintptr_t)(VEC_BYTES - 1));
}

/* The first one above start, for the same from the front. */
INLINE uint8_t *first_boundary(const uint8_t *start)
{
    return (uint8_t *)(((uintptr_t)start + VEC_BYTES) & ~(uintptr_t)(VEC_BYTES - 1));
}

/* Loaded once: left alone, GCC loads what two instructions use twice, and somebody may change it meanwhile. */
INLINE vec vec_once(vec v)
{
    __asm__("" : "+v"(v));
    return v;
}

/* Between the loads and the stores of a turn: the compiler keeps them apart and in the order written. Left alone, GCC
 * stores the last vector loaded first, and neighbours that do not follow each other are not joined in the store queue:
 * a 32-byte loop took 1.2 times as long. */
#define LOADS_THEN_STORES() __asm__("" ::: "memory")

/* In a loop: both cursors stay registers that advance. Compilers else derive one from the other, or from a count, and
 * compute afterwards where the loop ended. */
#define KEEP_CURSORS(dst, src) __asm__("" : "+r"(dst), "+r"(src))

/* A cache line, held in one, two or four vectors. */
enum { LINE_BYTES = 64 };
INLINE uint8_t *line_at_or_below(const uint8_t *p) { return (uint8_t *)((uintptr_t)p & -(uintptr_t)LINE_BYTES); }
INLINE uint8_t *line_at_or_above(const uint8_t *p)
{
    return (uint8_t *)(((uintptr_t)p + LINE_BYTES - 1) & -(uintptr_t)LINE_BYTES);
}
struct line {
    vec part[LINE_BYTES / VEC_BYTES];
};
INLINE struct line line_load(const uint8_t *p)
{
    struct line line;
    for (int i = 0; i < LINE_BYTES / VEC_BYTES; i++)
        line.part[i] = vec_load(p + i * VEC_BYTES);
    return line;
}
INLINE void line_store(uint8_t *p, struct line line)
{
    for (int i = 0; i < LINE_BYTES / VEC_BYTES; i++)
        vec_store(p + i * VEC_BYTES, line.part[i]);
}

INLINE void line_store_nt(uint8_t *p, struct line line)
{
    for (int i = 0; i < LINE_BYTES / VEC_BYTES; i++)
        vec_store_nt(p + i * VEC_BYTES, line.part[i]);
}
INLINE struct line line_of(vec v)
{
    struct line line;
    for (int i = 0; i < LINE_BYTES / VEC_BYTES; i++)
        line.part[i] = v;
    return line;
}

/* Vectors that one size class has at most, by measurement. */
enum { BLOCKS_MOST = VEC_BYTES == 32 ? 8 : 16 };

/* offset when n > limit, else 0, without a branch: for sizes that nobody can predict a wrong guess costs more than all
 * the blocks. Compilers make a branch of the C expression. */
INLINE size_t offset_if_above(size_t n, const int limit, size_t offset)
{
    size_t chosen = 0;
    __asm__("cmp %[limit], %[n]\n\tcmova %[offset], %[chosen]"
            : [chosen] "+r"(chosen)
            : [n] "r"(n), [limit] "er"((size_t)limit), [offset] "r"(offset)
            : "cc");
    return chosen;
}

#if VEC_BYTES == 64
/* At most 64 bytes as one block under a mask. A mask costs nothing unless the block reaches into another page: then a
 * store takes 4 ns longer, and everything 190 ns when that page is not mapped. So where the block that begins at the
 * buffer would do that, take the one that ends with it; a branch would be guessed wrong as often as it is needed. */
struct masked {
    size_t at; /* offset of the block from the buffer: 0, or n - 64 */
    uint64_t mask;
};

/* Null, and what stands for an empty slice in Rust. A branch on n == 0 would be guessed wrong; this one never is. */
enum { PAGE_0_BYTES = 4096 };

/* Which line of its page p lies in; a block from the last one, all ones, may reach into the next page. */
INLINE unsigned line_in_page(const void *p) { return (unsigned)(uintptr_t)p & 0xfc0; }

/* lines: line_in_page of one side, or of both or-ed. That may name the last line where neither side lies in it, and
 * then neither lies in the first, whose bits are zero: the block that ends where the buffer ends is as good there. */
INLINE struct masked masked_block(size_t n, unsigned lines)
{
    size_t at = n - 64;
    __asm__("cmp $0xfc0, %[lines]\n\tcmovne %[here], %[at]"
            : [at] "+r"(at)
            : [lines] "r"(lines), [here] "r"((size_t)0)
            : "cc");
    return (struct masked){at, __builtin_ia32_bzhi_di(~0ull, n) << (-at & 63)};
}
#endif

/* The scalar blocks, for sizes below a vector. memcpy of a constant size is one move, never a call. */
INLINE uint64_t load8(const void *p)
{
    uint64_t v;
    __builtin_memcpy(&v, p, 8);
    return v;
}
INLINE uint32_t load4(const void *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, 4);
    return v;
}
INLINE uint16_t load2(const void *p)
{
    uint16_t v;
    __builtin_memcpy(&v, p, 2);
    return v;
}
INLINE void store8(void *p, uint64_t v) { __builtin_memcpy(p, &v, 8); }
INLINE void store4(void *p, uint32_t v) { __builtin_memcpy(p, &v, 4); }
INLINE void store2(void *p, uint16_t v) { __builtin_memcpy(p, &v, 2); }

#endif
