/* wherry-run fuzz: a driver that needs no fuzzing engine. Children make inputs from a seed; the first finding ends all
 * of them, is made small, written to a file and told. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "fuzz.h"
#include "parent.h"

enum { JOBS_MOST = 64, NAMES_MOST = 64, PATHS_MOST = 64, TIER_INPUTS = 64 };

/* Of one child, seen by the parent also after the child's death. */
struct job {
    struct fuzz_pulse pulse;
    volatile uint64_t inputs;
    volatile uint32_t length; /* of the input being run */
    uint8_t input[INPUT_MOST];
    struct fuzz_watch watch;    /* the parent's */
    volatile bool found, ended; /* ended: by itself, not by a routine that calls exit */
    struct finding finding;
};

struct request {
    struct target_list list;
    const char *names[NAMES_MOST], *peers[NAMES_MOST], *replays[PATHS_MOST];
    size_t name_count, peer_count, replay_count;
    bool only_peers;
    uint64_t seconds, executions, seed, jobs;
    const char *directory; /* for the inputs of findings */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t xorshift(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* Any bytes mean calls, so random bytes are structured inputs: the classes in them do the rest. */
static void make_input(uint8_t *input, uint64_t *state, uint64_t number)
{
    for (size_t i = 0; i < INPUT_MOST; i += 8) {
        uint64_t r = xorshift(state);
        for (size_t k = 0; k < 8 && i + k < INPUT_MOST; k++)
            input[i + k] = (uint8_t)(r >> 8 * k);
    }
    input[1] = (uint8_t)(number / TIER_INPUTS); /* to change the tier takes long */
}

static _Noreturn void child(struct job *job, const struct request *r, uint64_t index, double end, pid_t parent)
{
    if (!die_with(parent))
        _exit(1);
    fuzz_pulse = &job->pulse;
    fuzz_init();
    /* xorshift keeps to nothing for long when it starts with few bits set. */
    uint64_t state = (r->seed + index + 1) * 0x9e3779b97f4a7c15u | 1;
    const uint64_t share = r->executions / r->jobs + (index < r->executions % r->jobs);
    struct finding f;
    for (uint64_t number = 0; now() < end && (!r->executions || job->pulse.calls < share); number++) {
        make_input(job->input, &state, number);
        job->length = INPUT_MOST;
        if (r->executions && share - job->pulse.calls < CALLS)
            job->length = (uint32_t)(HEADER + (share - job->pulse.calls) * RECORD);
        if (!fuzz_execute(job->input, job->length, false, &f)) {
            job->finding = f;
            job->found = true;
            _exit(EXIT_FAILED);
        }
        job->inputs = number + 1;
    }
    job->ended = true;
    _exit(EXIT_OK);
}

/* A whole file or none: written under another name first. */
static bool keep_input(char *path, size_t room, const struct request *r, const struct job *job)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < job->length; i++)
        hash = (hash ^ job->input[i]) * 0x100000001b3u;
    snprintf(path, room, "%s/wherry-fuzz-%016" PRIx64 ".input", r->directory, hash);
    char temporary[4300];
    snprintf(temporary, sizeof temporary, "%s.%d.part", path, (int)getpid());
    FILE *file = fopen(temporary, "wb");
    bool written = file && fwrite(job->input, 1, job->length, file) == job->length;
    if (file && fclose(file) != 0)
        written = false;
    if (written && rename(temporary, path) == 0)
        return true;
    int error = errno;
    remove(temporary);
    printf("  input      not kept: cannot write %s: %s\n", path, strerror(error));
    return false;
}

static void print_message(const struct finding *f)
{
    char message[1024];
    fuzz_message(message, sizeof message, f);
    printf("FAILED  %s\n", message);
}

/* Each try takes as long as it takes to see that nothing comes of it, so there is one, with the call itself. */
static bool blocks_alone(struct job *job, struct finding *f)
{
    uint8_t alone[HEADER + RECORD];
    memcpy(alone, job->input, HEADER);
    memcpy(alone + HEADER, job->input + HEADER + job->finding.at * RECORD, RECORD);
    if (fuzz_execute_apart(alone, sizeof alone, f))
        return false;
    memcpy(job->input, alone, sizeof alone);
    job->length = sizeof alone;
    return true;
}

