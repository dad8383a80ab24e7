/* Loading peers: look at the file first, so that each thing that can be wrong gets its own plain sentence. Then load it
 * in a child, since a constructor may end the process in ways that nothing in it can catch. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "exported.h"
#include "measure/yardsticks.h"
#include "parent.h"
#include "surroundings.h"
#include "target_internal.h"

static char message[9600];

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_AARCH64:
        return "AArch64";
    case EM_ARM:
        return "32-bit Arm";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "POWER";
    case EM_S390:
        return "s390";
    default:
        return "another machine";
    }
}

/* Up to where the file has to reach for all of it to be loaded: what is missing would be mapped, and the first touch of
 * it end the process. */
static uint64_t end_of_segments(int fd, const Elf64_Ehdr *header)
{
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return 0; /* damaged: the loader says so */
    uint64_t end = header->e_phoff + (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (pread(fd, &segment, sizeof segment, (off_t)(header->e_phoff + i * sizeof segment)) != sizeof segment)
            return end;
        if (segment.p_type == PT_LOAD && segment.p_filesz > 0 && segment.p_offset + segment.p_filesz > end)
            end = segment.p_offset + segment.p_filesz;
    }
    return end;
}

/* NULL when the file is an x86-64 shared object. */
static const char *look_at_file(const char *name, const char *path)
{
    /* Without O_NONBLOCK a named pipe would wait here for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(message, sizeof message, "peer %s: cannot open %s: %s", name, path, strerror(errno));
        return message;
    }
    Elf64_Ehdr header;
    ssize_t got = read(fd, &header, sizeof header);
    int read_error = errno;
    struct stat status;
    bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    uint64_t needed = regular && got == sizeof header ? end_of_segments(fd, &header) : 0;
    close(fd);
    if (!regular || got < 0)
        snprintf(message, sizeof message, "peer %s: %s is not a regular file%s%s", name, path, got < 0 ? ": " : "",
                 got < 0 ? strerror(read_error) : "");
    else if (got < EI_NIDENT || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        snprintf(message, sizeof message, "peer %s: %s is not an ELF file; give a shared object (.so)", name, path);
    else if ((size_t)got < sizeof header)
        snprintf(message, sizeof message, "peer %s: %s is cut short (%zd bytes)", name, path, got);
    else if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        snprintf(message, sizeof message, "peer %s: %s is for %s; this is x86-64", name, path,
                 machine_name(header.e_machine));
    else if (header.e_type != ET_DYN)
        snprintf(
            message, sizeof message,
            "peer %s: %s is not a shared object; link it with -shared (an archive or object file cannot be loaded)",
            name, path);
    else if (needed > (uint64_t)status.st_size)
        snprintf(message, sizeof message, "peer %s: %s is cut short, or damaged (%lld bytes of at least %llu)", name,
                 path, (long long)status.st_size, (unsigned long long)needed);
    else
        return NULL;
    return message;
}

/* What constructors print must not mix with our lines, and what they read is not theirs. */
static void without_input_and_output(int errors)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(errors >= 0 ? errors : nothing, STDERR_FILENO);
    if (nothing > 2)
        close(nothing);
}

/* What a peer calls by name is first looked for in itself: its memcpy that goes on to its memmove is to be measured
 * with that one, not with libc's. Sanitizers refuse this. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HOW_TO_LOAD = RTLD_NOW | RTLD_LOCAL };
#else
enum { HOW_TO_LOAD = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND };
#endif

/* Below the time that callers give to the whole of loading. */
enum { TRIAL_MS = 8000 };

/* What a child tells of loading. */
struct trial {
    bool returned; /* from dlopen and from looking its functions up */
    bool forked;   /* and then a child could be forked, which ran on, */
    bool went_on;  /* and so did whoever forked it */
    bool closed;   /* descriptors that are not its own */
    bool stream;   /* one of the standard streams, which a descriptor that is put back does not open again */
    int limit;     /* the first of `needed` that was lowered and cannot be raised again; -1: none */
};

/* With less of them calls fail, or the process ends, whoever is measured at that moment. */
static const struct {
    int of;
    const char *name;
} needed[] = {
    {RLIMIT_NOFILE, "open files (RLIMIT_NOFILE)"},
    {RLIMIT_NPROC, "processes (RLIMIT_NPROC)"},
    {RLIMIT_FSIZE, "the size of files (RLIMIT_FSIZE)"},
    {RLIMIT_CPU, "processor time (RLIMIT_CPU)"},
    {RLIMIT_AS, "memory (RLIMIT_AS)"},
    {RLIMIT_DATA, "memory (RLIMIT_DATA)"},
    {RLIMIT_STACK, "the stack (RLIMIT_STACK)"},
};

/* Index in `needed` of the first limit that stays lower than it was. */
static int lowered_limit(const struct surroundings *before)
{
    for (int i = 0; i < (int)(sizeof needed / sizeof needed[0]); i++) {
        const struct rlimit *was = &before->limits[needed[i].of];
        struct rlimit now;
        if (setrlimit(needed[i].of, was) != 0 && getrlimit(needed[i].of, &now) == 0 && now.rlim_max < was->rlim_max)
            return i;
    }
    return -1;
}

