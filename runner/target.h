/* Who can be called: every registry routine, the public functions (by default and by forced tier), libc, peers. */
#ifndef RUNNER_TARGET_H
#define RUNNER_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "ops.h"
#include "plan/plan.h"
#include "routines/registry.h"

/* How sizes beyond the blocks are done: as the plan's thresholds have it, or by one method from the smallest size that
 * can have it, so that short tests reach it. */
enum target_method { METHOD_PLANNED, METHOD_STREAM, METHOD_REP };

enum target_kind {
    TARGET_ROUTINE,
    TARGET_PUBLIC,
    TARGET_LIBC,
    TARGET_PEER,
    TARGET_KNOWN,
    TARGET_NOFAULT,
    TARGET_INLINED
};

/* Argument order and return value of the function behind a target. */
enum target_abi {
    ABI_MEMCPY,    /* void *f(void *dst, const void *src, size_t n), returns dst */
    ABI_MEMPCPY,   /* the same, returns dst + n */
    ABI_BCOPY,     /* void f(const void *src, void *dst, size_t n) */
    ABI_MEMSET,    /* void *f(void *dst, int c, size_t n), returns dst */
    ABI_BZERO,     /* void f(void *dst, size_t n) */
    ABI_CSUM,      /* uint32_t f(const void *src, size_t n, uint32_t sum) */
    ABI_COPY_CSUM, /* uint32_t f(void *dst, const void *src, size_t n, uint32_t sum) */
    ABI_CRC,       /* uint32_t f(uint32_t crc, const void *src, size_t n) */
    ABI_COPY_CRC,  /* uint32_t f(uint32_t crc, void *dst, const void *src, size_t n) */
    ABI_ISZERO,    /* bool f(const void *p, size_t n) */
    ABI_NOFAULT, /* size_t f(void *dst, const void *src, size_t n, struct wherry_fault *fault), returns what is left */
    ABI_SET_NOFAULT,  /* size_t f(void *dst, int c, size_t n, struct wherry_fault *fault), likewise */
    ABI_CSUM_NOFAULT, /* size_t f(void *dst, const void *src, size_t n, uint32_t sum), likewise; into target_sum */
};

struct packet_loops; /* measure/packet_loops.h */

struct target {
    char name[80];      /* what users type: "rep_movsb", "libc", "wherry", "wherry@avx2", a peer's name */
    char function[128]; /* the symbol called: "rep_movsb", "memcpy", "wherry_mempcpy", "foo_memset" */
    enum target_kind kind;
    enum target_abi abi;
    enum wherry_op op;                    /* the promise it is held to */
    const struct wherry_routine *routine; /* TARGET_ROUTINE only, else NULL */
    bool forced;                          /* TARGET_PUBLIC: call wherry_dispatch_force(isa) first */
    enum wherry_isa isa;
    enum target_method method;                  /* TARGET_PUBLIC, forced */
    const struct wherry_thresholds *thresholds; /* TARGET_PUBLIC, forced: these, in place of the plan's; or NULL */
    const char *peer_path;              /* TARGET_PEER: for the command that repeats a case, "NAME=PATH[:PREFIX]" */
    unsigned links;                     /* TARGET_KNOWN: of the chain in measure/known.S; TARGET_INLINED: its form */
    const struct packet_loops *packets; /* TARGET_PEER: loops of its own, with its copy inlined; or NULL */
    void (*fn)(void);                   /* cast by abi */
};

struct target_list {
    struct target *items;
    size_t count;
};

/* Fills cpu-dependent state once; call first. */
void targets_init(void);

/* Why this CPU cannot run the target ("needs AVX-512 (F, BW, VL, DQ)"), or NULL when it can. Static string. */
const char *target_unavailable(const struct target *target);

/* Puts the dispatch into the state the target asks for: its tier and thresholds, or the default plan. Call before each
 * batch of calls when targets are interleaved. */
void target_prepare(const struct target *target);

/* Before a call that is to be repeatable, by the size and the place in its page alone: has the routines take the
 * destination for one written lately (recent.h), or not; has sizes go apart, together, or be looked at (watch.h); and
 * sets copy_backward_ahead to none, the usual and all distances, copy_ymm_from to its least and to never; and has
 * copies that sum go past the caches, or not. Whichever it is, the others come as often. */