static void report(const struct request *r, struct job *job, int status)
{
    /* Here nothing has been called yet, so that what shows it now shows it in a process of its own. */
    fuzz_use_tier(job->input[1]);
    struct finding f = {0};
    const bool blocked = job->found && job->finding.kind == FOUND_HANG && !job->finding.signo;
    const bool repeats = blocked ? blocks_alone(job, &f) : !fuzz_execute_apart(job->input, job->length, &f);
    if (repeats && !blocked)
        job->length = (uint32_t)fuzz_shrink(job->input, job->length, &f);
    if (repeats || job->found)
        print_message(repeats ? &f : &job->finding);
    else
        printf("FAILED  the process %s %d, and that input alone does not show it\n",
               WIFSIGNALED(status) ? "was killed by signal" : "ended with status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    char path[4200];
    printf("  seed       0x%" PRIx64 ", %" PRIu64 " input%s before it\n", r->seed, job->inputs,
           job->inputs == 1 ? "" : "s");
    if (!keep_input(path, sizeof path, r, job))
        return;
    const uint32_t calls = (job->length - HEADER) / RECORD;
    printf("  input      %s (%u bytes, %u %s)\n", path, job->length, calls, calls == 1 ? "call" : "calls");
    if (repeats)
        printf("  repeat     wherry-run fuzz --replay '%s'", path);
    else
        printf("  The input alone does not show it: the function keeps state between inputs. Repeat all of it:\n"
               "             wherry-run fuzz --seed 0x%" PRIx64 " --jobs %" PRIu64,
               r->seed, r->jobs);
    for (size_t i = 0; i < r->peer_count; i++)
        printf(" --peer '%s'", r->peers[i]);
    printf("%s", r->only_peers ? " --only-peers" : "");
    for (size_t i = 0; i < r->name_count; i++)
        printf(" %s", r->names[i]);
    printf("\n");
    char verify[4800];
    fuzz_case(verify, sizeof verify, &f);
    if (repeats && calls == 1 && *verify)
        printf("  the call   %s\n", verify);
}

static void progress(const struct job *jobs, const struct request *r, double started)
{
    static double last;
    if (!isatty(STDERR_FILENO) || now() - last < 0.5)
        return;
    last = now();
    uint64_t calls = 0;
    for (uint64_t i = 0; i < r->jobs; i++)
        calls += jobs[i].pulse.calls;
    fprintf(stderr, "\r\033[K%7.1f million executions  %6.1f s  %5.2f million/s", (double)calls / 1e6, last - started,
            (double)calls / 1e6 / (last - started));
}

/* A child cannot be relied on to see the time: it may be in a call that does not return. */
static void look_after(struct job *jobs, const pid_t *pids, const struct request *r, bool over)
{
    for (uint64_t i = 0; i < r->jobs; i++) {
        struct job *job = &jobs[i];
        if (pids[i] <= 0)
            continue;
        job->pulse.stop |= over;
        if (job->found || !fuzz_blocked(&job->watch, &job->pulse))
            continue;
        kill(pids[i], SIGKILL);
        job->finding = fuzz_blocked_finding(job->input, job->pulse.at);
        job->found = true;
    }
}

static int drive(const struct request *r)
{
    struct job *jobs = mmap(NULL, r->jobs * sizeof *jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED) {
        fputs("wherry-run: fuzz: the system refused memory\n", stderr);
        return EXIT_FAILED;
    }
    pid_t pids[JOBS_MOST] = {0};
    const pid_t own = getpid();
    const double started = now(), end = r->seconds ? started + (double)r->seconds : 1e300;
    fflush(stdout);
    uint64_t running = 0;
    for (; running < r->jobs; running++) {
        pids[running] = fork();
        if (pids[running] == 0)
            child(&jobs[running], r, running, end, own);
        if (pids[running] < 0)
            break;
    }
    bool failed = false;
    if (running < r->jobs) {
        perror("wherry-run: fuzz: fork");
        failed = true;
    }
    struct job *culprit = NULL;
    int how = 0;
    while (running > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) {
            progress(jobs, r, started);
            poll(NULL, 0, 20);
            if (!culprit)
                look_after(jobs, pids, r, now() >= end);
        }
        for (uint64_t i = 0; pid > 0 && i < r->jobs; i++) {
            if (pids[i] != pid)
                continue;
            pids[i] = 0;
            running--;
            if (!culprit && !jobs[i].ended) {
                culprit = &jobs[i];
                how = status;
                for (uint64_t k = 0; k < r->jobs; k++)
                    if (pids[k] > 0)
                        kill(pids[k], SIGKILL);
            }
        }
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    uint64_t calls = 0;
    for (uint64_t i = 0; i < r->jobs; i++)
        calls += jobs[i].pulse.calls;
    const double took = now() - started;
    if (culprit)
        report(r, culprit, how);
    failed |= culprit != NULL;
    printf("%" PRIu64 " executions in %.1f s (%.2f million/s, %" PRIu64 " %s): %s\n", calls, took,
           (double)calls / 1e6 / took, r->jobs, r->jobs == 1 ? "job" : "jobs", failed ? "FAILED" : "all right");
    return failed ? EXIT_FAILED : EXIT_OK;
}

static int replay_file(const char *path)
{
    static uint8_t input[INPUT_MOST];
    FILE *file = fopen(path, "rb");
    if (!file)
        return misuse("fuzz: --replay %s: %s", path, strerror(errno));
    size_t length = fread(input, 1, sizeof input, file);
    fclose(file);
    if (length < HEADER + RECORD)
        return misuse("fuzz: --replay %s: %zu bytes are too short for a call (%d)", path, length, HEADER + RECORD);
    struct finding f;
    fuzz_use_tier(input[1]);
    if (fuzz_execute_apart(input, length, &f)) {
        printf("%s: %zu calls, all right\n", path, (length - HEADER) / RECORD);
        return EXIT_OK;
    }
    char message[1024], verify[4800];
    fuzz_message(message, sizeof message, &f);
    fuzz_case(verify, sizeof verify, &f);
    printf("%s: FAILED  %s\n", path, message);
    if (*verify)
        printf("  the call   %s\n", verify);
    return EXIT_FAILED;
}

static int replay(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return replay_file(path);
    int worst = EXIT_OK;
    size_t count = 0;
    char name[4300];
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat info;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || stat(name, &info) != 0 || !S_ISREG(info.st_mode) ||
            info.st_size < HEADER + RECORD)
            continue;
        int status = replay_file(name);
        worst = status > worst ? status : worst;
        count++;
    }
    closedir(directory);
    if (count == 0)
        return misuse("fuzz: --replay %s: the directory holds no input (a file of %d bytes or more); give another",
                      path, HEADER + RECORD);
    return worst;
}

