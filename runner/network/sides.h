/* The two processes of a stream through the kernel: the sender, and its child the receiver. Each is pinned, lives in
 * network namespaces of its own where the row wants that, answers one order at a time, and ends with whoever started
 * it, however that ends: nothing outlives a row, and namespaces vanish with their processes. */
#ifndef RUNNER_NETWORK_SIDES_H
#define RUNNER_NETWORK_SIDES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SENDER, RECEIVER, SIDE_COUNT, SAID = 200 };

enum errand { STREAM, CHECKED_STREAM, IPERF };

struct order {
    enum errand errand;
    uint64_t messages;
    size_t offset;  /* of the buffers of both sides past a page's beginning */
    bool from_file; /* the sender has no buffer: sendfile(2) out of the page cache */
    bool dropped;   /* the receiver takes the bytes and has none copied (MSG_TRUNC), so nothing can be compared */
};

struct answer {
    uint64_t begin_ns, end_ns;
    double cpu_ns, system_ns; /* of this side */
    double other_cpu_ns;      /* iperf3: of the receiver, as it says */
    double segment, resent;   /* the sender's */
    char failed[SAID];        /* empty: it did what it was told */
    bool wrong;               /* bytes differ */
};

/* What both sides are told before they begin. */
struct setting {
    bool veth, offload, iperf;
    size_t size;
    unsigned cpus[SIDE_COUNT];
};

struct side {
    struct setting setting;
    struct in_addr own, other;
    int stream;          /* the connection */
    pid_t iperf;         /* the receiver's: its server */
    uint16_t iperf_port; /* 0: none */
    unsigned char *room;
    int file; /* the sender's: a span of messages, once one was asked for from there; else -1 */
};

/* Starts both; *sender is the process to wait for, controls[] are the ends to write orders to and read answers from.
 * NULL, or why it cannot be done here (static). */
const char *sides_start(const struct setting *setting, pid_t *sender, int controls[SIDE_COUNT]);
/* Has them end, and waits for it. */
void sides_end(pid_t sender, int controls[SIDE_COUNT]);

/* link.c. A pair of devices of 1500 bytes between this namespace and that of the process `other`. false, and *failed
 * says what. */
bool link_make(pid_t other, char failed[SAID]);
/* Gives the device its address, with or without what a card would do for the kernel (segmentation, checksums), and has
 * it up. */
bool link_up(struct in_addr address, bool offload, char failed[SAID]);

/* iperf.c. The standard tool over the same way: a server that lives as long as the receiver, and one stream. */
uint16_t iperf_serve(struct side *side);
void iperf_send(const struct side *side, const struct order *order, size_t size, struct answer *answer);
bool iperf_found(void);

#endif
