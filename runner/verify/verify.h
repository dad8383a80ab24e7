/* Proving targets right: what the rooms of this directory share. A unit of work is one target under one family; it
 * runs in a forked child, so that crashes, hangs and damaged memory of wrong routines hurt nothing else. */
#ifndef RUNNER_VERIFY_H
#define RUNNER_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"

enum verify_level { LEVEL_BRIEF, LEVEL_QUICK, LEVEL_FULL };

/* One thing checked; text form "sweep:n=777,d=13,s=37,dist=0,c=0,at=0,calls=1,seed=0x5". */
struct vcase {
    uint64_t n;     /* bytes */
    uint64_t d;     /* destination: bytes past a page boundary */
    uint64_t s;     /* source: likewise */
    int64_t dist;   /* overlap: dst - src; elsewhere 0 for buffers apart */
    int c;          /* the value to set, as the int that is passed */
    unsigned at;    /* which of the family's placements or modes */
    uint64_t calls; /* the case is repeated this often; the last failure counts */
    uint64_t seed;  /* of the contents */
};

struct verify_failure {
    struct vcase at;
    unsigned src_off, dst_off; /* address mod 4096 */
    int64_t distance;          /* dst - src */
    int64_t byte;              /* first wrong byte, relative to dst (or src); INT64_MIN when none */
    int expected, got;         /* -1: none */
    bool hung;
    uint64_t ordinal; /* calls made by the unit before this one ended */
    char state[48];   /* what was lost: "rbx", "direction flag" ... or empty */
    char message[1024];
};

/* Shared between child and parent: what is being called now, and a counter that shows life. */
struct verify_pulse {
    volatile uint64_t beats;
    struct vcase now;
    unsigned now_src_off, now_dst_off;
    int64_t now_distance;
    uint64_t longest; /* bytes of the longest call that came back, as far as it says that it did them */
    bool no_room;     /* the system refused memory or a file that the cases need: nothing that the target did */
    bool fault_due;   /* of the call that is under way */
    int foreign;      /* signal of a fault in a thread that the target has started, which nothing can take back; or 0 */
    uintptr_t foreign_address;
};

/* Ends the child that called it: its family is skipped. own_pulse is the pulse of the child that runs. */
_Noreturn void no_room(void);
extern struct verify_pulse *own_pulse;

/* What the trampoline saw after the call; the layout is known to trampoline.S. */
struct verify_regs {
    uint64_t saved[6]; /* rbx rbp r12 r13 r14 r15 */
    int64_t rsp_moved;
    uint64_t flags;
    uint32_t mxcsr;
    uint16_t fcw;
    uint16_t trap; /* in: 1 sets the trap flag for the call */
    uint64_t canary[2];
    uint64_t fourth; /* in: the fourth argument */
};

struct unit {
    const struct target *target;
    const struct family *family;
    enum verify_level level;
    bool few;      /* few functions were asked for, so quick can afford more of each */
    bool thin;     /* still less than brief */
    uint64_t seed; /* of this run */
    uint64_t random;
    uint64_t cases;
    uint64_t longest; /* bytes of a call */
    uint64_t ordinal;
    uint64_t left; /* of a fault-tolerant call: the bytes that it must say it has not done */
    bool failed;
    struct verify_failure failure;
    char skipped[160]; /* why part or all of the family was not run */
    bool unfinished;   /* and that was the routine's slowness, or a limit on time: there is no proof of it */
    struct verify_pulse *pulse;
};

struct family {
    const char *name;
    const char *what; /* one sentence for --help */
    bool (*applies)(const struct target *target);
    void (*generate)(struct unit *unit);                     /* all the cases of the level */
    void (*run)(struct unit *unit, const struct vcase *one); /* one case */
    const char *(*lacks_room)(const struct vcase *one); /* what a --case has too much of, or NULL; NULL: of nothing */
    uint64_t farthest;                                  /* the largest n or dist of a --case; 0: FARTHEST */
    bool marks;                                         /* s is the number of a byte, below n */
    bool tells_addresses;                               /* they are the same in each run, and may be what is wrong */
};
#define FARTHEST ((uint64_t)8 << 30)

/* The families, in the order in which they run; NULL past the last. */
const struct family *verify_family(size_t index);

/* case.c */
void case_print(char *text, size_t room, const struct family *family, const struct vcase *one);
const char *case_parse(const char *text, const struct family **family, struct vcase *one); /* NULL or what is wrong */

/* call.c: one call, with faults caught and everything the ABI promises looked at. */
struct outcome {
    bool faulted, writing, hung;
    bool jumping;    /* what was to be executed there could not be */
    bool protection; /* a general protection fault, of which the address is not known */
    bool astray;     /* while it was stepped the stack pointer was outside the stack */
    int signo;
    uintptr_t rip;
    uintptr_t address; /* of a fault */
    int error;         /* errno afterwards; NO_ERRNO before */
    void *returned;
    struct verify_regs regs;
};
extern __thread void *verify_frame;
extern const char verify_returned[]; /* the trampoline's address after the call */
void *verify_trampoline(void (*fn)(void), uint64_t a, uint64_t b, uint64_t c, struct verify_regs *regs);
void call_init(struct unit *unit);
void call_init_thread(void);
/* Called at each instruction while regs.trap is set; returns false to stop stepping. */
typedef bool step_hook(void *context, uintptr_t rip);
/* Called for a fault inside the call; returns true when it removed the cause: the call then goes on, stepped when
 * *step is set. */
