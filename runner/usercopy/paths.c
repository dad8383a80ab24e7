#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

enum { CHUNK = 65536, PATIENCE = 100000 };

static char problem[256]; /* of a call; empty: none */

static void *gave_up(void *dst, const char *what)
{
    snprintf(problem, sizeof problem, "%s: %s", what, strerror(errno));
    return dst;
}

/* The bytes that one call has carried; what is not there yet is none and no error. */
static size_t carried(ssize_t result, const char *what)
{
    if (result < 0 && errno != EAGAIN && errno != EINTR)
        gave_up(NULL, what);
    return result > 0 ? (size_t)result : 0;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Hands n bytes in and takes them out again, as much at once as the ends hold. */
typedef ssize_t taker(const struct ends *ends, void *dst, size_t n);

static inline __attribute__((always_inline)) void *through(enum end which, void *dst, const char *src, size_t n,
                                                           taker *take)
{
    const struct ends *ends = ends_open(which);
    size_t in = 0, out = 0;
    for (int idle = 0; out < n && idle < PATIENCE && !problem[0]; idle++) {
        size_t now = 0;
        if (in < n)
            in += now =
                which == END_TCP || which == END_UNIX
                    ? carried(send(ends->in, src + in, least(n - in, CHUNK), MSG_DONTWAIT | MSG_NOSIGNAL), "send")
                    : carried(write(ends->in, src + in, least(n - in, CHUNK)), "write");
        if (out < in) {
            const size_t taken = carried(take(ends, (char *)dst + out, in - out), "receive");
            out += taken;
            now += taken;
        }
        if (now > 0)
            idle = 0;
    }
    if (out < n && !problem[0])
        snprintf(problem, sizeof problem, "%zu of %zu bytes did not come out again", n - out, n);
    return dst;
}

static ssize_t take_read(const struct ends *ends, void *dst, size_t n) { return read(ends->out, dst, n); }

static ssize_t take_recv(const struct ends *ends, void *dst, size_t n) { return recv(ends->out, dst, n, MSG_DONTWAIT); }

/* Without a copy: the pages of a pipe go to /dev/null, the bytes of TCP are passed over. */
static ssize_t drop_pipe(const struct ends *ends, void *dst, size_t n)
{
    (void)dst;
    return splice(ends->out, NULL, ends->nowhere, NULL, n, SPLICE_F_NONBLOCK);
}

static ssize_t drop_tcp(const struct ends *ends, void *dst, size_t n)
{
    (void)dst;
    return recv(ends->out, NULL, n, MSG_TRUNC | MSG_DONTWAIT);
}

static void *path_pipe(void *dst, const void *src, size_t n) { return through(END_PIPE, dst, src, n, take_read); }
static void *path_pipe_write(void *dst, const void *src, size_t n) { return through(END_PIPE, dst, src, n, drop_pipe); }
static void *path_unix(void *dst, const void *src, size_t n) { return through(END_UNIX, dst, src, n, take_recv); }
static void *path_tcp(void *dst, const void *src, size_t n) { return through(END_TCP, dst, src, n, take_recv); }
static void *path_tcp_send(void *dst, const void *src, size_t n) { return through(END_TCP, dst, src, n, drop_tcp); }

static void *path_page_write(void *dst, const void *src, size_t n)
{
    const ssize_t done = pwrite(ends_open(END_FILE)->in, src, n, 0);
    if (done != (ssize_t)n)
        gave_up(dst, "pwrite");
    return dst;
}

static void *path_page_read(void *dst, const void *src, size_t n)
{
    (void)src;
    if (pread(ends_open(END_FILE)->out, dst, n, 0) != (ssize_t)n)
        gave_up(dst, "pread");
    return dst;
}

static void *path_dev_zero(void *dst, const void *src, size_t n)
{
    (void)src;
    size_t done = 0;
    while (done < n && !problem[0]) {
        const size_t now = carried(read(ends_open(END_ZERO)->out, (char *)dst + done, n - done), "read of /dev/zero");
        if (now == 0)
            gave_up(dst, "read of /dev/zero");
        done += now;
    }
    return dst;
}

static void *path_vm_readv(void *dst, const void *src, size_t n)
{
    static pid_t own;
    if (own == 0)
        own = getpid();
    const struct iovec to = {dst, n}, from = {(void *)(uintptr_t)src, n};
    if (process_vm_readv(own, &to, 1, &from, 1, 0) != (ssize_t)n)
        gave_up(dst, "process_vm_readv");
    return dst;
}

static void *path_syscall_floor(void *dst, const void *src, size_t n)
{
    (void)src;
    (void)n;
    syscall(SYS_getppid); /* libc would answer getpid from what it knows, the kernel this one from what it holds */
    return dst;
}

/* A path and what shows that it carries: a function that hands bytes in (NULL: itself) and one that takes them out
 * (NULL: none is needed). */
static struct known {
    struct path path;
    enum end end;
    path_fn *whole;  /* a copy from src to dst with the same ends; NULL: none */
    path_fn *filled; /* to be called before the path: gives the ends their bytes */
    bool zeros;      /* dst is zero afterwards */
    bool tried;
} paths[] = {
    {{"pipe", path_pipe, NULL}, END_PIPE, path_pipe, NULL, false, false},
    {{"pipe_write", path_pipe_write, NULL}, END_PIPE, path_pipe, NULL, false, false},
    {{"page_write", path_page_write, NULL}, END_FILE, NULL, path_page_write, false, false},
    {{"page_read", path_page_read, NULL}, END_FILE, NULL, path_page_write, false, false},
    {{"unix", path_unix, NULL}, END_UNIX, path_unix, NULL, false, false},
    {{"tcp", path_tcp, NULL}, END_TCP, path_tcp, NULL, false, false},
    {{"tcp_send", path_tcp_send, NULL}, END_TCP, path_tcp, NULL, false, false},
    {{"vm_readv", path_vm_readv, NULL}, END_ITSELF, path_vm_readv, NULL, false, false},
    {{"dev_zero", path_dev_zero, NULL}, END_ZERO, path_dev_zero, NULL, true, false},
    {{"syscall_floor", path_syscall_floor, NULL}, END_NONE, NULL, NULL, false, false},
};
enum { COUNT = sizeof paths / sizeof paths[0] };

const struct path *path_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(paths[i].path.name, name) == 0)
            return &paths[i].path;
    return NULL;
}

