/* op=network: bytes from a sender to a receiver. One call is one message of `size` bytes that the receiver has got, or
 * one frame from ring to ring. */
#ifndef RUNNER_NETWORK_NETWORK_H
#define RUNNER_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/system.h"

enum {
    PART_SENDER,        /* processor time of the sender for a message */
    PART_RECEIVER,      /* and of the receiver */
    PART_SENDER_SYSTEM, /* of these, in the kernel */
    PART_RECEIVER_SYSTEM,
    PART_COPY,    /* stack: time in copies, also those that add up on the way */
    PART_SUM,     /* stack: time in checksums alone */
    PART_COPIED,  /* stack: bytes copied for a message */
    PART_SUMMED,  /* stack: bytes added up for a message */
    PART_SEGMENT, /* bytes of data in a full segment */
    PART_RESENT   /* segments sent again in a sample */
};

/* What the mail's command asks for, of both sides. */
enum { SOCKET_BUFFER = 65536, MESSAGE_MOST = 65536, OFFSET_MOST = 63, SEGMENT = 1448, MTU = 1500 };

/* A sender's messages lie one behind the other in as many bytes as the socket holds and one message more, so that each
 * comes from memory that was not the last's; then from the beginning again. */
size_t messages_span(size_t size);
/* Memory for a span, at a page. NULL when there is none. */
unsigned char *messages_room(void);
/* Random bytes that both sides know, from base on. */
void messages_fill(unsigned char *base, size_t span);

/* A way for bytes; the functions as in struct scene. */
struct way {
    const char *(*names)(const struct system_row *row, const char *name); /* NULL, or what names there are */
    const char *(*open)(struct system_row *row);
    const char *(*ready)(struct system_row *row, const char *name, bool *wrong);
    const char *(*sample)(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures);
    void (*close)(struct system_row *row);
};

extern const struct way way_kernel, way_stack, way_apart, way_rings;

#endif