typedef bool fault_hook(void *context, uintptr_t address, bool writing, bool *step);
extern __thread step_hook *call_on_step;
extern __thread fault_hook *call_on_fault;
extern __thread void *call_hook_context;
struct outcome call_raw(struct unit *unit, const struct vcase *one, void *dst, const void *src, size_t n);
/* call_raw, then every promise but the bytes: no fault, return value, registers. False: the failure is recorded. */
bool call_checked(struct unit *unit, const struct vcase *one, void *dst, const void *src, size_t n);
bool call_judge(struct unit *unit, const struct vcase *one, const struct outcome *seen, void *dst, const void *src,
                size_t n);
bool any_target(const struct target *target); /* true: for families that apply to all */
bool is_set(const struct target *target);     /* set, zero or pagezero: no source */
bool only_reads(const struct target *target); /* no destination: the one that families have ready stays as it was */
bool writes(const struct target *target);     /* not only_reads; as families ask it */
/* Is there time for sizes beyond most caches, where a library has a way of its own? A routine of the registry has none.
 */
bool past_caches(const struct unit *unit);
bool may_overlap(const struct unit *unit, const struct vcase *one); /* op move, and a distance is given */
uint64_t reach_of(const struct vcase *one);                         /* the distance, whichever way */
bool sums_as_well(const struct target *target);                     /* what it has copied, into target_sum */
bool takes_value(const struct target *target);                      /* a byte to set, or the sum or CRC so far */
int value_of(const struct target *target, int c);                   /* what is really passed: zero routines get 0 */

/* report.c */
void fail(struct unit *unit, const struct vcase *one, const void *dst, const void *src, const char *state,
          const char *format, ...) __attribute__((format(printf, 6, 7)));
void fail_byte(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src, const char *where,
               int64_t byte, int expected, int got);

/* memory.c */
void memory_init(void); /* what the loops may use; before any child */
struct arena {
    uint8_t *base; /* page-aligned, between inaccessible pages */
    uint8_t *back; /* what it holds when nobody has written to it */
    size_t length;
};
enum { PAGE = 4096, PIECE = 1 << 20, PARITY_ANY = 2 };
struct arena arena_make(size_t length, uint64_t seed, int parity); /* every byte odd (1), even (0) or any */
void *map_if_possible(size_t length, int protection);              /* NULL: the system refuses it */
void *map_or_die(size_t length, int protection);
uint8_t *map_repeated(size_t length); /* whole pieces, all of them the same memory */
uint64_t next_random(uint64_t *state);
uint64_t below(struct unit *unit, uint64_t limit);
void plain_copy(uint8_t *restrict dst, const uint8_t *restrict src, size_t n);
void plain_fill(uint8_t *dst, uint8_t c, size_t n);
bool plain_equal(const uint8_t *a, const uint8_t *b, size_t n);
bool plain_all(const uint8_t *a, uint8_t c, size_t n);
size_t first_difference(const uint8_t *a, const uint8_t *b, size_t n); /* n: none */
size_t first_other(const uint8_t *a, uint8_t c, size_t n);
void pattern_fill(uint8_t *to, size_t length, uint64_t seed, int parity);
bool size_fits(const struct target *target, size_t n); /* a multiple of the quantum */
size_t fit(const struct target *target, size_t n);     /* rounded down to one that fits */

/* places.c: a call of one->n bytes, compared in full; reach, where the two overlap, is their distance. There is memory
 * of PLACED_BESIDE bytes beside the destination, or beside both as one; all that is PLACED_ROOM at most. */
enum { PLACED_BESIDE = 64, PLACED_ROOM = 512 * 1024 };
void check_placed(struct unit *unit, const struct vcase *one, uint8_t *dst, uint8_t *src, uint64_t reach);

/* drive.c */
struct verify_options {
    enum verify_level level;
    uint64_t seed;
    int jobs;
    bool json, few;
    bool thin; /* --thin, which no help tells: for tests in an emulated computer, where a call costs a hundred */
    const struct family *only_case_family; /* --case */
    struct vcase only_case;
};
int verify_drive(const struct target *const *targets, size_t target_count, const struct family *const *families,
                 size_t family_count, const struct verify_options *options);

/* print.c */
struct verify_counts {
    uint64_t cases, longest, failures, skipped, unfinished;
    double seconds;
};
void print_start(const struct verify_options *o, size_t targets, size_t units);
void print_progress(const struct verify_options *o, size_t done, size_t total, const struct unit *unit);
void print_family(const struct verify_options *o, const struct unit *unit, double seconds);
void print_skip(const struct verify_options *o, const struct target *target, const struct family *family,
                const char *reason, bool unfinished);
void print_failure(const struct verify_options *o, const struct unit *unit);
void print_target(const struct verify_options *o, const struct target *target, const struct verify_counts *counts);
void print_end(const struct verify_options *o, const struct verify_counts *counts);
const char *selector(const struct target *target); /* what to type for exactly this function; static */

#endif
