/* The recorder: the memory functions of libc under their own names, each of which counts its call and goes on in the
 * function that would have been called without it. Now and then it waits for that and notes what it took.
 *
 * What is counted lies in a mapping that is shared with a file (block.h). There is no lock and no atomic operation: a
 * thread counts in a block of its own. The calls that come before the loader has relocated this object are answered by
 * the baseline routines that are linked in, and are not counted.
 */
#include "recorder.h"

#include "dispatch/dispatch.h"

#define PUBLIC __attribute__((visibility("default")))

void *recorder_next[RECORDER_FUNCTIONS];
void *recorder_tried[RECORDER_FUNCTIONS];
void *recorder_called[RECORDER_FUNCTIONS];
bool recorder_trial, recorder_trying;

/* The routines' thresholds: never by string instructions, never past the caches. */
struct wherry_thresholds wherry_thresholds = {
    .copy_rep_from = SIZE_MAX,
    .copy_stream_from = SIZE_MAX,
    .set_rep_from = SIZE_MAX,
    .set_stream_from = SIZE_MAX,
};
uint32_t wherry_recent_copies[RECENT_ROWS << RECENT_COPY_ROW_LOG >> 2];
uint32_t wherry_recent_sets[RECENT_ROWS << RECENT_SET_ROW_LOG >> 2];
uintptr_t wherry_written_zeroes[WRITTEN_SEEN];
struct wherry_touched wherry_touched;
void *wherry_routine_move_sse2(void *dst, const void *src, size_t n) __attribute__((visibility("hidden")));
void *wherry_routine_set_sse2(void *dst, int c, size_t n) __attribute__((visibility("hidden")));

/* What became of a call that is counted before it is made. */
enum way { LOGGED, PLACED, NOTHING };

