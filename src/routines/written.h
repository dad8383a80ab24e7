/* Whether a destination so large that stores past the caches come into question has been written before.
 *
 * Such stores save the read of the destination's lines. A page that the program has not stored to yet has no lines to
 * read: the kernel zeroes it at the first store and leaves it in the cache, so that ordinary stores find it there and
 * those past the caches have to write it out. They take 1.2 to 3 times as long then (docs/streaming.md), and many large
 * destinations are new: malloc maps what is that large afresh.
 *
 * No instruction tells whether a page is there; new ones read as zeroes. So some words of the destination's last part
 * are read, each of another page. Not from all over the destination, since a huge page that is read before it is
 * written may become small ones. Anything but zeroes: it was written. Zeroes: it is new, or holds them; the second only
 * if this call brings zeroes to those words too, as one before it may have done, and began at the same address with
 * zeroes there. A wrong answer costs what there was to gain and nothing else, so nothing is locked. Zero-initialised,
 * so right before any constructor.
 *
 * What is read may never have been set, which Valgrind would say of the branch on it: under it no plan streams
 * (dispatch.c).
 */
#ifndef WHERRY_WRITTEN_H
#define WHERRY_WRITTEN_H

#define WRITTEN_WORDS 16
#define WRITTEN_APART 100000 /* bytes at most from one to the next */
#define WRITTEN_SHIFT 5      /* and at most n / 32: all lie in the last half */
#define WRITTEN_SEEN 8       /* addresses, each at a place of its page's */

#ifdef __ASSEMBLER__
/* clang-format off */
/* The zero flag is clear when it was. n in rdx, the destination's address in rdi; end: its end, to within half of n.
 * Then goes on with what is left to ask, ended by WRITTEN_END. Loses rax and 16 bytes of the red zone. LOAD(label,
 * instruction) marks what may fault, and counts as new what cannot be read. */
#define WRITTEN_BEGIN(end)                             \
    movq    %r8, -16(%rsp);                            \
    movq    %rdx, -8(%rsp);                            \
    shrq    $WRITTEN_SHIFT, %rdx;                      \
    cmpq    $WRITTEN_APART, %rdx;                      \
    jbe     773f;                                      \
    movl    $WRITTEN_APART, %edx;                      \
773:                                                   \
    leaq    -8(end), %r8;                              \
    movl    $WRITTEN_WORDS, %eax;                      \
774:                                                   \
    LOAD(775f, cmpq $0, (%r8));                        \
    jne     776f;                                      \
    subq    %rdx, %r8;                                 \
    subl    $1, %eax;                                  \
    jnz     774b

#define WRITTEN_END                                    \
    movl    %edi, %eax;                                \
    leaq    wherry_written_zeroes(%rip), %r8;          \
    shrl    $12, %eax;                                 \
    andl    $(WRITTEN_SEEN - 1), %eax;                 \
    cmpq    %rdi, (%r8,%rax,8);                        \
    movq    %rdi, (%r8,%rax,8);                        \
    movl    $1, %eax;                                  \
    je      776f;                                      \
775:                                                   \
    xorl    %eax, %eax;                                \
776:                                                   \
    movq    -16(%rsp), %r8;                            \
    movq    -8(%rsp), %rdx;                            \
    testl   %eax, %eax

/* Of a set: are they zeroes? byte: of a register. */
#define SET_BEFORE(end, byte)                          \
    WRITTEN_BEGIN(end);                                \
    testb   byte, byte;                                \
    jnz     775f;                                      \
    WRITTEN_END

/* Of a copy: the same words of the source, which lies `behind` the destination. */
#define COPIED_BEFORE(end, behind)                     \
    WRITTEN_BEGIN(end);                                \
    movl    $WRITTEN_WORDS, %eax;                      \
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
    size_t apart = n >> WRITTEN_SHIFT;
    if (apart > WRITTEN_APART)
        apart = WRITTEN_APART;
    const uint8_t *at = dst + n - 8;
    int left = WRITTEN_WORDS;
    do {
        uint64_t word;
        __builtin_memcpy(&word, at, sizeof word);
        if (word)
            return 1;
        if (copies) {
            __builtin_memcpy(&word, at + behind, sizeof word);
            brings |= word;
        }
        at -= apart;
        left--;
        __asm__("" : "+r"(at), "+r"(left)); /* a loop, as written */
    } while (left);
    if (brings)
        return 0;
    uintptr_t *const seen = &wherry_written_zeroes[((uintptr_t)dst >> 12) % WRITTEN_SEEN];
    if (__atomic_load_n(seen, __ATOMIC_RELAXED) == (uintptr_t)dst)
        return 1;
    __atomic_store_n(seen, (uintptr_t)dst, __ATOMIC_RELAXED);
    return 0;
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
