/* lwIP as a TCP stack that wherry-run can drive: two ends on two devices of one stack, joined by two rings of packets,
 * all in the caller's thread. This object defines memcpy, memmove and lwIP's checksum functions; loaded so that its own
 * definitions come first, the packaged library calls them instead of libc's and its own. */
#include <lwip/inet_chksum.h>
#include <lwip/init.h>
#include <lwip/ip4.h>
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>

#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "stack.h"

#define EXPORT __attribute__((visibility("default")))

/* A packet lies where it does behind an Ethernet header whose IP header is aligned, as drivers have it. */
enum { PACKETS = 256, PACKET = 2048, FRONT = 16, IDLE_MOST = 10, CONNECT_TURNS = 100, PORT = 5001 };

/* Before anybody has chosen: what the loader and lwip_init may call. */
static void *bytes(void *dst, const void *src, size_t n)
{
    unsigned char *to = dst;
    const unsigned char *from = src;
    if ((uintptr_t)to - (uintptr_t)from >= n)
        while (n-- > 0)
            *to++ = *from++;
    else
        while (n-- > 0)
            to[n] = from[n];
    return dst;
}

static uint16_t own_sum(const void *data, int n)
{
    static u16_t (*function)(const void *, int);
    if (!function)
        function = (u16_t (*)(const void *, int))dlsym(RTLD_NEXT, "lwip_standard_chksum");
    return function(data, n);
}

static uint16_t own_copy_sum(void *dst, const void *src, uint16_t n)
{
    static u16_t (*function)(void *, const void *, u16_t);
    if (!function)
        function = (u16_t (*)(void *, const void *, u16_t))dlsym(RTLD_NEXT, "lwip_chksum_copy");
    return function(dst, src, n);
}

static struct stack_hooks hooks = {bytes, bytes, own_sum, own_copy_sum};

EXPORT void *memcpy(void *dst, const void *src, size_t n) { return hooks.copy(dst, src, n); }
EXPORT void *memmove(void *dst, const void *src, size_t n) { return hooks.move(dst, src, n); }
EXPORT u16_t lwip_standard_chksum(const void *data, int n) { return hooks.sum(data, n); }
EXPORT u16_t lwip_chksum_copy(void *dst, const void *src, u16_t n) { return hooks.copy_sum(dst, src, n); }

struct packets {
    unsigned char room[PACKETS][PACKET];
    u16_t lengths[PACKETS];
    unsigned in, out;
};

static struct end {
    struct netif device;
    struct packets coming; /* from the other */
    struct tcp_pcb *pcb;
} ends[2]; /* sender, receiver */

static struct stack_work *work;
static uint64_t came;
static size_t cursor;
static unsigned link_mtu;
static bool lost, overrun;

static void set_hooks(const struct stack_hooks *given) { hooks = *given; }

/* What a driver does: the packet is copied into the next slot. */
static err_t output(struct netif *device, struct pbuf *packet, const ip4_addr_t *to)
{
    struct packets *coming = &ends[device == &ends[0].device].coming;
    (void)to;
    if (coming->in - coming->out == PACKETS || packet->tot_len > PACKET - FRONT) {
        overrun = true;
        return ERR_MEM;
    }
    const unsigned slot = coming->in++ % PACKETS;
    coming->lengths[slot] = packet->tot_len;
    pbuf_copy_partial(packet, coming->room[slot] + FRONT, packet->tot_len, 0);
    if (work) {
        work->packets++;
        if (work->packet)
            work->packet(coming->room[slot] + FRONT, packet->tot_len);
    }
    return ERR_OK;
}

static err_t device_begin(struct netif *device)
{
    device->output = output;
    device->mtu = (u16_t)link_mtu;
    device->name[0] = 'w';
    device->name[1] = 'h';
    return ERR_OK;
}

/* And on the other side: a buffer of the stack's, the packet copied into it. Not one of PBUF_POOL: those of Debian's
 * liblwip 2.1.3 have 592 bytes and are taken for 1516. */
static bool deliver(struct end *end)
{
    struct packets *coming = &end->coming;
    const bool any = coming->in != coming->out;
    while (coming->in != coming->out) {
        const unsigned slot = coming->out % PACKETS;
        struct pbuf *packet = pbuf_alloc(PBUF_RAW, coming->lengths[slot], PBUF_RAM);
        if (!packet) {
            overrun = true;
            break;
        }
        pbuf_take(packet, coming->room[slot] + FRONT, coming->lengths[slot]);
        coming->out++;
        if (end->device.input(packet, &end->device) != ERR_OK)
            pbuf_free(packet);
    }
    return any;
}

static err_t take(void *argument, struct tcp_pcb *pcb, struct pbuf *packet, err_t error)
{
    (void)argument;
    if (!packet || error != ERR_OK) {
        lost = true;
        return ERR_OK;
    }
    const u16_t n = packet->tot_len;
    if (work) {
        if (cursor + n > work->room)
            cursor = 0;
        pbuf_copy_partial(packet, work->to + cursor, n, 0);
        for (u16_t i = 0; work->check && i < n; i++)
            work->wrong = work->wrong || work->to[cursor + i] != work->from[(came + i) % work->span];
        cursor += n;
    }
    came += n;
    tcp_recved(pcb, n);
    pbuf_free(packet);
    return ERR_OK;
}

