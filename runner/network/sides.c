#include "sides.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/host.h"
#include "network.h"
#include "parent.h"

/* A side that hears nothing for so long gives up; whoever started it waits a little longer. */
enum { SILENCE_S = 8, START_MS = 10000, END_MS = 1000 };

/* What the two tell each other while they start: the receiver its port, or what failed. */
struct start {
    uint16_t port, iperf_port;
    char failed[SAID];
};

static bool put(int to, const void *data, size_t length)
{
    return send(to, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool get(int from, void *data, size_t length)
{
    return recv(from, data, length, MSG_WAITALL) == (ssize_t)length;
}

__attribute__((format(printf, 2, 3))) static bool fails(char failed[SAID], const char *format, ...)
{
    const int number = errno;
    char text[SAID / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(failed, SAID, "%s: %s", text, strerror(number));
    return false;
}

static bool prepare(int stream)
{
    const int bytes = SOCKET_BUFFER;
    const struct timeval patience = {.tv_sec = SILENCE_S};
    return setsockopt(stream, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0 &&
           setsockopt(stream, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0 &&
           setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
}

/* The figures of one errand: what this process used between two readings. */
static void begin_answer(struct answer *answer, struct rusage *before)
{
    *answer = (struct answer){0};
    getrusage(RUSAGE_SELF, before);
}

static double ns_of(struct timeval time) { return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3; }

static void end_answer(struct answer *answer, const struct rusage *before)
{
    struct rusage after;
    getrusage(RUSAGE_SELF, &after);
    answer->system_ns = ns_of(after.ru_stime) - ns_of(before->ru_stime);
    answer->cpu_ns = ns_of(after.ru_utime) - ns_of(before->ru_utime) + answer->system_ns;
}

static bool make_file(struct side *side, size_t span)
{
    side->file = memfd_create("wherry-messages", MFD_CLOEXEC);
    if (side->file < 0)
        return false;
    messages_fill(side->room, span);
    const ssize_t wrote = write(side->file, side->room, span);
    if (wrote == (ssize_t)span)
        return true;
    errno = wrote < 0 ? errno : ENOSPC;
    close(side->file);
    side->file = -1;
    return false;
}

static ssize_t send_some(const struct side *side, const struct order *order, uint64_t at, size_t length)
{
    off_t from = (off_t)at;
    return order->from_file ? sendfile(side->stream, side->file, &from, length)
                            : send(side->stream, side->room + order->offset + at, length, MSG_NOSIGNAL);
}

static bool send_all(struct side *side, const struct order *order, struct answer *answer)
{
    const size_t size = side->setting.size, span = messages_span(size);
    struct tcp_info info;
    socklen_t length = sizeof info;
    const bool told = getsockopt(side->stream, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
    const uint32_t resent = told ? info.tcpi_total_retrans : 0;
    answer->begin_ns = clock_ns();
    for (uint64_t i = 0, at = 0; i < order->messages; i++, at = at + size == span ? 0 : at + size)
        for (size_t done = 0; done < size;) {
            const ssize_t went = send_some(side, order, at + done, size - done);
            if (went <= 0 && errno != EINTR)
                return fails(answer->failed, "sending");
            done += went > 0 ? (size_t)went : 0;
        }
    /* The last bytes are not to wait for an acknowledgement that waits for more bytes. */
    static const int now = 1, later = 0;
    setsockopt(side->stream, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    answer->end_ns = clock_ns();
    setsockopt(side->stream, IPPROTO_TCP, TCP_NODELAY, &later, sizeof later);
    length = sizeof info;
    if (told && getsockopt(side->stream, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
        answer->segment = info.tcpi_snd_mss;
        answer->resent = info.tcpi_total_retrans - resent;
    }
    return true;
}

/* `pattern` is what the sender's bytes look like, where they are to be compared. */
static bool receive_all(const struct side *side, const struct order *order, const unsigned char *pattern,
                        struct answer *answer)
{
    const size_t span = messages_span(side->setting.size);
    unsigned char *to = side->room + order->offset;
    const uint64_t total = order->messages * side->setting.size;
    const int how = order->dropped ? MSG_TRUNC : 0;
    const bool compared = order->errand == CHECKED_STREAM && !order->dropped;
    answer->begin_ns = clock_ns();
    for (uint64_t done = 0; done < total;) {
        const uint64_t left = total - done;
        const ssize_t now = recv(side->stream, to, left < SOCKET_BUFFER ? left : SOCKET_BUFFER, how);
        if (now == 0)
            errno = ECONNRESET;
        if (now == 0 || (now < 0 && errno != EINTR))
            return fails(answer->failed, "receiving");
        for (ssize_t i = 0; compared && i < now; i++)
            answer->wrong = answer->wrong || to[i] != pattern[(done + (uint64_t)i) % span];
        done += now > 0 ? (uint64_t)now : 0;
    }
    answer->end_ns = clock_ns();
    return true;
}

static void serve(struct side *side, int control, int which)
{
    const size_t span = messages_span(side->setting.size);
    unsigned char *pattern = which == RECEIVER ? malloc(span) : NULL;
    if (pattern)
        messages_fill(pattern, span);
    struct order order;
    while (get(control, &order, sizeof order)) {
        struct answer answer;
        struct rusage before;
        if (which == SENDER && order.errand == CHECKED_STREAM)
            messages_fill(side->room + order.offset, span);
        const bool no_file = which == SENDER && order.from_file && side->file < 0 && !make_file(side, span);
        begin_answer(&answer, &before);
        if (no_file)
            fails(answer.failed, "a file in memory for the messages");
        else if (order.errand == IPERF)
            iperf_send(side, &order, side->setting.size, &answer);
        else if (which == SENDER)
            send_all(side, &order, &answer);
        else if (pattern)
            receive_all(side, &order, pattern, &answer);
        if (order.errand != IPERF)
            end_answer(&answer, &before);
        if (!put(control, &answer, sizeof answer))
            break;
    }
    free(pattern);
}

static bool listen_here(struct side *side, struct start *start, int *listening)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = side->own};
    socklen_t length = sizeof place;
    *listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*listening < 0 || !prepare(*listening) || bind(*listening, (struct sockaddr *)&place, length) ||
        listen(*listening, 1) || getsockname(*listening, (struct sockaddr *)&place, &length))
        return fails(start->failed, "listening on a free port");
    start->port = ntohs(place.sin_port);
    return true;
}

/* The receiver's life. `to` leads to the sender while both start, `control` to whoever gives the orders. */
static void be_receiver(struct side *side, int to, int control)
{
    struct start start = {0};
    char go = 1;
    int listening = -1;
    thread_pin(side->setting.cpus[RECEIVER]);
    bool done =
        !side->setting.veth || unshare(CLONE_NEWNET) == 0 || fails(start.failed, "no network namespace of its own");
    if (!put(to, &go, 1) || !get(to, &go, 1)) /* the sender makes the devices in between */
        return;
    done = done && (!side->setting.veth || link_up(side->own, side->setting.offload, start.failed)) &&
           listen_here(side, &start, &listening);
    if (done && side->setting.iperf)
        start.iperf_port = iperf_serve(side);
    if (!put(to, &start, sizeof start) || !done)
        return;
    side->stream = accept(listening, NULL, NULL);
    close(listening);
    if (side->stream < 0 || !prepare(side->stream))
        return;
    close(to);
    serve(side, control, RECEIVER);
    if (side->iperf > 0) {
        kill(side->iperf, SIGKILL);
        waitpid(side->iperf, NULL, 0);
    }
}

static bool connect_there(struct side *side, const struct start *start, char failed[SAID])
{
    const struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = side->other, .sin_port = htons(start->port)};
    side->stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (side->stream < 0 || !prepare(side->stream) ||
        connect(side->stream, (const struct sockaddr *)&place, sizeof place))
        return fails(failed, side->setting.veth ? "connecting through the veth pair"
                                                : "connecting through the loopback device, which has to be up");
    side->iperf_port = start->iperf_port;
    return true;
}

/* Up to the connection. Without the right to a namespace one of another user's kind may still be had. */
static bool start_sender(struct side *side, int control, int receivers, pid_t *receiver, char failed[SAID])
{
    int pair[2];
    char go = 1;
    struct start start = {0};
    thread_pin(side->setting.cpus[SENDER]);
    if (side->setting.veth && unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        errno = errno == ENOSPC ? EPERM : errno; /* a limit of 0 user namespaces is a prohibition */
        return fails(failed, "network namespaces need root, or user namespaces that the system allows");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return fails(failed, "starting the receiver");
    const pid_t own = getpid();
    *receiver = fork();
    if (*receiver < 0)
        return fails(failed, "starting the receiver");
    if (*receiver == 0) {
        struct side its = {
            .setting = side->setting, .own = side->other, .other = side->own, .room = side->room, .file = -1};
        close(control);
        close(pair[0]);
        if (die_with(own))
            be_receiver(&its, pair[1], receivers);
        _exit(0);
    }
    close(pair[1]);
    bool done = get(pair[0], &go, 1) || fails(failed, "the receiver does not start");
    if (done && side->setting.veth)
        done = link_make(*receiver, failed) && link_up(side->own, side->setting.offload, failed);
    if (done && (!put(pair[0], &go, 1) || !get(pair[0], &start, sizeof start)))
        done = fails(failed, "the receiver has ended");
    if (done && *start.failed) {
        memcpy(failed, start.failed, SAID);
        done = false;
    }
    done = done && connect_there(side, &start, failed);
    close(pair[0]);
    return done;
}

/* Waits for a child to end by itself, but not for long. */
static void end_child(pid_t child, int patience_ms)
{
    const uint64_t until = clock_ns() + (uint64_t)patience_ms * 1000000;
    while (waitpid(child, NULL, WNOHANG) == 0) {
        if (clock_ns() > until) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            return;
        }
        usleep(200);
    }
}

static void be_sender(const struct setting *setting, int control, int receivers)
{
    struct side side = {.setting = *setting, .stream = -1, .room = messages_room(), .file = -1};
    side.own.s_addr = htonl(setting->veth ? 0x0ad50001 : INADDR_LOOPBACK);
    side.other.s_addr = htonl(setting->veth ? 0x0ad50002 : INADDR_LOOPBACK);
    char failed[SAID] = "";
    pid_t receiver = -1;
    if (!side.room)
        fails(failed, "memory for the messages");
    else
        start_sender(&side, control, receivers, &receiver, failed);
    close(receivers);
    if (put(control, failed, sizeof failed) && !*failed)
        serve(&side, control, SENDER);
    if (side.stream >= 0)
        close(side.stream);
    if (receiver > 0)
        end_child(receiver, END_MS / 2);
}

const char *sides_start(const struct setting *setting, pid_t *sender, int controls[SIDE_COUNT])
{
    static char failed[SAID];
    int pairs[SIDE_COUNT][2];
    *sender = -1;
    for (int i = 0; i < SIDE_COUNT; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i])) {
            fails(failed, "sockets for the two sides");
            return failed;
        }
        controls[i] = pairs[i][0];
    }
    fflush(NULL);
    const pid_t own = getpid();
    *sender = fork();
    if (*sender == 0) {
        signal(SIGINT, SIG_IGN); /* whoever started both sees it, and ends them */
        signal(SIGTERM, SIG_DFL);
        close(controls[SENDER]);
        close(controls[RECEIVER]);
        if (die_with(own))
            be_sender(setting, pairs[SENDER][1], pairs[RECEIVER][1]);
        _exit(0);
    }
    close(pairs[SENDER][1]);
    close(pairs[RECEIVER][1]);
    if (*sender < 0) {
        fails(failed, "starting the sender");
        return failed;
    }
    struct pollfd wait = {.fd = controls[SENDER], .events = POLLIN};
    while (poll(&wait, 1, START_MS) < 0 && errno == EINTR && !host_interrupted)
        ;
    if (!wait.revents || !get(controls[SENDER], failed, sizeof failed))
        snprintf(failed, sizeof failed, "the sender does not start");
    return *failed ? failed : NULL;
}

void sides_end(pid_t sender, int controls[SIDE_COUNT])
{
    for (int i = 0; i < SIDE_COUNT; i++) {
        close(controls[i]);
        controls[i] = -1;
    }
    if (sender > 0)
        end_child(sender, END_MS);
}
