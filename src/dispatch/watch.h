/* Whether the sizes of small copies (and, apart from them, of small sets) can be foreseen, in the AVX-512 choice.
 *
 * Where the processor guesses the branches on a size rightly, sizes to 1024 bytes are best done by just the blocks that
 * each needs: sizes apart. Where it cannot, a wrong guess costs more than all blocks of a class of sizes: sizes
 * together. The two ways differ by a third of the time in either direction, no plan knows which a program wants, and it
 * may want both in turn. So it is looked at now and then.
 *
 * A look records some calls of one thread: from where, and how many blocks. If those are always the same, or as mixed
 * as the last verdict has it, that is all. Else it records more, plays a branch predictor over them, by caller and by
 * what went before, and counts what that would have guessed wrong.
 *
 * What so few calls cannot tell is that they come again: processors know sequences of thousands of sizes by heart
 * (docs/performance-zen4.md). So what a look has recorded is compared with what earlier looks have: where 64 sizes in a
 * row were there before, and the more often the shorter the period is, sizes go apart, too.
 *
 * Where calls wait for memory, a wrong guess is found out meanwhile, and the blocks to spare take the room in which
 * other calls would wait beside it: copies to 256 bytes from all over memory take a fifth less apart (Zen 4). So a look
 * takes the time that the first byte of some of its buffers takes to be read, and where many come from memory sizes go
 * apart.
 *
 * When to look. While sizes are apart, a hash of size, address and rbx picks one of 256 calls (from 129 bytes on, but
 * no sets of 257 to 512; what is smaller does nothing for this), which stands for as many: nothing is written by the
 * others, and where one call is repeated for ever there is nothing to find out. The factor of the hash changes
 * with each look, so that no such call is picked every time. While they are together the same call again may be what
 * has changed, so one thread, which is told by where its stack is, counts its calls. The others ask now and then, by
 * the hash, whether one counts, and each so many times take its place. So no two threads write one line at every call,
 * and one that calls no more is replaced.
 *
 * A wrong verdict costs time and nothing else, so nothing is locked. Plain initialised data, right before any
 * constructor has run.
 */
#ifndef WHERRY_WATCH_H
#define WHERRY_WATCH_H

#define WATCH_STACK 0x10000 /* bytes of a stack by which a thread is told */
#define WATCH_PICKED 256    /* one call of so many, by its hash */
#define WATCH_LIMIT 0x1000000

/* Offsets in struct wherry_watch. */
#define WATCH_COUNTING 0
#define WATCH_HASHED 8
#define WATCH_LEFT 128 /* two lines further: some processors fetch lines by twos */

#ifdef __ASSEMBLER__
/* clang-format off */
/* Goes to look after so many calls of the thread that counts, to other in another. Loses r8. */
#define WATCH(watch, look, other)                  \
    movq    %rsp, %r8;                             \
    subq    watch + WATCH_COUNTING(%rip), %r8;     \
    cmpq    $WATCH_STACK, %r8;                     \
    jae     other;                                 \
    subl    $1, watch + WATCH_LEFT(%rip);          \
    jc      look

/* Goes to picked when the call is. Loses rcx. rbx is the caller's, who counts its calls there, or something else, as
 * often as not: sizes alone, always from one place to one other, may be such that none of them is ever picked. Four
 * times, since it may count down what the address goes up. What rdx and the address have lost and gained until here must
 * be as much, so that their sum ascends with the address evenly. */
#define WATCH_PICK(watch, address, picked)         \
    leal    (%rdx,%rbx,4), %ecx;                   \
    leal    (%rcx,address), %ecx;                  \
    imull   watch + WATCH_HASHED(%rip), %ecx;      \
    cmpl    $WATCH_LIMIT, %ecx;                    \
    jb      picked
/* There: counts it for as many, and goes to look when that is for the look to do: after so many calls of the thread that
 * counts, and of other threads always. Loses rcx. */
#define WATCH_PICKED_ONE(watch, look)              \
    movq    %rsp, %rcx;                            \
    subq    watch + WATCH_COUNTING(%rip), %rcx;    \
    cmpq    $WATCH_STACK, %rcx;                    \
    jae     look;                                  \
    subl    $WATCH_PICKED, watch + WATCH_LEFT(%rip); \
    jle     look
/* clang-format on */
#else
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WATCH_FEW = 32, WATCH_CALLS = 256 }; /* that a look records at first, and at most */
enum { WATCH_SEEN = 128 };                  /* of earlier looks, each the hash of so many calls as come in a row */

enum wherry_watching { WATCHING, HELD_APART, HELD_TOGETHER, HELD_LOOKING };

struct wherry_watch {
    /* Read at every call, written by a look. */
    _Atomic uint64_t counting; /* half of WATCH_STACK below where the thread that counts was called; 0: none counts */
    _Atomic uint32_t factor;   /* of the hash that picks */
    uint32_t room[29];
    /* Written by that thread at every call. */
    _Atomic uint32_t left; /* calls until the next look */
    uint32_t more_room[31];
    /* The rest is of looks alone. */
    _Atomic enum wherry_watching watching;
    _Atomic bool together;    /* the last verdict */
    _Atomic uint32_t between; /* calls until the next look */
    _Atomic uint32_t asked;   /* by threads that do not count */
    _Atomic uint32_t begun;   /* looks so far; each has a factor of its own */
    _Atomic uint32_t looks;   /* so far, to their first verdict */
    /* The look that is under way: */
    _Atomic bool looking;
    _Atomic uint32_t recorded, strange;
    uint32_t slow; /* of the calls that were timed, those that wait for memory */
    struct {
        uint16_t caller, size;
        uint8_t blocks; /* 255: beyond 1024 bytes */
    } call[WATCH_CALLS];
    /* Whether sizes come again: */
    uint64_t seen[WATCH_SEEN];
    uint32_t again;      /* which of the last 32 long looks met what had been seen, the last one in bit 0 */
    uint32_t unforeseen; /* long looks since the predictor has failed */
    bool by_heart;       /* sizes are apart for that reason alone */
    bool cold;           /* by the last long look */
    uint32_t slow_from;  /* ticks that reading a byte takes which is in no cache; UINT32_MAX: none is timed */
} __attribute__((aligned(128)));

/* One for each look in turn. */
enum { WATCH_FACTORS = 8 };
extern const uint32_t wherry_watch_factors[WATCH_FACTORS] __attribute__((visibility("hidden")));

_Static_assert(offsetof(struct wherry_watch, counting) == WATCH_COUNTING &&
                   offsetof(struct wherry_watch, factor) == WATCH_HASHED &&
                   offsetof(struct wherry_watch, left) == WATCH_LEFT,
               "read by assembly");

extern struct wherry_watch wherry_watch_copies __attribute__((visibility("hidden")));
extern struct wherry_watch wherry_watch_sets __attribute__((visibility("hidden")));

/* At a call of n bytes that is the last of those counted, or picked, or that a look records: from public.S. stack:
 * where the return address of the call lies, which is caller. dst, and src of a copy: its buffers, of which the first
 * byte may be read; null: the call has been done, and is not recorded. */
void wherry_watch_look(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack, const void *dst,
                       const void *src) __attribute__((visibility("hidden")));

/* Sets the choice (dispatch.h) of AVX-512 to go by the verdicts, or holds it. The last verdict, and a look that is
 * under way, stay for when it goes by verdicts again. */
void wherry_watch_use(struct wherry_watch *watch, enum wherry_watching watching) __attribute__((visibility("hidden")));
#endif
#endif