void target_ways(const struct target *target, const void *dst, size_t n);

/* Appends every registry routine, also those this CPU cannot run. */
void targets_add_routines(struct target_list *list);
/* Appends the public functions under the default plan ("wherry") and, with every_tier, under each forced tier this CPU
 * can run ("wherry@sse2" ...), and memmove and memset of each also with streaming or string instructions from the
 * smallest size on ("wherry@sse2+stream", "wherry@sse2+rep"), so that short tests reach those paths. wherry_memcpy is
 * held to op move, since it promises to be right for overlap. */
void targets_add_public(struct target_list *list, bool every_tier);
/* Appends the public functions under a plan that is given as "NAME=CHOICE[,FIELD=BYTES] ...": CHOICE is a tier's name,
 * FIELD one of the thresholds, BYTES a number or off; the rest is as in the default plan. Returns NULL, or one line
 * that says what is wrong. Static buffer. */
const char *targets_add_plan(struct target_list *list, const char *spec);
/* Appends the fault-tolerant functions under each tier ("nofault@sse2" ...) and method, and with planned as "nofault"
 * too. Preparing one has it take the fault table whoever owns the signals; whoever wants faults fixed calls
 * wherry_nofault_init. */
void targets_add_nofault(struct target_list *list, bool planned);
bool target_is_nofault(void (*fn)(void));
extern struct wherry_fault target_fault;   /* what they fill in */
extern struct wherry_fault *target_report; /* what they are given: that, or NULL */
extern __thread uint32_t target_sum;       /* where wherry_csum_copy_nofault leaves its sum */
/* Puts the thresholds of a target in force that has some of its own; NULL, or one without, puts the plan's back. */
void target_thresholds(const struct target *target);
/* Appends libc's memcpy (op copy), memmove, mempcpy, memset, bzero, bcopy. */
void targets_add_libc(struct target_list *list);
/* Appends a copy of measure/known.S, for the workbench's own check. */
void targets_add_known(struct target_list *list, const char *name, void (*fn)(void), unsigned links);
/* Loads "NAME=PATH[:PREFIX]" and appends whatever it has of memcpy (op copy), memmove, mempcpy, memset, bzero, bcopy,
 * each looked up as PREFIX + name, or, where PREFIX has a *, with the name for that. Returns NULL, or one line that
 * says what is wrong and what to do (not found, not ELF, another machine's, does not load, has none of the functions,
 * bad NAME, NAME taken). Static buffer. The object is loaded in a child first: when its constructors, or what chooses
 * its functions, crash, hang or end the process, one line says so and the process ends with 1. What they change for the
 * whole process (surroundings.h) is put back. */
const char *targets_add_peer(struct target_list *list, const char *spec);
/* What peers have registered for exit() so far, and have as destructors, has no output then and two seconds at most,
 * and is called only where the status is EXIT_OK. */
void peers_end_with_us(void);

/* The target that serves `who` for an op when it is measured: a routine's own function; memcpy, memmove or memset of
 * libc, wherry or a peer. A peer with memmove only serves copy too. NULL when it has none. The one called is always
 * of ABI_MEMCPY or ABI_MEMSET for the plain ops, so that one loop times everything; zero is memset with c = 0. The
 * other ops have one way each to be called. */
const struct target *target_for(const struct target_list *list, const char *who, enum wherry_op op);

/* The arguments of a call in the order of their registers. `value` is the byte of
 * a set, the sum or CRC so far. What has no use holds what a caller may leave there. */
struct target_arguments {
    uint64_t word[4];
};
enum target_abi target_abi_of(enum wherry_op op); /* of routines, and of what is measured */
struct target_arguments target_arguments(enum target_abi abi, void *dst, const void *src, size_t n, uint32_t value);

/* A second copy of libc's function for the op at another address (its own link namespace), for the noise floor;
 * NULL when the loader refuses. */
void (*libc_second_copy(enum wherry_op op))(void);

#endif