/* Nearly every call is no more than logged. PLACED: its place is behind the end of the log; NOTHING was done. */
static inline __attribute__((always_inline)) enum way log_call(enum recorder_op op, enum recorder_function function,
                                                               uintptr_t dst, uintptr_t src, size_t n)
{
    if (UNLIKELY(!*recorder_alive))
        return NOTHING;
    struct recorder_block *block = recorder_mine;
    if (UNLIKELY((uintptr_t)block <= (uintptr_t)CLAIMING) || UNLIKELY(n >= ALWAYS_FROM))
        return NOTHING;
    /* They overlap, or the destination ends where the source begins. */
    if (op != OP_SET && UNLIKELY(dst - src + n < 2 * n))
        return NOTHING;
    uint32_t at;
    if (UNLIKELY(!recorder_place(block, &at)))
        return PLACED;
    recorder_log(block, at, op, function, dst, src, n, false);
    return LOGGED;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

/* Before the next functions are known: finds them, or answers the call itself. */
#define STARTED(name) (LIKELY(recorder_next[FN_##name]) || recorder_find_next())

/* ---- the wrapped functions ------------------------------------------------------------------------------------------
 * COPY: memcpy's arguments and result; `unit` is the size of one element. Ranges that overlap go to memmove: the
 * oldest version of memcpy promised that, and which of the two versions was meant cannot be told here. END: the result
 * points behind. A CHECKED form's last argument is the room in the destination; its own libc function checks it again
 * and aborts. */
#define COUNTED_COPY(op, name, unit, way)                                                                              \
    const size_t bytes = n * (unit);                                                                                   \
    const unsigned overlap = recorder_overlap((uintptr_t)dst, (uintptr_t)src, bytes);                                  \
    const bool timed = recorder_count(op, FN_##name, (uintptr_t)dst, (uintptr_t)src, bytes, caller, (way) == PLACED)

/* The arguments as the function itself takes them. */
#define TIMED_COPY(op, name, ...)                                                                                      \
    recorder_timed(op, FN_##name, (uintptr_t)dst, overlap ? 0 : (uintptr_t)src, bytes, 0, __VA_ARGS__)

/* What is not just logged, apart, so that those that are save no registers. */
#define APART static __attribute__((noinline))

/* Before the loader has relocated this object the rest leads astray, and no function is known. */
#define LOGGED_CALL(op, name, bytes)                                                                                   \
    (UNLIKELY(!called) ? NOTHING : log_call(op, FN_##name, (uintptr_t)dst, (uintptr_t)src, bytes))

#define COPY(op, name, unit, past)                                                                                     \
    APART void *name##_apart(void *dst, const void *src, size_t n, uintptr_t caller, enum way way)                     \
    {                                                                                                                  \
        if (!STARTED(name)) {                                                                                          \
            wherry_routine_move_sse2(dst, src, n * (unit));                                                            \
            return (char *)dst + (past) * n * (unit);                                                                  \
        }                                                                                                              \
        COUNTED_COPY(op, name, unit, way);                                                                             \
        if (UNLIKELY(overlap) && (op) == OP_COPY) {                                                                    \
            ((void *(*)(void *, const void *, size_t))recorder_called[FN_memmove])(dst, src, bytes);                   \
            return (char *)dst + (past) * bytes;                                                                       \
        }                                                                                                              \
        if (UNLIKELY(timed))                                                                                           \
            return (void *)TIMED_COPY(op, name, (long)dst, (long)src, (long)n, 0);                                     \
        return ((void *(*)(void *, const void *, size_t))recorder_called[FN_##name])(dst, src, n);                     \
    }                                                                                                                  \
    PUBLIC void *name(void *dst, const void *src, size_t n)                                                            \
    {                                                                                                                  \
        void *called = recorder_called[FN_##name];                                                                     \
        const enum way way = LOGGED_CALL(op, name, n * (unit));                                                        \
        if (LIKELY(way == LOGGED))                                                                                     \
            return ((void *(*)(void *, const void *, size_t))called)(dst, src, n);                                     \
        return name##_apart(dst, src, n, CALLER, way);                                                                 \
    }

#define COPY_CHECKED(op, name, unit)                                                                                   \
    APART void *name##_apart(void *dst, const void *src, size_t n, size_t room, uintptr_t caller, enum way way)        \
    {                                                                                                                  \
        if (!STARTED(name) && room < n)                                                                                \
            __builtin_trap();                                                                                          \
        if (!recorder_next[FN_##name])                                                                                 \
            return wherry_routine_move_sse2(dst, src, n * (unit));                                                     \
        if (LIKELY(n <= room)) {                                                                                       \
            COUNTED_COPY(op, name, unit, way);                                                                         \
            if (UNLIKELY(timed))                                                                                       \
                return (void *)TIMED_COPY(op, name, (long)dst, (long)src, (long)n, (long)room);                        \
        }                                                                                                              \
        return ((void *(*)(void *, const void *, size_t, size_t))recorder_called[FN_##name])(dst, src, n, room);       \
    }                                                                                                                  \
    PUBLIC void *name(void *dst, const void *src, size_t n, size_t room)                                               \
    {                                                                                                                  \
        void *called = recorder_called[FN_##name];                                                                     \
        const enum way way = UNLIKELY(n > room) ? NOTHING : LOGGED_CALL(op, name, n * (unit));                         \
        if (LIKELY(way == LOGGED))                                                                                     \
            return ((void *(*)(void *, const void *, size_t, size_t))called)(dst, src, n, room);                       \
        return name##_apart(dst, src, n, room, CALLER, way);                                                           \
    }

COPY(OP_COPY, memcpy, 1, 0)
COPY(OP_COPY, mempcpy, 1, 1)
COPY(OP_COPY, __mempcpy, 1, 1)
COPY(OP_COPY, wmemcpy, 4, 0)
COPY(OP_COPY, wmempcpy, 4, 1)
COPY(OP_MOVE, memmove, 1, 0)
COPY(OP_MOVE, wmemmove, 4, 0)
COPY_CHECKED(OP_COPY, __memcpy_chk, 1)
COPY_CHECKED(OP_COPY, __mempcpy_chk, 1)
COPY_CHECKED(OP_COPY, __wmemcpy_chk, 4)
COPY_CHECKED(OP_COPY, __wmempcpy_chk, 4)
COPY_CHECKED(OP_MOVE, __memmove_chk, 1)
COPY_CHECKED(OP_MOVE, __wmemmove_chk, 4)

PUBLIC void bcopy(const void *src, void *dst, size_t n)
{
    if (!STARTED(bcopy)) {
        wherry_routine_move_sse2(dst, src, n);
        return;
    }
    const uintptr_t caller = CALLER;
    COUNTED_COPY(OP_MOVE, bcopy, 1, NOTHING);
    if (UNLIKELY(timed)) {
        TIMED_COPY(OP_MOVE, bcopy, (long)src, (long)dst, (long)n, 0);
        return;
    }
    ((void (*)(const void *, void *, size_t))recorder_called[FN_bcopy])(src, dst, n);
}

#define COUNTED_SET(name, unit) recorder_count(OP_SET, FN_##name, (uintptr_t)dst, 0, n *(unit), CALLER, false)
#define TIMED_SET(name, unit, fill, ...)                                                                               \
    recorder_timed(OP_SET, FN_##name, (uintptr_t)dst, 0, n *(unit), fill, __VA_ARGS__)
/* Four bytes of what memset sets. */
#define BYTES(c) ((uint32_t)(unsigned char)(c) * 0x01010101u)

APART void *memset_apart(void *dst, int c, size_t n, uintptr_t caller, enum way way)
{
    if (!STARTED(memset))
        return wherry_routine_set_sse2(dst, c, n);
    if (UNLIKELY(recorder_count(OP_SET, FN_memset, (uintptr_t)dst, 0, n, caller, way == PLACED)))
        return (void *)TIMED_SET(memset, 1, BYTES(c), (long)dst, c, (long)n, 0);
    return ((void *(*)(void *, int, size_t))recorder_called[FN_memset])(dst, c, n);
}

PUBLIC void *memset(void *dst, int c, size_t n)
{
    void *called = recorder_called[FN_memset];
    const enum way way = UNLIKELY(!called) ? NOTHING : log_call(OP_SET, FN_memset, (uintptr_t)dst, 0, n);
    if (LIKELY(way == LOGGED))
        return ((void *(*)(void *, int, size_t))called)(dst, c, n);
    return memset_apart(dst, c, n, CALLER, way);
}

#define SET_CHECKED(name)                                                                                              \
    PUBLIC void *name(void *dst, int c, size_t n, size_t room)                                                         \
    {                                                                                                                  \
        if (!STARTED(name) && room < n)                                                                                \
            __builtin_trap();                                                                                          \
        if (!recorder_next[FN_##name])                                                                                 \
            return wherry_routine_set_sse2(dst, c, n);                                                                 \
        if (LIKELY(n <= room) && UNLIKELY(COUNTED_SET(name, 1)))                                                       \
            return (void *)TIMED_SET(name, 1, BYTES(c), (long)dst, c, (long)n, (long)room);                            \
        return ((void *(*)(void *, int, size_t, size_t))recorder_called[FN_##name])(dst, c, n, room);                  \
    }

SET_CHECKED(__memset_chk)
SET_CHECKED(__memset_explicit_chk)

PUBLIC void *memset_explicit(void *dst, int c, size_t n)
{
    if (!STARTED(memset_explicit))
        return wherry_routine_set_sse2(dst, c, n);
    if (UNLIKELY(COUNTED_SET(memset_explicit, 1)))
        return (void *)TIMED_SET(memset_explicit, 1, BYTES(c), (long)dst, c, (long)n, 0);
    return ((void *(*)(void *, int, size_t))recorder_called[FN_memset_explicit])(dst, c, n);
}

static void *wide_set(void *dst, int c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile int *)dst)[i] = c;
    return dst;
}

PUBLIC void *wmemset(void *dst, int c, size_t n)
{
    if (!STARTED(wmemset))
        return wide_set(dst, c, n);
    if (UNLIKELY(COUNTED_SET(wmemset, 4)))
        return (void *)TIMED_SET(wmemset, 4, (uint32_t)c, (long)dst, c, (long)n, 0);
    return ((void *(*)(void *, int, size_t))recorder_called[FN_wmemset])(dst, c, n);
}

PUBLIC void *__wmemset_chk(void *dst, int c, size_t n, size_t room)
{
    if (!STARTED(__wmemset_chk) && room < n)
        __builtin_trap();
    if (!recorder_next[FN___wmemset_chk])
        return wide_set(dst, c, n);
    if (LIKELY(n <= room) && UNLIKELY(COUNTED_SET(__wmemset_chk, 4)))
        return (void *)TIMED_SET(__wmemset_chk, 4, (uint32_t)c, (long)dst, c, (long)n, (long)room);
    return ((void *(*)(void *, int, size_t, size_t))recorder_called[FN___wmemset_chk])(dst, c, n, room);
}

#define CLEAR(name)                                                                                                    \
    PUBLIC void name(void *dst, size_t n)                                                                              \
    {                                                                                                                  \
        if (!STARTED(name)) {                                                                                          \
            wherry_routine_set_sse2(dst, 0, n);                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        if (UNLIKELY(COUNTED_SET(name, 1))) {                                                                          \
            TIMED_SET(name, 1, 0, (long)dst, (long)n, 0, 0);                                                           \
            return;                                                                                                    \
        }                                                                                                              \
        ((void (*)(void *, size_t))recorder_called[FN_##name])(dst, n);                                                \
    }

CLEAR(bzero)
CLEAR(__bzero)
CLEAR(explicit_bzero)

PUBLIC void __explicit_bzero_chk(void *dst, size_t n, size_t room)
{
    if (!STARTED(__explicit_bzero_chk) && room < n)
        __builtin_trap();
    if (!recorder_next[FN___explicit_bzero_chk]) {
        wherry_routine_set_sse2(dst, 0, n);
        return;
    }
    if (LIKELY(n <= room) && UNLIKELY(COUNTED_SET(__explicit_bzero_chk, 1))) {
        TIMED_SET(__explicit_bzero_chk, 1, 0, (long)dst, (long)n, (long)room, 0);
        return;
    }
    ((void (*)(void *, size_t, size_t))recorder_called[FN___explicit_bzero_chk])(dst, n, room);
}

/* ---- where libc lacks a name ----------------------------------------------------------------------------------------
 * What next.c puts there then: nobody calls a name that no object before had, except by dlsym. */
static void *past(void *dst, const void *src, size_t n) { return (char *)wherry_routine_move_sse2(dst, src, n) + n; }
static void *wide_copy(void *dst, const void *src, size_t n) { return wherry_routine_move_sse2(dst, src, 4 * n); }
static void *wide_past(void *dst, const void *src, size_t n)
{
    return (char *)wherry_routine_move_sse2(dst, src, 4 * n) + 4 * n;
}
static void backwards(const void *src, void *dst, size_t n) { wherry_routine_move_sse2(dst, src, n); }
static void clear(void *dst, size_t n) { wherry_routine_set_sse2(dst, 0, n); }

void *recorder_own(enum recorder_function function)
{
    switch (function) {
    case FN_mempcpy:
    case FN___mempcpy:
    case FN___mempcpy_chk:
        return (void *)past;
    case FN_wmemcpy:
    case FN_wmemmove:
    case FN___wmemcpy_chk:
    case FN___wmemmove_chk:
        return (void *)wide_copy;
    case FN_wmempcpy:
    case FN___wmempcpy_chk:
        return (void *)wide_past;
    case FN_bcopy:
        return (void *)backwards;
    case FN_memset:
    case FN_memset_explicit:
    case FN___memset_chk:
    case FN___memset_explicit_chk:
        return (void *)wherry_routine_set_sse2;
    case FN_bzero:
    case FN___bzero:
    case FN_explicit_bzero:
    case FN___explicit_bzero_chk:
        return (void *)clear;
    case FN_wmemset:
    case FN___wmemset_chk:
        return (void *)wide_set;
    default:
        return (void *)wherry_routine_move_sse2;
    }
}

/* So that a process that copies nothing is known to have been recorded. */
__attribute__((constructor)) static void begin(void)
{
    recorder_find_dlclose();
    recorder_find_naming();
    recorder_find_forking();
    if (recorder_find_next() && !*recorder_alive)
        recorder_claim();
}

__attribute__((destructor)) static void end(void) { recorder_note_end(); }
