/* via=loopback and via=veth: a TCP stream through the running kernel, with socket buffers as in the mail. The names of
 * a row say where the application's buffers lie; they take turns on one connection. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "network.h"
#include "sides.h"

enum { PATIENCE_MS = 20000, LOOK_MS = 200 };

static pid_t sender = -1;
static int controls[SIDE_COUNT] = {-1, -1};
static char problem[SAID + 64];

static const struct stream {
    const char *name;
    struct order order;
} streams[] = {
    {"aligned", {.errand = STREAM}},
    {"misaligned", {.errand = STREAM, .offset = 1}},
    {"sendfile", {.errand = STREAM, .from_file = true}},
    {"sendfile_misaligned", {.errand = STREAM, .from_file = true, .offset = 1}},
    {"sendfile_dropped", {.errand = STREAM, .from_file = true, .dropped = true}},
    {"iperf3", {.errand = IPERF}},
};
enum { STREAMS = sizeof streams / sizeof *streams };

static const struct stream *stream_of(const char *name)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (strcmp(streams[i].name, name) == 0)
            return &streams[i];
    return NULL;
}

static const char *names(const struct system_row *row, const char *name)
{
    (void)row;
    return stream_of(name) ? NULL : "aligned, misaligned, sendfile, sendfile_misaligned, sendfile_dropped, iperf3";
}

static const char *open_kernel(struct system_row *row)
{
    const struct host *host = row->host;
    bool iperf = false;
    for (size_t i = 0; i < row->name_count; i++)
        iperf = iperf || stream_of(row->names[i])->order.errand == IPERF;
    const struct setting setting = {.veth = system_is(row, "via", "veth"),
                                    .offload = !system_is(row, "offload", "off"),
                                    .iperf = iperf,
                                    .size = system_number(row, "size"),
                                    .cpus = {host->cpus[0], host->cpus[host->cpu_count > 1]}};
    return sides_start(&setting, &sender, controls);
}

static void close_kernel(struct system_row *row)
{
    (void)row;
    sides_end(sender, controls);
    sender = -1;
}

/* An interrupt is seen by the frame when the sample under way has ended; a side that is lost is told of here. */
static const char *hear(int which, struct answer *answer)
{
    struct pollfd wait = {.fd = controls[which], .events = POLLIN};
    for (int waited = 0; waited < PATIENCE_MS && !wait.revents; waited += LOOK_MS)
        if (poll(&wait, 1, LOOK_MS) < 0 && errno != EINTR)
            break;
    if (!wait.revents)
        return which == SENDER ? "nothing is heard of the sender" : "nothing is heard of the receiver";
    if (recv(wait.fd, answer, sizeof *answer, MSG_WAITALL) != sizeof *answer)
        return which == SENDER ? "the sender has ended" : "the receiver has ended";
    if (!*answer->failed)
        return NULL;
    snprintf(problem, sizeof problem, "%s", answer->failed);
    return problem;
}

static const char *run(const struct order *order, struct answer answers[SIDE_COUNT])
{
    const int last = order->errand == IPERF ? SENDER : RECEIVER; /* the receiver takes no part in iperf3's stream */
    for (int i = last; i >= 0; i--)
        if (send(controls[i], order, sizeof *order, MSG_NOSIGNAL) != sizeof *order)
            return i == SENDER ? "the sender has ended" : "the receiver has ended";
    const char *why = NULL;
    for (int i = last; i >= 0 && !why; i--)
        why = hear(i, &answers[i]);
    return why;
}

static struct order order_of(const char *name, uint64_t messages)
{
    struct order order = stream_of(name)->order;
    order.messages = messages;
    return order;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    struct order order = order_of(name, 3 * SOCKET_BUFFER / system_number(row, "size") + 2);
    struct answer answers[SIDE_COUNT] = {0};
    if (order.errand == IPERF) {
        if (!iperf_found())
            return "needs the program iperf3, which the Debian package iperf3 brings";
        return run(&order, answers);
    }
    const bool dropped = order.dropped;
    order.errand = CHECKED_STREAM;
    order.dropped = false; /* what is dropped is compared once as if it were not */
    const char *why = run(&order, answers);
    *wrong = why || answers[RECEIVER].wrong;
    if (!why && dropped) {
        order.dropped = true;
        why = run(&order, answers);
    }
    return why ? why : answers[RECEIVER].wrong ? "the bytes received are not those that were sent" : NULL;
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    (void)row;
    const struct order order = order_of(name, calls);
    struct answer answers[SIDE_COUNT] = {0};
    const char *why = run(&order, answers);
    if (why)
        return why;
    const struct answer *own = &answers[SENDER], *other = &answers[RECEIVER];
    double *parts = figures->parts;
    const double count = (double)calls;
    parts[PART_SENDER] = own->cpu_ns / count;
    parts[PART_SENDER_SYSTEM] = own->system_ns / count;
    if (order.errand == IPERF) {
        figures->ns = (double)own->end_ns / count;
        parts[PART_RECEIVER] = own->other_cpu_ns / count;
        return NULL;
    }
    figures->ns = (double)(other->end_ns - own->begin_ns) / count;
    parts[PART_RECEIVER] = other->cpu_ns / count;
    parts[PART_RECEIVER_SYSTEM] = other->system_ns / count;
    parts[PART_SEGMENT] = own->segment > 0 ? own->segment : NAN;
    parts[PART_RESENT] = own->resent;
    return NULL;
}

const struct way way_kernel = {names, open_kernel, ready, sample, close_kernel};
