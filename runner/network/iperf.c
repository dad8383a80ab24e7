/* iperf3, the standard tool, over the same way and with the same messages, for one to hold our figures against. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/host.h"
#include "network.h"
#include "parent.h"
#include "sides.h"

/* Of a shorter stream it may say that nothing was received. */
enum { OUTPUT = 1 << 18, TRIES = 40, TRY_US = 25000, LEAST_BYTES = 16 << 20 };
/* One that neither speaks nor ends is given up. */
enum { PATIENCE_MS = 5000 };

bool iperf_found(void)
{
    const char *path = getenv("PATH");
    char places[4096], full[4200];
    snprintf(places, sizeof places, "%s", path ? path : "/usr/bin:/bin");
    for (char *rest = places, *place; (place = strsep(&rest, ":"));) {
        snprintf(full, sizeof full, "%s/iperf3", place);
        if (*place && access(full, X_OK) == 0)
            return true;
    }
    return false;
}

static uint16_t free_port(struct in_addr address)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = address};
    socklen_t length = sizeof place;
    const int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool done = own >= 0 && bind(own, (struct sockaddr *)&place, length) == 0 &&
                getsockname(own, (struct sockaddr *)&place, &length) == 0;
    if (own >= 0)
        close(own);
    return done ? ntohs(place.sin_port) : 0;
}

/* Starts it with its output to `out`, or to nowhere. */
static pid_t start(char *const argv[], int out)
{
    const pid_t own = getpid(), child = fork();
    if (child != 0)
        return child;
    if (!die_with(own))
        _exit(127);
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, 0);
    dup2(out < 0 ? nowhere : out, 1);
    dup2(nowhere, 2);
    execvp(argv[0], argv);
    _exit(127);
}

uint16_t iperf_serve(struct side *side)
{
    char port[8], address[INET_ADDRSTRLEN];
    const uint16_t number = iperf_found() ? free_port(side->own) : 0;
    if (!number)
        return 0;
    snprintf(port, sizeof port, "%u", number);
    inet_ntop(AF_INET, &side->own, address, sizeof address);
    char *argv[] = {"iperf3", "-s", "-4", "-B", address, "-p", port, NULL};
    side->iperf = start(argv, -1);
    return side->iperf > 0 ? number : 0;
}

/* The number behind the words, which stand in this order in its JSON; NaN when one is not there. */
static double number_at(const char *text, const char *const words[])
{
    for (; *words && text; words++) {
        text = strstr(text, *words);
        text = text ? text + strlen(*words) : NULL;
    }
    return text ? strtod(text + strspn(text, ": \t"), NULL) : __builtin_nan("");
}

/* All that comes within PATIENCE_MS; false when there is more to come. */
static bool read_all(int from, char *output)
{
    const uint64_t until = clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    size_t got = 0;
    bool ended = false;
    for (int64_t left; !ended && got < OUTPUT - 1 && (left = (int64_t)(until - clock_ns())) > 0;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        if (poll(&wait, 1, (int)(left / 1000000) + 1) <= 0)
            continue;
        const ssize_t now = read(from, output + got, OUTPUT - 1 - got);
        if (now < 0 && errno != EINTR)
            break;
        ended = now == 0;
        got += now > 0 ? (size_t)now : 0;
    }
    output[got] = '\0';
    return ended;
}

static bool run_once(const struct side *side, const struct order *order, size_t size, char *output, bool *hangs)
{
    char port[8], address[INET_ADDRSTRLEN], bytes[24], length[12], buffer[12];
    snprintf(port, sizeof port, "%u", side->iperf_port);
    const uint64_t asked = order->messages * size;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)(asked < LEAST_BYTES ? LEAST_BYTES : asked));
    snprintf(length, sizeof length, "%zu", size);
    snprintf(buffer, sizeof buffer, "%d", SOCKET_BUFFER);
    inet_ntop(AF_INET, &side->other, address, sizeof address);
    char *argv[] = {"iperf3", "-c", address, "-4", "-p", port, "-n", bytes, "-l", length, "-w", buffer, "-J", NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    const pid_t child = start(argv, ends[1]);
    close(ends[1]);
    *hangs = child > 0 && !read_all(ends[0], output);
    close(ends[0]);
    int status = 1;
    if (*hangs)
        kill(child, SIGKILL);
    if (child > 0)
        waitpid(child, &status, 0);
    return status == 0;
}

/* Its time is that in which the receiver got what it got; the CPU of each side its share of that. */
void iperf_send(const struct side *side, const struct order *order, size_t size, struct answer *answer)
{
    static char output[OUTPUT];
    static const char *const seconds_words[] = {"\"sum_received\"", "\"seconds\"", NULL};
    static const char *const bytes_words[] = {"\"sum_received\"", "\"bytes\"", NULL};
    const char *end = NULL;
    double seconds = 0, bytes = 0;
    /* Its server may not listen yet, or not again; and at times it says that nothing was received. */
    bool hangs = false;
    for (int i = 0; i < TRIES && !hangs && !(seconds > 0 && bytes > 0); i++) {
        if (i)
            usleep(TRY_US);
        end = run_once(side, order, size, output, &hangs) ? strstr(output, "\"end\":\t{\n\t\t\"streams\"") : NULL;
        seconds = number_at(end, seconds_words);
        bytes = number_at(end, bytes_words);
    }
    if (!(seconds > 0 && bytes > 0)) {
        snprintf(answer->failed, SAID, hangs ? "iperf3 does not end by itself" : "iperf3 gives no figures");
        return;
    }
    const double ns = seconds * 1e9 * (double)(order->messages * size) / bytes;
    answer->begin_ns = 0;
    answer->end_ns = (uint64_t)ns;
    answer->cpu_ns = ns / 100 * number_at(end, (const char *const[]){"utilization_percent", "host_total\"", NULL});
    answer->system_ns = ns / 100 * number_at(end, (const char *const[]){"utilization_percent", "host_system\"", NULL});
    answer->other_cpu_ns =
        ns / 100 * number_at(end, (const char *const[]){"utilization_percent", "remote_total\"", NULL});
}
