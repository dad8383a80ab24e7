/* Whether a large destination has been written before.
 *
 * String instructions, and from some size on stores past the caches, save the read of the destination's lines. A page
 * that the program has not stored to yet has no lines to read: the kernel zeroes it at the first store and leaves it in
 * the cache, where ordinary stores find it. Those past the caches have to write it out then and take up to 2.5 times as
 * long as they do; a string instruction, which each page interrupts, 1.1 to 1.4 times (docs/streaming.md). And many
 * large destinations are new: malloc maps what is that large afresh.
 *
 * No instruction tells whether a page is there; new ones read as zeroes. So a few words of the destination's last part
 * are read, each of another page, or its last alone where it is not so large: each costs a fault where it is new. Not
 * from all over the destination, since a huge page that is read before it is written may become small ones. Anything
 * but zeroes: it was written. Zeroes: it is new, or holds them; nobody knows where a call brings zeroes to words at
 * which another that began at the same address has found zeroes, too. A wrong answer costs time and nothing else, so
 * nothing is locked. Zero-initialised, so right before any constructor.
 *
 * What is read may never have been set, which Valgrind would say of the branch on it: under it all goes by loops, which
 * need not ask (dispatch.c).
 */
#ifndef WHERRY_WRITTEN_H
#define WHERRY_WRITTEN_H

#define WRITTEN_FROM 49152 /* bytes, 12 pages: where it is new asking costs a twentieth at most from there on */
#define WRITTEN_WORDS 3
#define WRITTEN_WORDS_FROM 262144 /* bytes; below, one word */
#define WRITTEN_SHIFT 5           /* n / 32 from one to the next */
#define WRITTEN_SEEN_LOG 6        /* of how many addresses are kept, each at one place */
#define WRITTEN_SEEN (1 << WRITTEN_SEEN_LOG)
/* Buffers that take turns lie a power of two apart more often than not, so a place is told by all of an address: two
 * that had the same would drive each other out, and go by loops for ever. */
#define WRITTEN_HASH 0x9e3779b1

/* The answers. */
#define WRITTEN_NEW 0     /* by a loop */
#define WRITTEN_UNKNOWN 1 /* by a string instruction: never much worse than the other two */
#define WRITTEN_SURELY 2  /* by a string instruction or past the caches, as the thresholds say */

#ifdef __ASSEMBLER__
/* clang-format off */
/* How many words, of n >> WRITTEN_SHIFT in rdx. */
#define WRITTEN_COUNT                                  \
    cmpq    $(WRITTEN_WORDS_FROM >> WRITTEN_SHIFT), %rdx; \
    sbbl    %eax, %eax;                                \
    andl    $(1 - WRITTEN_WORDS), %eax;                \
    addl    $WRITTEN_WORDS, %eax

/* The answer in eax. n in rdx, the destination's address in rdi; end: its end, to within half of n. Then goes on with what is
 * left to ask, ended by WRITTEN_END. Loses 16 bytes of the red zone. LOAD(label, instruction) marks what may fault, and
 * counts as new what cannot be read. */
#define WRITTEN_BEGIN(end)                             \
    movq    %r8, -16(%rsp);                            \
    movq    %rdx, -8(%rsp);                            \
    shrq    $WRITTEN_SHIFT, %rdx;                      \
    leaq    -8(end), %r8;                              \
    WRITTEN_COUNT;                                     \
774:                                                   \
    LOAD(775f, cmpq $0, (%r8));                        \
    jne     776f;                                      \
    subq    %rdx, %r8;                                 \
    subl    $1, %eax;                                  \
    jnz     774b

#define WRITTEN_END                                    \
    imull   $WRITTEN_HASH, %edi, %eax;                 \
    leaq    wherry_written_zeroes(%rip), %r8;          \
    shrl    $(32 - WRITTEN_SEEN_LOG), %eax;            \
    cmpq    %rdi, (%r8,%rax,8);                        \
    movq    %rdi, (%r8,%rax,8);                        \
    movl    $WRITTEN_UNKNOWN, %eax;                    \
    je      778f;                                      \
775:                                                   \
    xorl    %eax, %eax;                                \
    jmp     778f;                                      \
776:                                                   \
    movl    $WRITTEN_SURELY, %eax;                     \
778:                                                   \
    movq    -16(%rsp), %r8;                            \
    movq    -8(%rsp), %rdx

/* Of a set: are they zeroes? byte: of a register. */
#define SET_BEFORE(end, byte)                          \
    WRITTEN_BEGIN(end);                                \
    testb   byte, byte;                                \
    jnz     775f;                                      \
    WRITTEN_END

/* Of a copy: the same words of the source, which lies `behind` the destination. */
#define COPIED_BEFORE(end, behind)                     \
    WRITTEN_BEGIN(end);                                \
    WRITTEN_COUNT;                                     \
777:                                                   \
    addq    %rdx, %r8;                                 \
    LOAD(775f, cmpq $0, (%r8,behind));                 \
    jne     775f;                                      \
    subl    $1, %eax;                                  \
    jnz     777b;                                      \
    WRITTEN_END
/* clang-format on */
#else
#include <stddef.h>
#include <stdint.h>

extern uintptr_t wherry_written_zeroes[WRITTEN_SEEN] __attribute__((visibility("hidden")));

/* Of n >= 16 bytes. brings: zero when the call brings zeroes, as far as is known; a copy's words are those that lie
 * `behind` the destination's. */
static inline __attribute__((always_inline)) int written_before(const uint8_t *dst, size_t n, const int copies,
                                                                ptrdiff_t behind, uint64_t brings)
{
    const size_t apart = n >> WRITTEN_SHIFT;
    const uint8_t *at = dst + n - 8;
    int left = n < WRITTEN_WORDS_FROM ? 1 : WRITTEN_WORDS;
    do {
        uint64_t word;
        __builtin_memcpy(&word, at, sizeof word);
        if (word)
            return WRITTEN_SURELY;
        if (copies) {
            __builtin_memcpy(&word, at + behind, sizeof word);
            brings |= word;
        }
        at -= apart;
        __asm__("" : "+r"(at), "+r"(left)); /* a loop, as written */
    } while (--left);
    if (brings)
        return WRITTEN_NEW;
    uintptr_t *const seen = &wherry_written_zeroes[(uint32_t)(uintptr_t)dst * WRITTEN_HASH >> (32 - WRITTEN_SEEN_LOG)];
    if (__atomic_load_n(seen, __ATOMIC_RELAXED) == (uintptr_t)dst)
        return WRITTEN_UNKNOWN;
    __atomic_store_n(seen, (uintptr_t)dst, __ATOMIC_RELAXED);
    return WRITTEN_NEW;
}

static inline __attribute__((always_inline)) int set_before(const uint8_t *dst, int c, size_t n)
{
    return written_before(dst, n, 0, 0, (uint8_t)c);
}

static inline __attribute__((always_inline)) int copied_before(const uint8_t *dst, const uint8_t *src, size_t n)
{
    return written_before(dst, n, 1, (ptrdiff_t)((uintptr_t)src - (uintptr_t)dst), 0);
}
#endif
#endif
