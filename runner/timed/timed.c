/* wherry-run timed: runs one program and tells, as one JSON line, what it and everything it started used. A small
 * native process does it, since the kernel counts what a parent held at the time of the exec into the peak memory of
 * its child, and that of an interpreter is larger than most programs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "tree.h"

static const char help[] =
    "usage: wherry-run timed [--report FD] [--limit SECONDS] [--set KEY=VALUE] ... [--unset KEY] ... -- CMD [ARG ...]\n"
    "\n"
    "Runs CMD once and writes one event `ran` to descriptor FD (default: 1): its exit status or signal, the time "
    "until\n"
    "it ended, and the user and system time and peak memory of it and all processes that it started. Processes that\n"
    "outlive it by more than a second are ended and counted as `left`. --set and --unset change its environment.\n";

static int report(int descriptor, const struct tree_figures *figures)
{
    if (dup2(descriptor, 1) < 0)
        return misuse("timed: --report %d: not an open descriptor", descriptor);
    json_begin("ran");
    if (figures->start_error) {
        json_int("start_error", figures->start_error);
        json_string("message", strerror(figures->start_error));
        json_end();
        return figures->start_error == ENOENT ? 127 : 126;
    }
    const bool signaled = WIFSIGNALED(figures->status);
    json_int("status", signaled ? 128 + WTERMSIG(figures->status) : WEXITSTATUS(figures->status));
    json_int("signal", signaled ? WTERMSIG(figures->status) : 0);
    json_bool("timed_out", figures->timed_out);
    json_bool("interrupted", figures->interrupted);
    json_uint("left", figures->left);
    json_uint("stops", figures->stops);
    json_uint("elapsed_ns", figures->elapsed_ns);
    json_uint("user_us", figures->user_us);
    json_uint("system_us", figures->system_us);
    json_uint("peak_bytes", figures->peak_bytes);
    json_uint("processes", figures->processes);
    json_end();
    return EXIT_OK;
}

/* The value of an option: the next argument. */
static char *value_of(int argc, char **argv, int *at)
{
    return *at + 1 < argc && strcmp(argv[*at + 1], "--") != 0 ? argv[++*at] : NULL;
}

int command_timed(int argc, char **argv)
{
    int descriptor = 1, i = 1;
    char **set = calloc((size_t)argc + 1, sizeof *set), *end;
    size_t sets = 0;
    struct tree_order order = {.set = set};
    if (!set)
        return misuse("timed: out of memory");
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
            fputs(help, stdout);
            return EXIT_OK;
        }
        const char *const known[] = {"--report", "--limit", "--set", "--unset"};
        int which = 0;
        while (which < 4 && strcmp(option, known[which]) != 0)
            which++;
        if (which == 4)
            return misuse("timed: unknown argument '%s'; wherry-run timed --help", option);
        char *value = value_of(argc, argv, &i);
        if (!value)
            return misuse("%s: give it a value; wherry-run timed --help", option);
        if (which == 0) {
            descriptor = (int)strtol(value, &end, 10);
            if (*end || end == value || fcntl(descriptor, F_GETFD) < 0)
                return misuse("--report %s: give an open descriptor", value);
        } else if (which == 1) {
            order.limit_s = strtod(value, &end);
            if (*end || end == value || !(order.limit_s > 0 && order.limit_s <= 1e6))
                return misuse("--limit %s: give seconds, above 0", value);
        } else {
            const char *equals = strchr(value, '=');
            if (which == 2 ? !equals || equals == value : equals || !*value)
                return misuse("%s %s: give %s", option, value, which == 2 ? "KEY=VALUE" : "the name of a variable");
            set[sets++] = value;
        }
    }
    if (i + 1 >= argc)
        return misuse("timed: no program; give one after --");
    order.argv = argv + i + 1;
    if (descriptor != 1)
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    struct tree_figures figures;
    const int error = tree_run(&order, &figures);
    if (error) {
        fprintf(stderr, "wherry-run: timed: cannot start a process: %s\n", strerror(error));
        return EXIT_FAILED;
    }
    return report(descriptor, &figures);
}