static struct known *known_of(const struct path *path) { return (struct known *)(uintptr_t)path; }

static const char *try_out(struct known *known)
{
    const struct ends *ends = ends_open(known->end);
    if (!ends->open)
        return ends->problem;
    unsigned char from = 0x5a, to = 0xa5;
    return path_check(&known->path, &to, &from, 1);
}

/* A sandbox may end who asks for what it forbids, so a child asks first. */
static const char *try_in_child(struct known *known)
{
    static char reason[COUNT][200];
    char *text = reason[known - paths];
    int pair[2], status = 0;
    if (pipe2(pair, O_CLOEXEC) != 0)
        return "no pipe to try it out with";
    const pid_t child = fork();
    if (child == 0) {
        const char *wrong = try_out(known);
        if (wrong && write(pair[1], wrong, strlen(wrong)) < 0)
            _exit(2);
        _exit(wrong != NULL);
    }
    close(pair[1]);
    ssize_t length = 0;
    if (child > 0) {
        length = read(pair[0], text, sizeof reason[0] - 1);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(pair[0]);
    if (child < 0)
        return "no child process to try it out in";
    text[length > 0 ? length : 0] = '\0';
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof reason[0], "the system call is forbidden: it ends the process (SIG%s)",
                 sigabbrev_np(WTERMSIG(status)));
        return text;
    }
    return WEXITSTATUS(status) == 0 ? NULL : text[0] ? text : "cannot be used here";
}

const char *path_unavailable(const struct path *path)
{
    struct known *known = known_of(path);
    if (!known->tried) {
        known->tried = true;
        known->path.wrong_here = try_in_child(known);
        if (!known->path.wrong_here)
            known->path.wrong_here = try_out(known);
    }
    return known->path.wrong_here;
}

static const char *first_wrong(const unsigned char *at, const unsigned char *expected, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != (expected ? expected[i] : 0)) {
            snprintf(problem, sizeof problem, "%s of %zu bytes: byte %zu is 0x%02x and should be 0x%02x", name, n, i,
                     at[i], expected ? expected[i] : 0u);
            return problem;
        }
    return NULL;
}

const char *path_check(const struct path *path, unsigned char *dst, unsigned char *src, size_t n)
{
    static char told[sizeof problem];
    const struct known *known = known_of(path);
    const char *wrong = problem[0] ? problem : NULL;
    static uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        src[i] = (unsigned char)(state >> 56);
        dst[i] = (unsigned char)~(known->zeros ? 0 : src[i]);
    }
    if (!wrong && known->whole) {
        known->whole(dst, src, n);
    } else if (!wrong && known->filled) {
        known->filled(dst, src, n);
        path_page_read(dst, src, n);
    }
    if (!wrong && !problem[0] && (known->whole || known->filled))
        first_wrong(dst, known->zeros ? NULL : src, n, path->name);
    if (!problem[0])
        path->fn(dst, src, n); /* by itself, too */
    memcpy(told, problem, sizeof told);
    problem[0] = '\0';
    return told[0] ? told : NULL;
}