static bool is_closed(int fd) { return fd >= 0 && fcntl(fd, F_GETFD) < 0; }

/* Functions that an object has registered for each fork run in whoever forks and in the child. */
static void try_to_fork(volatile struct trial *trial)
{
    const pid_t pid = fork();
    if (pid == 0) {
        trial->forked = true;
        _exit(0);
    }
    if (pid < 0)
        trial->forked = true; /* for want of processes: not its doing */
    else
        waitpid(pid, NULL, 0);
    trial->went_on = true;
}

static _Noreturn void trial_child(const char *path, const char *prefix, int errors, volatile struct trial *trial,
                                  pid_t parent)
{
    if (!die_with(parent))
        _exit(1);
    setpgid(0, 0);
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (int signo = 1; signo < 32; signo++)
        signal(signo, SIG_DFL);
    fflush(stdout);
    without_input_and_output(errors);
    if (errors >= 0)
        close(errors); /* so that what is kept has the numbers that it will have in earnest */
    struct surroundings before;
    surroundings_keep(&before);
    void *handle = dlopen(path, HOW_TO_LOAD);
    surroundings_stop_timers();
    struct target_list found = {0};
    if (handle) /* whoever chooses among several functions does so when one is looked up */
        target_add_peer_functions(&found, "", "", prefix, handle);
    trial->closed = is_closed(before.directory);
    for (int fd = 0; fd < 3; fd++)
        trial->closed |= is_closed(before.standard[fd]);
    trial->stream = fileno(stdin) < 0 || fileno(stdout) < 0 || fileno(stderr) < 0;
    trial->limit = lowered_limit(&before);
    trial->returned = true;
    if (handle)
        try_to_fork(trial);
    else
        trial->forked = trial->went_on = true;
    _exit(0);
}

