/* What the recorder's files share. Nothing here calls libc: the first calls come before there is one. */
#ifndef RECORDER_H
#define RECORDER_H

#include "block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing here is anybody else's: so the compiler need not ask the loader where it is. */
#pragma GCC visibility push(hidden)

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* recorder.c: the functions that come next, by their place in RECORDED; 0 as long as they are not known. */
extern void *recorder_next[RECORDER_FUNCTIONS];
/* In a trial: what was preloaded behind the recorder, which calls go to by turns. */
extern void *recorder_tried[RECORDER_FUNCTIONS];
extern bool recorder_trial;
/* What calls go to now: `recorder_trying`: those that are tried. */
extern void *recorder_called[RECORDER_FUNCTIONS];
extern bool recorder_trying;
/* next.c: finds them. False when this object has not been relocated, so that nobody can tell. */
bool recorder_find_next(void);
/* That name in the objects behind this one, or NULL. */
void *recorder_find(const char *name);

/* block.c: this thread's block, claimed when it has none; NULL when it cannot be counted now. */
struct recorder_block *recorder_claim(void);
/* Of this process, by their number; NULL behind the last. */
struct recorder_block *recorder_block(uint32_t number);
/* Every process that counts has a page with a word that is 1, and 0 again in the child of a fork. */
extern uint32_t *recorder_alive;
extern __thread struct recorder_block *recorder_mine __attribute__((tls_model("initial-exec")));
/* This is the child of a fork. */
void recorder_note_process(void);
/* The process ends in order. */
void recorder_note_end(void);
/* No block: being claimed, by what a signal handler of ours has interrupted. */
#define CLAIMING ((struct recorder_block *)1)
/* Of the kernel's, THREAD_NAME bytes each. */
bool recorder_same_name(const char *name, const char *other);
/* NULL: threads of several names have counted there. */
void recorder_name(struct recorder_block *block, const char *name);
/* The name that the thread's block had when it was taken over. */
extern __thread char recorder_before[THREAD_NAME] __attribute__((tls_model("initial-exec")));
extern struct recorder_file *recorder_file;

/* count.c: counts the call and does what else is due. `placed`: it was given a place, but the log had ended. True: the
 * call is to be timed. */
bool recorder_count(enum recorder_op op, enum recorder_function function, uintptr_t dst, uintptr_t src, size_t n,
                    uintptr_t caller, bool placed);
/* A thread takes the block over: counts what is left in the log. */
void recorder_begin_log(struct recorder_block *block);
/* 0: none, 1: the destination begins in the source and above it, 2: the other way round, 3: both at one place. */
static inline unsigned recorder_overlap(uintptr_t dst, uintptr_t src, size_t n)
{
    const uintptr_t apart = dst - src;
    if (UNLIKELY(apart < n))
        return apart ? 1 : 3;
    return UNLIKELY(-apart < n) ? 2 : 0;
}

/* modules.c: notes in the file which mapping the address is in, if it is not there yet. */
void recorder_note_module(uintptr_t address);
/* Whoever has set recorder_file.modules_busy is done: looks for what was left to it meanwhile. */
void recorder_end_modules(void);

/* unload.c: looks for dlclose, best as long as no other thread loads or unloads. Older C libraries have it in an object
 * of their own, which may not be there yet. */
void recorder_find_dlclose(void);

/* forks.c: looks for fork. */
void recorder_find_forking(void);

/* naming.c: looks for the functions that name threads. */
void recorder_find_naming(void);
/* The thread is known by its thread pointer, which is what glibc's pthread_t is; this thread's. */
void recorder_note_name(uintptr_t thread, const char *name);
uintptr_t recorder_thread(void);
/* In the child of a vfork, which has that of the thread that began it: that thread's number, by the C library, which is
 * all that knows it; 0: it does not. */
uint32_t recorder_parents_number(void);

/* sample.c: what is done now and then. True: this call is one to be timed. */
bool recorder_event(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                    unsigned overlap, uintptr_t caller);
/* `always`: this call was sure to be met, and stands for itself alone. */
void recorder_note_caller(struct recorder_block *block, enum recorder_op op, size_t n, uintptr_t caller, bool always);

