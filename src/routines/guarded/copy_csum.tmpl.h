/* The fault-tolerant copy that sums, in one pass, for every tier: fused/copy_csum.tmpl.h with an entry in the fault
 * table for each load and store.
 *
 *     struct copied (void *dst, const void *src, size_t n <= CSUM_PART, uint32_t sum)
 *
 * It ends at the first fault and returns how many bytes from the first on are surely copied and summed, and their sum.
 * The caller has the rest copied by the fault-tolerant copy, which finds out to the byte what can be had. So a fault
 * needs no more here than to forget the step in which it happened:
 *
 * - The first store goes to the first byte and the others follow in ascending order, so nothing past what can be written
 *   has changed; what a step has stored before its fault the other copy stores again.
 * - The last block is loaded first and counted last, when all before it is in place.
 *
 * Written in C around single instructions: a mark is an `asm goto`, of which the compiler knows that it may leave for its
 * label with every register as it was. The sides must not overlap. */
#include "copied.h"
#include "fault_table.h"

#include "../fused/csum_vec.h"
#include "../thresholds.h"

#ifndef COPY_CSUM
#error "COPY_CSUM: the routine's symbol"
#endif

#define TEXT_OF(symbol) #symbol
#define TEXT(symbol) TEXT_OF(symbol)

/* clang-format off */
/* CAN_FAULT for C; the caller's instruction, and the label to go on at. */
#define MARKED(kind, resume, instruction)                                     \
    "771: " instruction "\n\t"                                                \
    ".pushsection wherry_faults, \"ao\", @progbits, " TEXT(COPY_CSUM) "\n\t"  \
    ".balign 4\n\t"                                                           \
    ".long 771b - .\n\t"                                                      \
    ".long %l[" #resume "] - .\n\t"                                           \
    ".long " TEXT(kind) "\n\t"                                                \
    ".popsection"
#define LOAD_BY(move, type, into, from, resume)                               \
    __asm__ goto(MARKED(FAULT_LOAD, resume, move " %[memory], %[value]")      \
                 : [value] "=" type(into) : [memory] "m"(*(from)) : : resume)
#define STORE_BY(move, type, value_, to, resume)                              \
    __asm__ goto(MARKED(FAULT_STORE, resume, move " %[value], %[memory]")     \
                 : : [value] type(value_), [memory] "m"(*(to)) : "memory" : resume)

#if VEC_BYTES == 64
#define MOVE "vmovdqu64"
#define MOVE_NT "vmovntdq"
#define VECTOR "v"
#elif VEC_BYTES == 32
#define MOVE "vmovdqu"
#define MOVE_NT "vmovntdq"
#define VECTOR "x"
#else
#define MOVE "movdqu"
#define MOVE_NT "movntdq"
#define VECTOR "x"
#endif
/* clang-format on */

struct block {
    uint8_t byte[VEC_BYTES];
};
#define BLOCK(p) ((struct block *)(p))
#define CONST_BLOCK(p) ((const struct block *)(p))
#define LOAD(into, from, resume) LOAD_BY(MOVE, VECTOR, into, CONST_BLOCK(from), resume)
#define STORE(value, to, resume) STORE_BY(MOVE, VECTOR, value, BLOCK(to), resume)
#define STORE_NT(value, to, resume) STORE_BY(MOVE_NT, VECTOR, value, BLOCK(to), resume)

#define LOAD_STEP(step, from, resume)                                                                                  \
    LOAD((step).part[0], from, resume);                                                                                \
    LOAD((step).part[1], (from) + VEC_BYTES, resume);                                                                  \
    LOAD((step).part[2], (from) + 2 * VEC_BYTES, resume);                                                              \
    LOAD((step).part[3], (from) + 3 * VEC_BYTES, resume)
#define STORE_STEP(store, step, to, resume)                                                                            \
    store((step).part[0], to, resume);                                                                                 \
    store((step).part[1], (to) + VEC_BYTES, resume);                                                                   \
    store((step).part[2], (to) + 2 * VEC_BYTES, resume);                                                               \
    store((step).part[3], (to) + 3 * VEC_BYTES, resume)

/* Masks by comparison: a table would be memory that is not the caller's, among marks of memory that is. */
#if VEC_BYTES == 64
INLINE vec first_bytes(vec v, size_t n) { return vec_first_bytes(v, n); }
INLINE vec last_bytes(vec v, size_t n) { return vec_last_bytes(v, n); }
#else
#define SIXTEEN_FROM(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12,      \
                        n + 13, n + 14, n + 15
