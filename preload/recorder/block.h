/* The file that a recorded process leaves: a page that tells of the process, then a block a thread. It is mapped
 * shared, so what was counted is in it however the process ends; wherry record reads it afterwards
 * (python/wherry/recording/blocks.py has the same numbers).
 */
#ifndef RECORDER_BLOCK_H
#define RECORDER_BLOCK_H

#include <stdint.h>

enum {
    RECORDER_VERSION = 13,
    PAGE = 4096,
    OPS = 3,          /* copy, move, set */
    FUNCTIONS = 32,   /* room for recorder_function */
    EXACT = 1024,     /* sizes to here have a counter each */
    OCTAVE = 16,      /* classes an octave above */
    LARGEST_LOG = 44, /* sizes from 2^44 on share the last class */
    SIZES = EXACT + 1 + (LARGEST_LOG - 10) * OCTAVE,
    SIZE_GROUPS = 19, /* 0; to 16, 32 ... 1 MiB; above */
    ALIGNMENTS = 7,   /* 1, 2 ... 64 */
    DISTANCES = 4,    /* same, near, alias, far */
    OVERLAPS = 4,     /* none, above, below, same */
    SET_PLACES = SIZE_GROUPS * ALIGNMENTS,
    PLACES = SET_PLACES * ALIGNMENTS * DISTANCES * OVERLAPS,
    CALLERS = 512,       /* a power of two */
    BURST = 256,         /* calls in one */
    BURSTS = 32,         /* kept of a thread */
    LOG = 128,           /* calls that are counted at once */
    SAMPLE_EACH = 61,    /* of the calls, one has its caller noted */
    ALWAYS_FROM = 16384, /* calls of this size and above are counted at once, and their callers noted each time */
    TIME_EACH = 16, /* of those about one is timed; of the smaller ones each whose caller is noted, outside of bursts */
    TIME_FROM = 262144,   /* and of these each */
    TIME_CLASSES = 80,    /* of sizes, two an octave */
    NOTHING_EACH = 8,     /* of the timed calls of a class, one has a call that does nothing timed behind it */
    PLACES_KNOWN = 3,     /* near: the first two caches; the last one; memory */
    TURN_TICKS = 1 << 22, /* of a trial: so long is a turn, 1 to 2 ms, until there are TURNS of them */
    TURNS = 2048,         /* pairs of turns that are kept */
    /* What a call of so many bytes leaves in the last cache is found by tens of those that come after it. Where they
     * take a part of a turn, turns last for so many of them, or so many ticks, after as many that count for neither
     * side. */
    LASTING_FROM = 1 << 20,
    LASTING_PART = 4,
    LASTING_CALLS = 24,
    LASTING_TICKS = 1 << 27, /* 30 to 60 ms */
    LASTING_TURNS = 256,
    TRIAL_GROUPS = 6, /* of calls, one after the other, by which the spread of a trial is known */
    FOLLOWED = 4,     /* calls that the next may go on from */
    /* Of each ORDER_EACH calls of more than EXACT bytes the first ORDER_SOME are looked at for that; once a thread has
     * made ORDER_OFTEN of them, of each ORDER_EACH_LATER where they are logged. */
    ORDER_EACH = 64,
    ORDER_SOME = 8,
    ORDER_OFTEN = 1024,
    ORDER_EACH_LATER = 512,
    MODULES = 256,
    NAMES = 1 << 16,   /* bytes of their paths */
    PROGRAM = 4096,    /* no path that the kernel tells is longer */
    BLOCKS = 4096,     /* threads at one time */
    THREAD_NAME = 16,  /* bytes, as the kernel has it */
    NAMED_BLOCKS = 64, /* while there are no more, threads of other names do not share one */
    SEVERAL_NAMES = 1, /* the last byte of a name, where the kernel has a zero; the others are zero then */
    /* The permissions of a file that could not be begun tell why: no room in the directory, none in the process's own
     * memory (ulimit -v), a limit on file sizes. */
    NO_MEMORY = 0100,
    NO_ROOM = 0200,
    FILE_LIMIT = 0400,
};

enum recorder_op { OP_COPY, OP_MOVE, OP_SET };