/* Notes whether the call goes on where one shortly before had been; unless `counts`, just where it is. */
void recorder_note_order(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                         bool counts);

/* timing.c: calls the function with the four arguments and notes what it took. `src`: 0 for sets, and where both sides
 * overlap; `fill`: of sets, four bytes of what is set. */
long recorder_timed(enum recorder_op op, enum recorder_function function, uintptr_t dst, uintptr_t src, size_t n,
                    uint32_t fill, long a, long b, long c, long d);

/* turns.c: in a trial, the other routines' turn when the one under way is over. */
void recorder_take_turn(struct recorder_block *block);

/* start.c: the directory to write to, out of the environment that the kernel gave; NULL: nothing is to be recorded. */
const char *recorder_directory(void);
/* Whether what is preloaded behind the recorder is to be tried. */
bool recorder_is_trial(void);

/* timing.c: touches a page that is new, and takes a page fault for what that took. */
void recorder_learn_fault(volatile unsigned char *page);

/* sample.c: a number that nobody can predict; one from 1 to 2 * mean - 1. */
uint64_t recorder_random(struct recorder_block *block);
uint64_t recorder_about(struct recorder_block *block, uint64_t mean);

/* No branch that hangs on the size: nobody could foresee it. */
static inline unsigned size_group(size_t n)
{
    const unsigned bits = 61u - (unsigned)__builtin_clzll((n - 1) | 8);
    return (bits < SIZE_GROUPS - 1 ? bits : SIZE_GROUPS - 1) & -(unsigned)(n > 0);
}

/* One instruction each: a signal handler that counts as well comes before it or after it. */
static inline void add(uint64_t *counter, uint64_t some)
{
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(some) : "cc");
}

static inline bool falls_to_zero(uint64_t *counter)
{
    bool zero;
    __asm__("decq %0" : "+m"(*counter), "=@ccz"(zero));
    return zero;
}

static inline uint64_t take_one(uint64_t *counter)
{
    uint64_t before = 1;
    __asm__("xaddq %0, %1" : "+r"(before), "+m"(*counter) : : "cc");
    return before;
}

/* A place in the log, in bytes, and where it ends: one instruction, so that a handler that interrupts gets another, and
 * what it does to the log comes before or after. */
static inline bool recorder_place(struct recorder_block *block, uint32_t *at)
{
    uint64_t both = sizeof(struct logged_call);
    __asm__ volatile("xaddq %0, %1" : "+r"(both), "+m"(block->both) : : "cc");
    *at = (uint32_t)both;
    return *at < both >> 32;
}

/* `what` last: from then on it is there. */
static inline void recorder_log(struct recorder_block *block, uint32_t at, enum recorder_op op,
                                enum recorder_function function, uintptr_t dst, uintptr_t src, size_t n, bool meet)
{
    volatile struct logged_call *call = (volatile struct logged_call *)((char *)block->log + at);
    call->dst = dst;
    if (op != OP_SET)
        call->src = src;
    call->what = n + ((uint64_t)function << 16 | (uint64_t)op << 21 | (meet ? LOGGED_MEET : 0) | (uint64_t)1 << 31);
}

static inline uint64_t recorder_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* What a call may take besides its bytes, and counting one; longer: another program ran. */
enum { LATE_TICKS = 1 << 17 };

/* What went into counting since then, but for what was before the turn that an event has begun: that was of another. */
static inline void recorder_set_aside(struct recorder_block *block, uint64_t begin)
{
    const uint64_t turn = recorder_file->before.ticks, end = recorder_ticks();
    begin = begin < turn ? turn : begin;
    const uint64_t took = end > begin ? end - begin : 0;
    add(&block->aside, took);
    if (UNLIKELY(took > LATE_TICKS))
        add(&block->aside_late, took - LATE_TICKS);
}

static inline long recorder_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#pragma GCC visibility pop

#endif