static void help(void)
{
    puts(
        "wherry-run fuzz: random calls of what copies, moves and sets, compared byte by byte with what they must do\n\n"
        "usage: wherry-run fuzz [TARGET ...] [OPTION ...]\n\n"
        "  TARGET             a routine, wherry, libc, or a peer's NAME; default: every routine and wherry, but\n"
        "                     for sums, CRCs, looks at zeros and fault-tolerant copies, which verify has\n"
        "  --seconds N        for so long (default 60; 0: no limit)\n"
        "  --executions N     end after so many calls, of all jobs together\n"
        "  --seed N           repeats a run (default: drawn and printed)\n"
        "  --jobs N           processes (default: one for each CPU)\n"
        "  --peer NAME=PATH[:PREFIX]  the functions of a shared object too\n"
        "  --only-peers       nothing but the peers\n"
        "  --replay PATH      run this input, or those of this directory, and end; may be given again\n"
        "  --artifacts DIR    where the input of a failure is written (default: here)\n\n"
        "Ends at the first failure with status 1, also when a call does not return: whatever --seconds says, no later\n"
        "than 10 s after it began. Example: wherry-run fuzz wherry --seconds 10");
}

static int read_number(const char *option, const char *text, uint64_t most, uint64_t *value)
{
    char *stop;
    errno = 0;
    *value = strtoull(text, &stop, 0);
    if (text[0] < '0' || text[0] > '9' || *stop || errno || *value > most)
        return misuse("fuzz: %s '%s': give an integer from 0 to %" PRIu64, option, text, most);
    return 0;
}

/* 0 to go on, else 1 + exit status. */
static int read_arguments(struct request *r, int argc, char **argv)
{
    static const char *const with_value[] = {"--seconds", "--executions", "--seed",     "--jobs",
                                             "--peer",    "--replay",     "--artifacts"};
    enum { SECONDS, EXECUTIONS, SEED, JOBS, PEER, REPLAY, ARTIFACTS, WITH_VALUE };
    bool time_given = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        if (word[0] != '-') {
            if (r->name_count == NAMES_MOST)
                return 1 + misuse("fuzz: at most %d targets", NAMES_MOST);
            r->names[r->name_count++] = word;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help();
            return 1 + EXIT_OK;
        }
        if (strcmp(word, "--only-peers") == 0) {
            r->only_peers = true;
            continue;
        }
        unsigned k = 0;
        for (; k < WITH_VALUE; k++) {
            size_t length = strlen(with_value[k]);
            if (strncmp(word, with_value[k], length) == 0 && (!word[length] || word[length] == '='))
                break;
        }
        if (k == WITH_VALUE)
            return 1 + misuse("fuzz: unknown option '%s'; wherry-run fuzz --help", word);
        value = strchr(word, '=') ? strchr(word, '=') + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return 1 + misuse("fuzz: %s needs a value", with_value[k]);
        int wrong = 0;
        switch (k) {
        case SECONDS:
            time_given = true;
            wrong = read_number("--seconds", value, 100000000, &r->seconds);
            break;
        case EXECUTIONS:
            wrong = read_number("--executions", value, UINT64_MAX, &r->executions);
            break;
        case SEED:
            wrong = read_number("--seed", value, UINT64_MAX, &r->seed);
            break;
        case JOBS:
            wrong = read_number("--jobs", value, JOBS_MOST, &r->jobs);
            if (!wrong && r->jobs == 0)
                wrong = misuse("fuzz: --jobs 0: give 1 or more");
            break;
        case PEER:
        case REPLAY: {
            size_t *count = k == PEER ? &r->peer_count : &r->replay_count;
            if (*count == NAMES_MOST)
                return 1 + misuse("fuzz: %s: at most %d", with_value[k], NAMES_MOST);
            (k == PEER ? r->peers : r->replays)[(*count)++] = value;
            break;
        }
        default:
            r->directory = value;
        }
        if (wrong)
            return 1 + wrong;
    }
    if (r->executions && !time_given)
        r->seconds = 0;
    return 0;
}