/* A caller in what was unloaded is known by the number of its module and its offset in that file. */
#define CALLER_ADDRESS (((uint64_t)1 << 61) - 1)
#define CALLER_SETTLED ((uint64_t)1 << 61)
#define CALLER_OFFSET_BITS 52
/* In no mapping. */
#define CALLER_NOWHERE ((uint64_t)1)

struct recorder_caller {
    uint64_t address;                /* where the call returns to, its low bits; the op in the two highest */
    uint64_t sampled, sampled_bytes; /* drawn: one in SAMPLE_EACH of those that are not noted always */
    uint64_t always, always_bytes;   /* of ALWAYS_FROM and more, and in bursts */
};

/* One call: bits 0 to 39 the size, 40 and 41 the op, 42 to 47 the source mod 64, 48 to 59 (dst - src) mod 4096, 60 and
 * 61 the overlap; bit 63 is set, so that what was never written is 0. */
typedef uint64_t recorded_call;

/* One call of less than ALWAYS_FROM bytes that has its place in the log. `what`: 0: it has not been written, or is
 * counted; bits 0 to 13 the size, 16 to 20 the recorder_function, 21 and 22 the op, bit 31 is set; bit 23: of a larger
 * one, which was counted at once; bit 24: both sides have bytes in common. Of a set `src` is anything. */
enum { LOGGED_AT_ONCE = 1 << 23, LOGGED_MEET = 1 << 24 };
struct logged_call {
    uint64_t dst, src, what;
};

/* What the calls of one class of sizes took that were timed: in ticks of the processor's clock, without page faults. */
struct recorder_time {
    uint64_t calls, bytes, ticks;
    uint64_t faults, fault_ticks; /* pages that were not there yet, and what the kernel took to bring them */
    uint64_t late;                /* not counted: interrupted, most likely */
    uint64_t places[PLACES_KNOWN][PLACES_KNOWN]; /* where the source was, and the destination */
};

/* In a trial, of the calls of one class of sizes that were timed whole, page faults included: those of the usual
 * routine and those of the one that is tried. */
struct recorder_trial {
    struct {
        uint64_t calls, ticks;
    } sides[2][TRIAL_GROUPS];
};

/* Of the calls of one group of sizes that were looked at: how many went on where one shortly before had been. */
struct recorder_order {
    uint64_t calls, source, destination;
};

struct recorder_block {
    _Alignas(64) uint32_t owner; /* thread; 0: nobody's */
    uint32_t claims;             /* threads that it has counted, one after the other */
    char name[THREAD_NAME];      /* that all of them had at last (naming.c); or SEVERAL_NAMES */
    uint64_t until_sample;       /* calls from the last event to the next */
    uint64_t samples;            /* so far */
    uint64_t next_burst;         /* samples until one begins */
    uint64_t burst_at;           /* calls of the burst under way; BURST: none is */
    uint64_t burst_place;        /* where it is written */
    uint64_t bursts_begun;
    uint64_t random;
    uint64_t until_timed;              /* calls of ALWAYS_FROM and more, until the next that is timed */
    uint64_t timed, looks;             /* so far, in a trial; and that may be looked at */
    uint64_t larger, larger_bytes;     /* calls of more than EXACT bytes, so far */
    uint64_t calls;                    /* until the log was begun anew */
    uint64_t sample_at;                /* how many there will have been at the next event */
    uint64_t emptying;                 /* the log: a handler that interrupts that counts its own calls at once */
    uint64_t emptied;                  /* so many of its first calls are counted */
    uint64_t began;                    /* ticks: counting the call that is timed */
    uint64_t aside, aside_before;      /* ticks that went into that and into events; when the turn began */
    uint64_t aside_late;               /* of those what another program had, most likely */
    uint64_t followed;                 /* calls whose places were kept, so far */
    uint64_t places_kept[FOLLOWED][3]; /* destination, source and size of the last of them */
    uint64_t functions[FUNCTIONS];
    uint64_t sizes[OPS][SIZES];
    uint64_t log_bytes[OPS][SIZES - EXACT - 1];
    uint64_t places[OPS - 1][PLACES];
    uint64_t set_places[SET_PLACES];
    struct recorder_caller callers[CALLERS + OPS]; /* the last: of each op all callers without room, as one */
    recorded_call bursts[BURSTS][BURST];
    struct recorder_time times[OPS][TIME_CLASSES];
    struct recorder_order order[OPS][SIZE_GROUPS];
    struct recorder_trial trials[OPS][TIME_CLASSES];
    uint64_t nothings, nothing_ticks; /* calls of a function that does nothing, timed among those; what they took */
    /* Calls that are not counted yet. `at`: bytes of the log that have been given out; one to whom it gives as many as
     * `ends` or more has no place there, and empties it. Both are begun anew by one store. */
    union {
        struct {
            uint32_t at, ends;
        };
        uint64_t both;
    };
    struct logged_call log[LOG];
};