static void broken(void *argument, err_t error)
{
    ((struct end *)argument)->pcb = NULL; /* lwIP has freed it */
    (void)error;
    lost = true;
}

static void prepare(struct end *end, struct tcp_pcb *pcb)
{
    end->pcb = pcb;
    tcp_arg(pcb, end);
    tcp_recv(pcb, take);
    tcp_err(pcb, broken);
}

static err_t accepted(void *argument, struct tcp_pcb *pcb, err_t error)
{
    (void)argument;
    if (error == ERR_OK && pcb)
        prepare(&ends[1], pcb);
    return ERR_OK;
}

static err_t connected(void *argument, struct tcp_pcb *pcb, err_t error)
{
    (void)argument;
    (void)pcb;
    return error;
}

static void stack_close(void)
{
    work = NULL;
    for (int i = 0; i < 2; i++) {
        struct tcp_pcb *pcb = ends[i].pcb;
        ends[i].pcb = NULL;
        if (pcb) {
            tcp_err(pcb, NULL);
            tcp_abort(pcb);
        }
        ends[i].coming.in = ends[i].coming.out = 0;
    }
}

static void once(unsigned mtu)
{
    static bool done;
    link_mtu = mtu;
    if (!done) {
        lwip_init();
        for (int i = 0; i < 2; i++) {
            ip4_addr_t own, mask, none = {0};
            IP4_ADDR(&own, 10, 213, i, 1);
            IP4_ADDR(&mask, 255, 255, 255, 0);
            netif_add(&ends[i].device, &own, &mask, &none, NULL, device_begin, ip4_input);
            netif_set_up(&ends[i].device);
            netif_set_link_up(&ends[i].device);
        }
    }
    done = true;
    ends[0].device.mtu = ends[1].device.mtu = (u16_t)mtu;
}

static const char *stack_open(unsigned mtu)
{
    static u16_t port = PORT;
    if (mtu > PACKET - FRONT)
        return "packets are too large for the rings";
    once(mtu);
    stack_close();
    lost = overrun = false;
    came = 0;
    port++;
    struct tcp_pcb *server = tcp_new(), *client = tcp_new();
    if (!server || !client)
        return "lwIP has no memory for a connection";
    /* Each end is held to its device: to the stack both addresses are its own. */
    tcp_bind(server, IP_ADDR_ANY, port);
    tcp_bind_netif(server, &ends[1].device);
    server = tcp_listen(server);
    if (!server)
        return "lwIP cannot listen";
    tcp_accept(server, accepted);
    prepare(&ends[0], client);
    tcp_bind(client, &ends[0].device.ip_addr, 0);
    tcp_bind_netif(client, &ends[0].device);
    err_t error = tcp_connect(client, &ends[1].device.ip_addr, port, connected);
    for (int turn = 0; error == ERR_OK && turn < CONNECT_TURNS && !(ends[1].pcb && client->state == ESTABLISHED);
         turn++) {
        deliver(&ends[1]);
        deliver(&ends[0]);
        if (lost)
            break;
    }
    tcp_close(server);
    return error != ERR_OK || lost || !ends[1].pcb ? "lwIP does not connect its two ends" : NULL;
}

/* As an application writes that gives a message at a time, as much as the stack takes now. Returns what it took. */
static uint64_t write_some(uint64_t sent, uint64_t total)
{
    struct tcp_pcb *pcb = ends[0].pcb;
    const uint64_t before = sent;
    while (sent < total) {
        const size_t place = sent % work->span, left = work->message - place % work->message;
        const size_t most = left < tcp_sndbuf(pcb) ? left : tcp_sndbuf(pcb);
        if (most == 0 || tcp_write(pcb, work->from + place, (u16_t)most, TCP_WRITE_FLAG_COPY) != ERR_OK)
            break;
        sent += most;
        if (most == left)
            tcp_output(pcb);
    }
    tcp_output(pcb);
    return sent - before;
}

static const char *stack_carry(struct stack_work *given)
{
    const uint64_t total = given->messages * given->message;
    work = given;
    came = 0;
    cursor = 0;
    uint64_t sent = 0, before = work->clock();
    const unsigned char resent = ends[0].pcb ? ends[0].pcb->nrtx : 0;
    for (unsigned idle = 0; came < total && !lost && !overrun && idle < IDLE_MOST;) {
        const uint64_t now_sent = write_some(sent, total);
        sent += now_sent;
        const uint64_t written = work->clock();
        bool any = deliver(&ends[1]);
        const uint64_t received = work->clock();
        any = deliver(&ends[0]) || any || now_sent;
        const uint64_t end = work->clock();
        work->sender_ns += written - before + end - received;
        work->receiver_ns += received - written;
        before = end;
        /* Nothing moves: an acknowledgement waits for its timer, which is of no use where no time passes. */
        if (!any) {
            tcp_fasttmr();
            idle++;
        } else {
            idle = 0;
        }
    }
    work->resent = ends[0].pcb ? (uint64_t)(ends[0].pcb->nrtx - resent) : 0;
    const bool done = came == total && !lost && !overrun;
    work = NULL;
    return done ? NULL : overrun ? "lwIP's packets overrun the ring" : "lwIP's stream stands still";
}

EXPORT const struct stack wherry_stack = {
    STACK_VERSION, "lwip", {NULL, NULL, own_sum, own_copy_sum}, set_hooks, stack_open, stack_carry, stack_close};
