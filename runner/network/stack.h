/* What a TCP stack in user space offers, in a shared object of its own that `make peers` builds from a package
 * (lwip_stack.c there), and what it is given. The object exports `wherry_stack`. */
#ifndef RUNNER_NETWORK_STACK_H
#define RUNNER_NETWORK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STACK_VERSION = 2 };

/* The functions through which the whole stack copies and adds up. A sum is folded to 16 bits and not inverted, of the
 * words as they lie in memory. */
struct stack_hooks {
    void *(*copy)(void *dst, const void *src, size_t n);
    void *(*move)(void *dst, const void *src, size_t n);
    uint16_t (*sum)(const void *data, int n);
    uint16_t (*copy_sum)(void *dst, const void *src, uint16_t n);
};

/* A stream of messages, from one end to the other. */
struct stack_work {
    const unsigned char
        *from;         /* messages lie one behind the other in a span of it, and then again from its beginning */
    unsigned char *to; /* what has come is copied here, as a read of the application would */
    size_t message, span, room;
    uint64_t messages;
    bool check;                                            /* whether what comes is what was sent */
    void (*packet)(const unsigned char *packet, size_t n); /* NULL, or sees each on its way */
    uint64_t (*clock)(void);
    bool (*rest)(unsigned idle); /* ends in two processes: nothing has come so many times; false: give up */
    /* Found: */
    uint64_t sender_ns, receiver_ns;
    uint64_t packets, resent;
    bool wrong;
};

struct stack {
    unsigned version;
    const char *name;
    struct stack_hooks own; /* its own sums; it has no copies */
    void (*hook)(const struct stack_hooks *hooks);
    /* Connects two ends over a link of so many bytes a packet. NULL, or what failed. */
    const char *(*open)(unsigned mtu);
    const char *(*carry)(struct stack_work *work);
    void (*close)(void);
    /* The ends in two processes. Packets go by so many bytes of memory that both share, zeros at first. Each process
     * opens its end, with the other's help, and then both carry the same work; each finds its own time. */
    size_t shared;
    const char *(*open_end)(unsigned mtu, bool receiver, void *shared, bool (*rest)(unsigned idle));
    const char *(*carry_end)(struct stack_work *work);
};

#endif