/* In a trial, of two turns of a process, one of the usual routines and one of those that are tried: how long they were,
 * and how far its threads came meanwhile. */
struct recorder_turns {
    struct recorder_turn {
        uint64_t ticks, calls, larger, larger_bytes;
    } sides[2];
};

struct recorder_module {
    uint64_t begin, end, offset, device, inode;
    uint32_t name, name_bytes; /* its path, in recorder_file.names */
    uint64_t gone;             /* unloaded; callers in it are noted otherwise */
};

struct recorder_file {
    char magic[8]; /* "WHERRYRC" */
    uint32_t version, block_bytes, header_bytes, pid;
    uint64_t uncounted; /* calls that were seen before there was a block, or when there was no room for one */
    uint32_t blocks;    /* so far */
    uint32_t modules;   /* so far */
    uint32_t modules_busy;
    uint32_t complete; /* the rest of this struct is in order */
    uint32_t parent;
    uint32_t names_used;
    uint64_t cpu_ns, clock_ns, begin_ticks; /* of the process, of the system (monotonic) and of the processor: here */
    uint64_t end_ticks;                     /* 0: it ended otherwise than by exit() */
    uint64_t started; /* the process, in ticks since boot: an exec begins another file of it; or 0 */
    char program[PROGRAM];
    struct recorder_module module[MODULES];
    char names[NAMES];
    uint64_t turn_ends; /* of the processor's clock: when what is under way, a turn or what is before it, ends */
    struct recorder_turn before;           /* the clock and what was counted when it began */
    uint64_t largest_calls, largest_ticks; /* calls of LASTING_FROM and more so far, and what they took */
    uint64_t largest_before, largest_end;  /* the ticks when it began; with how many calls it ends, where it lasts */
    uint64_t lasting, settling; /* the turns of this pair last; what is under way is before one, and in no turn */
    struct {
        uint64_t ticks, turns; /* how long a turn is; so far */
    } kinds[2];                /* short ones, and those that last */
    struct recorder_turns turn[TURNS];
    struct recorder_turns lasting_turn[LASTING_TURNS];
};

#define HEADER_BYTES ((sizeof(struct recorder_file) + PAGE - 1) / PAGE * PAGE)
#define BLOCK_BYTES ((sizeof(struct recorder_block) + PAGE - 1) / PAGE * PAGE)

/* The names under which it is called, in the order of recorder_block.functions. */
#define RECORDED(X)                                                                                                    \
    X(memcpy)                                                                                                          \
    X(mempcpy)                                                                                                         \
    X(__mempcpy)                                                                                                       \
    X(wmemcpy)                                                                                                         \
    X(wmempcpy)                                                                                                        \
    X(__memcpy_chk)                                                                                                    \
    X(__mempcpy_chk)                                                                                                   \
    X(__wmemcpy_chk)                                                                                                   \
    X(__wmempcpy_chk)                                                                                                  \
    X(memmove)                                                                                                         \
    X(bcopy)                                                                                                           \
    X(wmemmove)                                                                                                        \
    X(__memmove_chk)                                                                                                   \
    X(__wmemmove_chk)                                                                                                  \
    X(memset)                                                                                                          \
    X(bzero)                                                                                                           \
    X(__bzero)                                                                                                         \
    X(explicit_bzero)                                                                                                  \
    X(memset_explicit)                                                                                                 \
    X(wmemset)                                                                                                         \
    X(__memset_chk)                                                                                                    \
    X(__explicit_bzero_chk)                                                                                            \
    X(__memset_explicit_chk)                                                                                           \
    X(__wmemset_chk)

#define RECORDER_ENUM(name) FN_##name,
enum recorder_function { RECORDED(RECORDER_ENUM) RECORDER_FUNCTIONS };
#undef RECORDER_ENUM

#endif
