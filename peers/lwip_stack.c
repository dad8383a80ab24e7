/* lwIP as a TCP stack that wherry-run can drive: two ends on two devices, joined by two rings of packets, in the
 * caller's thread or in two processes that share the rings. This object defines memcpy, memmove and lwIP's checksum
 * functions; loaded so that its own definitions come first, the packaged library calls them instead of libc's and its
 * own. */
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
/* A receiver that has found nothing for so many turns acknowledges what it has, as a driver does whose interrupt ends.
 */
enum { TURNS_TO_ACKNOWLEDGE = 32 };

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

/* Each count is written by one side and read by the other. */
struct packets {
    unsigned char room[PACKETS][PACKET];
    u16_t lengths[PACKETS];
    _Alignas(128) unsigned in;
    _Alignas(128) unsigned out;
};

static struct packets own_rings[2];
static struct end {
    struct netif device;
    struct packets *coming; /* from the other */
    struct tcp_pcb *pcb;
} ends[2] = {{.coming = &own_rings[0]}, {.coming = &own_rings[1]}}; /* sender, receiver */
static struct end *own_end;                                         /* in two processes */

static struct stack_work *work;
static uint64_t came;
static size_t cursor;
static unsigned link_mtu;
static bool lost, overrun;

static void set_hooks(const struct stack_hooks *given) { hooks = *given; }

/* What a driver does: the packet is copied into the next slot. */
static err_t output(struct netif *device, struct pbuf *packet, const ip4_addr_t *to)
{
    struct packets *coming = ends[device == &ends[0].device].coming;
    (void)to;
    if (coming->in - __atomic_load_n(&coming->out, __ATOMIC_ACQUIRE) == PACKETS || packet->tot_len > PACKET - FRONT) {
        overrun = true;
        return ERR_MEM;
    }
    const unsigned slot = coming->in % PACKETS;
    coming->lengths[slot] = packet->tot_len;
    pbuf_copy_partial(packet, coming->room[slot] + FRONT, packet->tot_len, 0);
    __atomic_store_n(&coming->in, coming->in + 1, __ATOMIC_RELEASE);
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
    struct packets *coming = end->coming;
    const unsigned in = __atomic_load_n(&coming->in, __ATOMIC_ACQUIRE);
    const bool any = in != coming->out;
    while (in != coming->out) {
        const unsigned slot = coming->out % PACKETS;
        struct pbuf *packet = pbuf_alloc(PBUF_RAW, coming->lengths[slot], PBUF_RAM);
        if (!packet) {
            overrun = true;
            break;
        }
        pbuf_take(packet, coming->room[slot] + FRONT, coming->lengths[slot]);
        __atomic_store_n(&coming->out, coming->out + 1, __ATOMIC_RELEASE);
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
        ends[i].coming = &own_rings[i]; /* of shared ones the other end may still be using */
        ends[i].coming->in = ends[i].coming->out = 0;
    }
    own_end = NULL;
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

static const char *begin(unsigned mtu)
{
    if (mtu > PACKET - FRONT)
        return "packets are too large for the rings";
    once(mtu);
    stack_close();
    lost = overrun = false;
    came = 0;
    return NULL;
}

/* Each end is held to its device: to the stack both addresses are its own. */
static struct tcp_pcb *listen_at(u16_t port)
{
    struct tcp_pcb *server = tcp_new();
    if (!server)
        return NULL;
    tcp_bind(server, IP_ADDR_ANY, port);
    tcp_bind_netif(server, &ends[1].device);
    server = tcp_listen(server);
    if (server)
        tcp_accept(server, accepted);
    return server;
}

static bool connect_to(u16_t port)
{
    struct tcp_pcb *client = tcp_new();
    if (!client)
        return false;
    prepare(&ends[0], client);
    tcp_bind(client, &ends[0].device.ip_addr, 0);
    tcp_bind_netif(client, &ends[0].device);
    return tcp_connect(client, &ends[1].device.ip_addr, port, connected) == ERR_OK;
}

static bool is_connected(const struct end *end) { return end->pcb && end->pcb->state == ESTABLISHED; }

static u16_t next_port(void)
{
    static u16_t port = PORT;
    return ++port;
}

static const char not_connected[] = "lwIP does not connect its two ends";

static const char *stack_open(unsigned mtu)
{
    const char *failed = begin(mtu);
    if (failed)
        return failed;
    const u16_t port = next_port();
    struct tcp_pcb *server = listen_at(port);
    if (!server)
        return "lwIP cannot listen";
    bool done = connect_to(port);
    for (int turn = 0; done && turn < CONNECT_TURNS && !(ends[1].pcb && is_connected(&ends[0])); turn++) {
        deliver(&ends[1]);
        deliver(&ends[0]);
        done = !lost;
    }
    tcp_close(server);
    return done && ends[1].pcb ? NULL : not_connected;
}

/* Both processes are copies of one, so that both find the same port. */
static const char *stack_open_end(unsigned mtu, bool receiver, void *shared, bool (*rest)(unsigned idle))
{
    const char *failed = begin(mtu);
    if (failed)
        return failed;
    for (int i = 0; i < 2; i++)
        ends[i].coming = (struct packets *)shared + i;
    own_end = &ends[receiver];
    const u16_t port = next_port();
    struct tcp_pcb *server = receiver ? listen_at(port) : NULL;
    bool done = receiver ? server != NULL : connect_to(port);
    for (unsigned idle = 0; done && !is_connected(own_end);) {
        idle = deliver(own_end) ? 0 : idle + 1;
        done = !lost && (!idle || rest(idle));
    }
    if (server)
        tcp_close(server);
    return done ? NULL : not_connected;
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

static bool is_done(uint64_t sent, uint64_t total)
{
    const struct tcp_pcb *pcb = own_end->pcb;
    return own_end == &ends[1] ? came == total : sent == total && pcb && !pcb->unsent && !pcb->unacked;
}

/* Looking for packets that have not come is no work: a driver would sleep. */
static const char *stack_carry_end(struct stack_work *given)
{
    const uint64_t total = given->messages * given->message;
    const bool receiver = own_end == &ends[1];
    const struct packets *coming = own_end->coming;
    work = given;
    came = 0;
    cursor = 0;
    bool patient = true;
    uint64_t busy = 0, before = work->clock(), sent = receiver ? 0 : write_some(0, total);
    for (unsigned idle = 0; patient && !is_done(sent, total) && !lost && !overrun;) {
        if (__atomic_load_n(&coming->in, __ATOMIC_ACQUIRE) == coming->out) {
            if (idle++ == 0)
                busy += work->clock() - before;
            if (idle == TURNS_TO_ACKNOWLEDGE)
                tcp_fasttmr();
            patient = work->rest(idle);
            continue;
        }
        if (idle)
            before = work->clock();
        idle = 0;
        deliver(own_end);
        if (!receiver)
            sent += write_some(sent, total);
    }
    tcp_fasttmr(); /* the last acknowledgement waits for nobody */
    busy += work->clock() - before;
    *(receiver ? &work->receiver_ns : &work->sender_ns) = busy;
    const bool done = is_done(sent, total) && !overrun;
    work = NULL;
    return done ? NULL : overrun ? "lwIP's packets overrun the ring" : "lwIP's stream stands still";
}

EXPORT const struct stack wherry_stack = {
    STACK_VERSION, "lwip",      {NULL, NULL, own_sum, own_copy_sum}, set_hooks,      stack_open,
    stack_carry,   stack_close, 2 * sizeof(struct packets),          stack_open_end, stack_carry_end};