/* The first line that the child left in the file of its standard error, as " (it said: ...)", or nothing. */
static void first_words(int errors, char *words, size_t room)
{
    char said[200];
    ssize_t got = errors >= 0 ? pread(errors, said, sizeof said - 1, 0) : -1;
    said[got > 0 ? got : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    snprintf(words, room, said[0] ? " (it said: %s)" : "%s", said);
}

/* What cannot be put back after loading, or NULL. */
static const char *lasting_harm(const struct trial *trial, bool ended)
{
    static char words[160];
    if (trial->closed)
        return "closed descriptors that it had not opened while it was loaded";
    if (trial->stream)
        return "closed a standard stream (fclose) while it was loaded";
    if (trial->limit >= 0) {
        snprintf(words, sizeof words, "lowered the limit of %s for good while it was loaded",
                 needed[trial->limit].name);
        return words;
    }
    if (!ended)
        return "registered while it was loaded what did not return at a fork (pthread_atfork)";
    if (!trial->forked || !trial->went_on)
        return "registered while it was loaded what ends the process at a fork (pthread_atfork)";
    return NULL;
}

/* Loads the object in a child. Returns when that came back, with or without success, and did nothing that lasts;
 * otherwise says what it did and ends the process: no caller can go on with this peer, and only the caller's caller
 * knows what to do without it. */
static void try_loading(const char *name, const char *path, const char *prefix)
{
    struct trial *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    int errors = memfd_create("peer", MFD_CLOEXEC);
    fflush(NULL);
    const pid_t own = getpid();
    pid_t pid = fork();
    if (pid == 0)
        trial_child(path, prefix, errors, shared, own);
    int status = 0;
    bool ended = pid < 0;
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; !ended && waited < TRIAL_MS; waited++) {
        ended = waitpid(pid, &status, WNOHANG) != 0;
        if (!ended)
            nanosleep(&moment, NULL);
    }
    if (pid > 0)
        kill(-pid, SIGKILL); /* with whatever it has started */
    if (!ended)
        waitpid(pid, &status, 0);
    const struct trial trial = *shared;
    const char *harm = pid >= 0 && trial.returned ? lasting_harm(&trial, ended) : NULL;
    const bool fine = pid < 0 || (trial.returned && !harm);
    char words[240];
    first_words(errors, words, sizeof words);
    if (errors >= 0)
        close(errors);
    munmap(shared, sizeof *shared);
    if (fine)
        return;
    char how[160];
    if (harm)
        snprintf(how, sizeof how, "%s", harm);
    else if (!ended)
        snprintf(how, sizeof how, "did not return within %d s while it was loaded", TRIAL_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "crashed while it was loaded: signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "ended the process with status %d while it was loaded", WEXITSTATUS(status));
    complain("peer %s: %s %s%s; leave it out", name, path, how, words);
    exit(1);
}

static unsigned threads(void)
{
    unsigned found = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        found++;
    if (tasks)
        closedir(tasks);
    return found;
}

/* A runtime that begins in a thread of its own once it is loaded, as Go's: in a child that is forked before it has, a
 * call would wait for it for ever. Nothing tells when it has. */
static void let_begin(void)
{
    const struct timespec a_while = {.tv_nsec = 300000000};
    nanosleep(&a_while, NULL);
}

static _Noreturn void end_at_once(int signo)
{
    (void)signo;
    _exit(EXIT_OK);
}

/* What peers do at the end of the process is none of our output, and does not change what it ends with. */
static void end_quietly(int status, void *nothing)
{
    enum { MOST_S = 2 };
    (void)nothing;
    fflush(stdout);
    if (status != EXIT_OK) /* nothing in the process keeps a destructor from ending it with another one */
        _exit(status);
    int away = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(away, STDOUT_FILENO);
    static const int ends[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        signal(ends[i], end_at_once);
    alarm(MOST_S);
}

static bool loaded;

void peers_end_with_us(void)
{
    if (loaded)
        on_exit(end_quietly, NULL);
}

static void *load(const char *name, const char *path, const char *prefix)
{
    char *absolute = realpath(path, NULL); /* dlopen searches for a bare file name instead of opening it here */
    const char *file = absolute ? absolute : path;
    try_loading(name, file, prefix);
    struct surroundings before;
    surroundings_keep(&before);
    without_input_and_output(-1);
    const unsigned before_it = threads();
    const pid_t own = getpid();
    void *handle = dlopen(file, HOW_TO_LOAD);
    if (getpid() != own)
        _exit(EXIT_OK); /* a constructor has forked and returned in both */
    loaded = true;
    surroundings_stop_timers();
    peers_end_with_us(); /* before what the object has registered while it was loaded */
    if (handle && threads() > before_it)
        let_begin();
    surroundings_restore(&before);
    free(absolute);
    return handle;
}

static bool has_a_function_within(const char *symbol)
{
    size_t at;
    return target_function_within(symbol, &at) != NULL;
}

/* What to write for a function of another name, by one that the object has, as far as its file tells; else in general.
 */
static const char *other_names(const char *name, const char *path)
{
    static char advice[4608];
    char symbol[100]; /* as much as is looked up with what is around a name */
    if (!exported_name(path, has_a_function_within, symbol, sizeof symbol))
        return "if its functions have other names, give NAME=PATH:PREFIX, or what is around the name, with a * for it "
               "(NAME=PATH:my_*_avx2)";
    size_t at = 0;
    const char *function = target_function_within(symbol, &at);
    const char *after = symbol + at + strlen(function);
    snprintf(advice, sizeof advice, "it has %s: if that is meant, give '%s=%s%s%.*s%s%s'", symbol, name, path,
             at || *after ? ":" : "", (int)at, symbol, *after ? "*" : "", after);
    return advice;
}

const char *targets_add_peer(struct target_list *list, const char *spec)
{
    const char *equals = strchr(spec, '=');
    size_t name_length = equals ? (size_t)(equals - spec) : 0;
    char name[80];
    if (name_length >= sizeof name) {
        snprintf(message, sizeof message, "--peer '%.40s...': the NAME is longer than 79 bytes; give a shorter one",
                 spec);
        return message;
    }
    if (!equals || name_length == 0 || !equals[1]) {
        snprintf(message, sizeof message,
                 "--peer '%s': give NAME=PATH or NAME=PATH:PREFIX, as in musl=/lib/libc.musl.so", spec);
        return message;
    }
    memcpy(name, spec, name_length);
    name[name_length] = '\0';
    if (strpbrk(name, ", \t\n@:") != NULL) {
        snprintf(message, sizeof message, "--peer '%s': a NAME has no commas, colons, spaces or @", spec);
        return message;
    }
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) {
            snprintf(message, sizeof message, "--peer '%s': the name %s is taken; choose another", spec, name);
            return message;
        }
    if (strcmp(name, "libc") == 0 || strcmp(name, "wherry") == 0 || is_yardstick(name) || wherry_routine_find(name)) {
        snprintf(message, sizeof message, "--peer '%s': the name %s is taken; choose another", spec, name);
        return message;
    }
    char path[4096];
    const char *prefix = "";
    snprintf(path, sizeof path, "%s", equals + 1);
    char *colon = strrchr(path, ':');
    /* A path that itself has a colon stays usable: dir:x/lib.so, a:b.so. */
    if (colon && !strchr(colon, '/') && access(path, F_OK) != 0) {
        prefix = equals + 1 + (colon - path) + 1;
        *colon = '\0';
    }
    const char *wrong = look_at_file(name, path);
    if (wrong)
        return wrong;
    void *handle = load(name, path, prefix);
    if (!handle) {
        snprintf(message, sizeof message, "peer %s: %s does not load: %s", name, path, dlerror());
        return message;
    }
    if (target_add_peer_functions(list, name, spec, prefix, handle) == 0) {
        const char *names = "memcpy, memmove, mempcpy, memset, bzero, bcopy, csum_partial, crc32c and the like";
        snprintf(message, sizeof message, "peer %s: %s has none of %s%s%s; %s", name, path, names,
                 *prefix ? ", called " : "", prefix, other_names(name, path));
        return message;
    }
    return NULL;
}
