/* Whether the sizes of small copies (and, apart from them, of small sets) can be foreseen, in the AVX-512 choice.
 *
 * Where the processor guesses the branches on a size rightly, sizes to 1024 bytes are best done by just the blocks that
 * each needs: sizes apart. Where it cannot, a wrong guess costs more than all blocks of a class of sizes: sizes together. The two
 * ways differ by a third of the time in either direction, no plan knows which a program wants, and it may want both in
 * turn. So it is looked at now and then.
 *
 * A look records some calls of one thread: from where, and how many blocks. If those are always the same, or as mixed as
 * the last verdict has it, that is all. Else it records more, plays a branch predictor over them, by caller and by what
 * went before, and counts what that would have guessed wrong.
 *
 * When to look. While sizes are apart, a hash of size and address decides: calls that are all alike hardly ever trigger
 * it again (its factor changes with each look), and such calls are best apart. While they are together, calls that are
 * all alike are just what must not be missed, so one thread, which is told by where its stack lies, counts its calls;
 * another that triggers a look by the hash takes its place. So no two threads write one line.
 *
 * A wrong verdict costs time and nothing else, so nothing is locked. Plain initialised data, right before any
 * constructor has run.
 */
#ifndef WHERRY_WATCH_H
#define WHERRY_WATCH_H

#define WATCH_STACK_LOG 16 /* a stack is told by so large a piece of memory */

/* Offsets in struct wherry_watch. */
#define WATCH_FACTOR 0
#define WATCH_LIMIT 4
#define WATCH_COUNTING 8
#define WATCH_LIMIT_UNCOUNTED 12
#define WATCH_LEFT 64

#ifdef __ASSEMBLER__
/* clang-format off */
/* Sizes apart: goes to look now and then. Loses rcx. */
#define WATCH_APART(watch, address, look) WATCH_BY_HASH(watch, address, WATCH_LIMIT, look)
#define WATCH_BY_HASH(watch, address, limit, look) \
    leal    (%rdx,address), %ecx;                  \
    imull   watch + WATCH_FACTOR(%rip), %ecx;      \
    cmpl    watch + limit(%rip), %ecx;             \
    jb      look

/* Sizes together: goes to look after so many calls of the thread that counts; others go to other, which does so by the
 * hash, so that one of them counts when that thread calls no more. Loses r8; other loses rcx. */
#define WATCH_TOGETHER(watch, look, other)         \
    movq    %rsp, %r8;                             \
    shrq    $WATCH_STACK_LOG, %r8;                 \
    cmpl    watch + WATCH_COUNTING(%rip), %r8d;    \
    jne     other;                                 \
    subl    $1, watch + WATCH_LEFT(%rip);          \
    jc      look
#define WATCH_UNCOUNTED(watch, address, look) WATCH_BY_HASH(watch, address, WATCH_LIMIT_UNCOUNTED, look)
/* clang-format on */
#else
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WATCH_FEW = 32, WATCH_CALLS = 128 }; /* that a look records at first, and at most */

enum wherry_watching { WATCHING, HELD_APART, HELD_TOGETHER };

struct wherry_watch {
    /* Read at every call, written by a look. */
    _Atomic uint32_t factor, limit; /* hashes below limit trigger a look: factor, which is odd, times size and address */
    _Atomic uint32_t counting;      /* the stack of the thread that counts */
    uint32_t limit_uncounted;       /* the limit of the others, then */
    uint32_t room[12];
    /* Written by that thread at every call. */
    _Atomic uint32_t left; /* calls until the next look */
    uint32_t more_room[15];
    /* The rest is of looks alone. The last verdict: */
    _Atomic bool together;
    _Atomic uint32_t limit_found;
    _Atomic enum wherry_watching watching;
    /* The look that is under way: */
    _Atomic uint32_t stack; /* whose calls are recorded; 0: none */
    _Atomic uint32_t recorded, strange;
    struct {
        uint16_t caller;
        uint8_t blocks; /* 255: beyond 1024 bytes */
    } call[WATCH_CALLS];
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct wherry_watch, factor) == WATCH_FACTOR &&
                   offsetof(struct wherry_watch, limit) == WATCH_LIMIT &&
                   offsetof(struct wherry_watch, counting) == WATCH_COUNTING &&
                   offsetof(struct wherry_watch, limit_uncounted) == WATCH_LIMIT_UNCOUNTED &&
                   offsetof(struct wherry_watch, left) == WATCH_LEFT,
               "read by assembly");

extern struct wherry_watch wherry_watch_copies __attribute__((visibility("hidden")));
extern struct wherry_watch wherry_watch_sets __attribute__((visibility("hidden")));

/* At a call of n bytes that triggered a look or that one records: from public.S, which then does the call as if sizes
 * were together. stack: where the return address of the call lies, which is caller. */
void wherry_watch_look(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack)
    __attribute__((visibility("hidden")));

/* Sets the choice (dispatch.h) of AVX-512 to go by the verdicts, or holds it. The last verdict, and a look that is under
 * way, stay for when it goes by verdicts again. */
void wherry_watch_use(struct wherry_watch *watch, enum wherry_watching watching) __attribute__((visibility("hidden")));
#endif
#endif