#if VEC_BYTES == 32
INLINE vec above(vec a, vec b) { return _mm256_cmpgt_epi8(a, b); }
INLINE vec places(void) { return _mm256_setr_epi8(SIXTEEN_FROM(0), SIXTEEN_FROM(16)); }
#else
INLINE vec above(vec a, vec b) { return _mm_cmpgt_epi8(a, b); }
INLINE vec places(void) { return _mm_setr_epi8(SIXTEEN_FROM(0)); }
#endif
INLINE vec first_bytes(vec v, size_t n) { return vec_and(v, above(vec_set1((int)n), places())); }
INLINE vec last_bytes(vec v, size_t n) { return vec_and(v, above(places(), vec_set1(VEC_BYTES - 1 - (int)n))); }
#endif

/* The sum of bytes of which the first stands at an odd place when odd is. */
INLINE uint32_t turned_back(uint64_t lanes, size_t odd)
{
    const uint32_t own = csum_fold64(lanes);
    const unsigned turn = odd % 2 * 8;
    return own << turn | own >> (-turn % 32);
}

struct copied COPY_CSUM(void *to, const void *from, size_t n, uint32_t sum)
{
    uint8_t *dst = to;
    const uint8_t *src = from;
    if (n > VEC_BYTES) {
        const size_t head = VEC_BYTES - (uintptr_t)dst % VEC_BYTES;
        const size_t rest = (n - head - 1) % VEC_BYTES + 1;
        const uint8_t *const end = src + n - rest;
        struct csum total = csum_zero();
        vec first_block, last_block;
        LOAD(first_block, src, nothing);
        LOAD(last_block, src + n - VEC_BYTES, nothing);
        STORE(first_block, dst, nothing);
        csum_add(&total, vec_turn(first_bytes(first_block, head), head));
        dst += head;
        src += head;
        if (__builtin_expect(n >= wherry_thresholds.copy_stream_from, 0)) {
            for (; (size_t)(end - src) >= STEP_BYTES; src += STEP_BYTES, dst += STEP_BYTES) {
                struct step step;
                LOAD_STEP(step, src, streamed);
                STORE_STEP(STORE_NT, step, dst, streamed);
                csum_add_step(&total, step);
            }
            _mm_sfence();
        } else {
            for (; (size_t)(end - src) >= STEP_BYTES; src += STEP_BYTES, dst += STEP_BYTES) {
                struct step step;
                LOAD_STEP(step, src, stopped);
                STORE_STEP(STORE, step, dst, stopped);
                csum_add_step(&total, step);
            }
        }
        for (; src < end; src += VEC_BYTES, dst += VEC_BYTES) {
            vec v;
            LOAD(v, src, stopped);
            STORE(v, dst, stopped);
            csum_add(&total, v);
        }
        STORE(last_block, (uint8_t *)to + n - VEC_BYTES, stopped);
        csum_add(&total, vec_turn(last_bytes(last_block, rest), rest));
        dst += rest;
        goto stopped;
    streamed:
        _mm_sfence();
    stopped:
        return (struct copied){(size_t)(dst - (uint8_t *)to),
                               csum_add32(turned_back(csum_total(csum_lanes(total)), head), sum)};
    }
#if VEC_BYTES == 64
    if (n > 0) {
        const struct masked block = masked_block(n, line_in_page(src) | line_in_page(dst));
        vec v;
        __asm__ goto(MARKED(FAULT_LOAD, nothing, "vmovdqu8 %[memory], %[value]%{%[mask]%}%{z%}")
                     : [value] "=v"(v)
                     : [memory] "m"(*CONST_BLOCK(src + block.at)), [mask] "Yk"((__mmask64)block.mask)
                     :
                     : nothing);
        __asm__ goto(MARKED(FAULT_STORE, nothing, "vmovdqu8 %[value], %[memory]%{%[mask]%}")
                     :
                     : [value] "v"(v), [memory] "m"(*BLOCK(dst + block.at)), [mask] "Yk"((__mmask64)block.mask)
                     : "memory"
                     : nothing);
        const vec lanes = vec_add64(_mm512_and_si512(v, _mm512_set1_epi64(0xffffffff)), vec_upper(v));
        return (struct copied){n, csum_add32(turned_back(csum_total(lanes), block.at), sum)};
    }
#else
    if (n >= 8) {
        const size_t rest = (n - 1) % 8 + 1;
        const uint8_t *const end = src + n - rest;
        uint64_t total = sum, word, last;
        LOAD_BY("movq", "r", last, (const uint64_t *)(end + rest - 8), nothing);
        for (; src < end; src += 8, dst += 8) {
            LOAD_BY("movq", "r", word, (const uint64_t *)src, words);
            STORE_BY("movq", "r", word, (uint64_t *)dst, words);
            total = csum_add64(total, word);
        }
        STORE_BY("movq", "r", last, (uint64_t *)((uint8_t *)to + n - 8), words);
        total = csum_add64(total, last >> (64 - rest * 8));
        dst += rest;
    words:
        return (struct copied){(size_t)(dst - (uint8_t *)to), csum_fold64(total)};
    }
#endif
nothing: /* or less than is worth a case of its own */
    return (struct copied){0, sum};
}
