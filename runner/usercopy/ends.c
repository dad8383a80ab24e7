#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unnamed.h"

static struct ends all[END_COUNT];

static bool failed(struct ends *ends, const char *what)
{
    snprintf(ends->problem, sizeof ends->problem, "%s: %s", what, strerror(errno));
    return false;
}

static bool open_pipe(struct ends *ends)
{
    int pair[2];
    if (pipe2(pair, O_NONBLOCK | O_CLOEXEC) != 0)
        return failed(ends, "no pipe");
    ends->out = pair[0];
    ends->in = pair[1];
    ends->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return ends->nowhere >= 0 || failed(ends, "/dev/null");
}

static bool open_file(struct ends *ends)
{
    const char *directory = getenv("TMPDIR");
    const int file = unnamed_file(directory && *directory ? directory : "/tmp");
    if (file < 0)
        return failed(ends, "no temporary file (TMPDIR names its directory)");
    ends->in = ends->out = file;
    return true;
}

static bool open_unix(struct ends *ends)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return failed(ends, "no UNIX socket");
    ends->in = pair[0];
    ends->out = pair[1];
    return true;
}

static bool open_tcp(struct ends *ends)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    const int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return failed(ends, "no TCP socket");
    bool right = bind(listener, (struct sockaddr *)&here, length) == 0 && listen(listener, 1) == 0 &&
                 getsockname(listener, (struct sockaddr *)&here, &length) == 0;
    ends->in = right ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    right = right && ends->in >= 0 && connect(ends->in, (struct sockaddr *)&here, length) == 0;
    ends->out = right ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    right = right && ends->out >= 0 && setsockopt(ends->in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
    if (!right)
        failed(ends, "no TCP connection to 127.0.0.1");
    close(listener);
    return right;
}

static bool open_zero(struct ends *ends)
{
    ends->out = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    return ends->out >= 0 || failed(ends, "/dev/zero");
}

const struct ends *ends_open(enum end which)
{
    static bool (*const opening[END_COUNT])(struct ends *) = {open_pipe, open_file, open_unix, open_tcp, open_zero};
    struct ends *ends = &all[which];
    if (!ends->open && !ends->problem[0])
        ends->open = !opening[which] || opening[which](ends);
    return ends;
}
