/* wherry-run entered: runs a program in this very process, and counts how often libc's own memory routines are entered,
 * in it and in all that it starts, from libc itself too. The kernel counts, by a probe at the first
 * instruction of each, or behind it.
 *
 * The counters belong to a process that is nobody's child, so that the program finds no child that it did not start. It
 * ends when the other end of --control is closed, and leaves one event `entered`. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"

static const char help[] =
    "usage: wherry-run entered --control FD --report FD [--set KEY=VALUE] ... -- PATH ARG0 [ARG ...]\n"
    "\n"
    "Becomes the program PATH with these arguments, and has the kernel count how often libc's memcpy, memmove,\n"
    "mempcpy, memset, bzero and wmemset are entered in it and in what it starts, from libc itself too. When\n"
    "descriptor --control meets its end, one event `entered` is written to --report: `calls`, or `error` where the\n"
    "kernel does not count (it wants CAP_PERFMON). --set changes the program's environment. Each call takes some\n"
    "10 us longer.\n";

static const char *const names[] = {"memcpy", "memmove", "mempcpy", "memset", "bzero", "wmemset"};
enum { MOST = sizeof names / sizeof *names };

/* All of them do nothing when they are told of no bytes, whichever argument says so. */
typedef void *routine(void *dst, uintptr_t second, size_t third);

struct place {
    routine *routine;
    const char *file;
    uint64_t offset; /* in the file */
};

/* Where in its file an address of this process lies. */
struct search {
    uintptr_t address;
    uint64_t offset;
    bool found;
};

static int look(struct dl_phdr_info *object, size_t size, void *opaque)
{
    (void)size;
    struct search *search = opaque;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && search->address >= begin && search->address - begin < part->p_filesz) {
            search->offset = search->address - begin + part->p_offset;
            search->found = true;
            return 1;
        }
    }
    return 0;
}

static size_t find_places(struct place places[MOST])
{
    size_t count = 0;
    for (int i = 0; i < MOST; i++) {
        void *routine_address = dlsym(RTLD_DEFAULT, names[i]); /* the one that libc has chosen for this CPU */
        struct search search = {.address = (uintptr_t)routine_address};
        Dl_info info;
        if (!routine_address || !dladdr(routine_address, &info) || !info.dli_fname)
            continue;
        dl_iterate_phdr(look, &search);
        bool known = !search.found;
        for (size_t j = 0; j < count; j++)
            known |= places[j].offset == search.offset;
        if (!known)
            places[count++] = (struct place){(routine *)(uintptr_t)routine_address, info.dli_fname, search.offset};
    }
    return count;
}

/* Whether the first instruction has a prefix of vectors (VEX, EVEX). Linux takes the opcode of such a one for that of
 * another instruction. Where that is one of in and out it sets no probe, without saying so: glibc's AVX2 memset begins
 * with vmovd (6e). Where it is a jump it plays the jump in the instruction's place: AVX-512's memset begins with
 * vpbroadcastb (7a), and would fill memory with whatever the register held. */
static bool begins_with_vectors(const struct place *place)
{
    const uint8_t first = *(const uint8_t *)(uintptr_t)place->routine;
    return first == 0xc5 || first == 0xc4 || first == 0x62;
}

/* How long that instruction is, where it has registers alone and no constant; else 0. */
static uint64_t first_length(const struct place *place)
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)place->routine;
    const size_t prefix = at[0] == 0xc5 ? 2 : at[0] == 0xc4 ? 3 : 4;
    const unsigned map = at[0] == 0xc5 ? 1 : at[1] & (at[0] == 0x62 ? 0x07 : 0x1f);
    const uint8_t opcode = at[prefix], operands = at[prefix + 1];
    const bool constant =
        map > 2 ||
        (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6)));
    return operands >= 0xc0 && !constant ? prefix + 2 : 0;
}

/* A directory of tracefs, where probes in user space are defined: those that perf_event_open makes by itself are not
 * handed on to children. Where it is not mounted, this process mounts it for itself. */
#define TRACING "/sys/kernel/tracing"

static bool tracing_is_there(void)
{
    if (access(TRACING "/uprobe_events", W_OK) == 0)
        return true;
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", TRACING, "tracefs", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) == 0 &&
           access(TRACING "/uprobe_events", W_OK) == 0;
}

static bool change_probes(const char *line)
{
    const int file = open(TRACING "/uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
    const bool done = file >= 0 && write(file, line, strlen(line)) == (ssize_t)strlen(line);
    const int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return done;
}

static void forget(const char *name)
{
    char line[80];
    snprintf(line, sizeof line, "-:wherry/%s\n", name);
    change_probes(line);
}

static int open_counter(unsigned long long id, pid_t pid, bool from_exec_on)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_TRACEPOINT,
        .config = id,
        .disabled = from_exec_on,
        .enable_on_exec = from_exec_on,
        .inherit = from_exec_on,
    };
    return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Whether the kernel counts a call made here. It tells nobody when it could not place a probe. */
static bool counts(const struct place *place, unsigned long long id)
{
    const int counter = open_counter(id, 0, false);
    if (counter < 0)
        return false;
    char byte = 0;
    place->routine(&byte, 0, 0);
    uint64_t value = 0;
    const bool got = read(counter, &value, sizeof value) == (ssize_t)sizeof value;
    close(counter);
    return got && value > 0;
}