static bool named(const struct target *t, const char *name)
{
    size_t length = strlen(t->name);
    return strcmp(t->name, name) == 0 ||
           (strncmp(t->name, name, length) == 0 && name[length] == ':' && strcmp(t->function, name + length + 1) == 0);
}

static bool chosen(const struct request *r, const struct target *t)
{
    if (!op_is_plain(t->op) || (r->only_peers && t->kind != TARGET_PEER))
        return false;
    bool any = false;
    for (size_t i = 0; i < r->name_count; i++)
        any |= named(t, r->names[i]);
    return r->name_count ? any : t->kind != TARGET_LIBC;
}

int command_fuzz(int argc, char **argv)
{
    struct request r = {.seconds = 60, .directory = "."};
    if (getrandom(&r.seed, sizeof r.seed, 0) != sizeof r.seed)
        r.seed = (uint64_t)getpid();
    int wrong = read_arguments(&r, argc, argv);
    if (wrong)
        return wrong - 1;
    cpu_set_t cpus;
    if (!r.jobs)
        r.jobs = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint64_t)CPU_COUNT(&cpus) : 1;
    if (r.jobs > JOBS_MOST)
        r.jobs = JOBS_MOST;
    if (r.only_peers && r.peer_count == 0)
        return misuse("fuzz: --only-peers without a --peer NAME=PATH");
    struct stat info;
    if (stat(r.directory, &info) != 0 || !S_ISDIR(info.st_mode))
        return misuse("fuzz: --artifacts %s: no such directory; make it first", r.directory);
    targets_add_routines(&r.list);
    targets_add_public(&r.list, false);
    targets_add_libc(&r.list);
    for (size_t i = 0; i < r.peer_count; i++) {
        const char *bad = targets_add_peer(&r.list, r.peers[i]);
        if (bad)
            return misuse("fuzz: %s", bad);
    }
    for (size_t i = 0; i < r.name_count; i++) {
        bool known = false, called = false;
        for (size_t k = 0; k < r.list.count; k++) {
            const struct target *t = &r.list.items[k];
            if (!named(t, r.names[i]))
                continue;
            known = true;
            called |= chosen(&r, t) && !target_unavailable(t);
        }
        if (!known)
            return misuse("fuzz: no target '%s'; wherry-run list shows the routines", r.names[i]);
        if (!called)
            return misuse("fuzz: nothing to call of '%s': %s", r.names[i],
                          r.only_peers ? "it is no peer's copy, move or set"
                                       : "no copy, move or set that this CPU can run; verify has the other ops");
    }
    const struct target **targets = calloc(r.list.count + 1, sizeof *targets);
    size_t count = 0;
    for (size_t i = 0; targets && i < r.list.count; i++)
        if (chosen(&r, &r.list.items[i]) && !target_unavailable(&r.list.items[i]))
            targets[count++] = &r.list.items[i];
    if (count == 0)
        return misuse("fuzz: nothing to call: the peers have no copy, move or set");
    fuzz_targets(targets, count);
    if (r.replay_count) {
        int worst = EXIT_OK;
        for (size_t i = 0; i < r.replay_count; i++) {
            int status = replay(r.replays[i]);
            worst = status > worst ? status : worst;
        }
        return worst;
    }
    printf("fuzzing %zu function%s, %u tiers, %" PRIu64 " %s, seed 0x%" PRIx64 "\n", count, count == 1 ? "" : "s",
           fuzz_tiers() - 1, r.jobs, r.jobs == 1 ? "job" : "jobs", r.seed);
    return drive(&r);
}