/* A probe at that many bytes from the routine's entry: its number for perf_event_open, or 0 and errno. */
static unsigned long long define(const struct place *place, uint64_t further, const char *name)
{
    char line[PATH_MAX + 128], path[160];
    snprintf(line, sizeof line, "p:wherry/%s %s:0x%" PRIx64 "\n", name, place->file, place->offset + further);
    if (!change_probes(line))
        return 0;
    snprintf(path, sizeof path, TRACING "/events/wherry/%s/id", name);
    FILE *file = fopen(path, "re");
    unsigned long long id = 0;
    const bool known = file && fscanf(file, "%llu", &id) == 1 && id;
    if (file)
        fclose(file);
    if (known && counts(place, id))
        return id;
    forget(name);
    errno = EOPNOTSUPP;
    return 0;
}

/* A counter of the times that the routine is entered in the process and its children, from its next exec on; or -1. */
static int probe(const struct place *place, const char *name, pid_t pid)
{
    const bool behind = begins_with_vectors(place);
    const uint64_t further = behind ? first_length(place) : 0;
    if (behind && !further) {
        errno = EOPNOTSUPP;
        return -1;
    }
    const unsigned long long id = define(place, further, name);
    if (!id)
        return -1;
    const int counter = open_counter(id, pid, true);
    const int error = errno;
    if (counter < 0)
        forget(name);
    errno = error;
    return counter;
}

struct order {
    int control, report;
    char **set;
    size_t sets;
};

static void say(const struct order *order, const char *error, int number, uint64_t calls)
{
    if (dup2(order->report, 1) < 0)
        _exit(EXIT_FAILED);
    json_begin("entered");
    if (error) {
        char text[160];
        snprintf(text, sizeof text, "%s%s%s", error, number ? ": " : "", number ? strerror(number) : "");
        json_string("error", text);
    } else {
        json_uint("calls", calls);
    }
    json_end();
}

static _Noreturn void count(const struct order *order, pid_t program, int ready)
{
    struct place places[MOST];
    char name[MOST][40];
    int probes[MOST], number = 0;
    size_t set = 0;
    const size_t found = find_places(places);
    const char *error = found ? NULL : "libc's routines were not found";
    if (!error && !tracing_is_there()) {
        number = errno;
        error =
            "the kernel allows no probes in user space (CAP_PERFMON, and CAP_SYS_ADMIN where tracefs is not mounted)";
    }
    for (; !error && set < found; set++) {
        snprintf(name[set], sizeof name[set], "entered_%d_%zu", (int)program, set);
        probes[set] = probe(&places[set], name[set], program);
        if (probes[set] < 0) {
            number = errno;
            error = "the kernel allows no probes in user space";
            break;
        }
    }
    close(ready); /* now the program may begin */
    char byte;
    ssize_t got;
    do
        got = read(order->control, &byte, 1);
    while (got > 0 || (got < 0 && errno == EINTR));
    uint64_t calls = 0;
    for (size_t i = 0; i < set; i++) {
        uint64_t value = 0;
        if (!error && read(probes[i], &value, sizeof value) != (ssize_t)sizeof value) {
            number = errno;
            error = "the kernel's counters cannot be read";
        }
        calls += value;
        close(probes[i]);
        forget(name[i]);
    }
    say(order, error, number, calls);
    _exit(EXIT_OK);
}

/* Returns when the counters stand, or cannot; where there is not even a process for them, nobody answers. */
static void start_counting(const struct order *order)
{
    const pid_t program = getpid();
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0)
        return;
    const pid_t between = fork();
    if (between == 0) {
        close(ready[0]);
        const pid_t counter = fork();
        if (counter != 0)
            _exit(counter < 0);
        setsid(); /* a Ctrl-C is for the program */
        const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3; i++)
            if (i != order->report && i != order->control)
                dup2(nothing, i);
        count(order, program, ready[1]);
    }
    close(ready[1]);
    char byte;
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR) {
    }
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close(ready[0]);
}

/* The options, to where the program begins. Returns EXIT_OK or what misuse returned. */
static int read_options(int argc, char **argv, int *at, struct order *order)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--set") == 0) {
            const char *equals = i + 1 < argc ? strchr(argv[i + 1], '=') : NULL;
            if (!equals || equals == argv[i + 1])
                return misuse("entered: --set: give KEY=VALUE");
            order->set[order->sets++] = argv[++i];
            continue;
        }
        int *const which = strcmp(argv[i], "--control") == 0  ? &order->control
                           : strcmp(argv[i], "--report") == 0 ? &order->report
                                                              : NULL;
        if (!which)
            return misuse("entered: unknown argument '%s'; wherry-run entered --help", argv[i]);
        char *end = NULL;
        const char *value = i + 1 < argc ? argv[++i] : "";
        *which = (int)strtol(value, &end, 10);
        if (*end || end == value || *which < 0 || fcntl(*which, F_SETFD, FD_CLOEXEC) < 0)
            return misuse("entered: %s: give an open descriptor", argv[i - 1]);
    }
    if (order->control < 0 || order->report < 0)
        return misuse("entered: give --control and --report; wherry-run entered --help");
    if (i + 2 >= argc)
        return misuse("entered: no program; give its path and its arguments, from the name on, after --");
    *at = i + 1;
    return EXIT_OK;
}

int command_entered(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return EXIT_OK;
    }
    struct order order = {.control = -1, .report = -1, .set = calloc((size_t)argc + 1, sizeof(char *))};
    if (!order.set)
        return misuse("entered: out of memory");
    int at = 0;
    const int wrong = read_options(argc, argv, &at, &order);
    if (wrong != EXIT_OK)
        return wrong;
    start_counting(&order);
    for (size_t i = 0; i < order.sets; i++)
        putenv(order.set[i]);
    execv(argv[at], argv + at + 1);
    int why = errno;
    misuse("entered: cannot execute %s: %s", argv[at], strerror(why));
    return why == ENOENT ? 127 : 126;
}
