/* The scene op=stripes: sequential reading of a stripe of files, or of a RAID-0. One call is one block. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "content.h"
#include "measure/host.h"
#include "system/system.h"
#include "ways.h"

enum { LEAST_BLOCK = 4096, MOST_BLOCK = 1 << 20, COLD_BYTES = 64 << 20, TRIAL_BYTES = 8 << 20, CHECKED = 256 };
/* Pages of other kinds, which stay (a last block cut by the file's end), are no reason not to call a file cold. */
static const double STILL_COLD = 0.02, NOT_WARM = 0.98;

static const struct scene_word words[] = {
    {"size", NULL, "65536", LEAST_BLOCK, MOST_BLOCK, false},
    {"members", NULL, "9", 1, MEMBERS, false},
    {"files", NULL, "", 0, 0, true},
    {"beneath", NULL, "", 0, 0, true},
    {"cache", "warm cold", "warm", 0, 0, false},
    {"mapping", "fresh kept", "fresh", 0, 0, false},
    {"raid", "none btrfs md", "none", 0, 0, false},
    {"content", NULL, "0", 0, INT64_MAX, false},
    {"missing", NULL, "", 0, 0, true},
    {NULL, NULL, NULL, 0, 0, false},
};
enum { PART_USER, PART_SYSTEM, PART_CPU, PART_MACHINE, PART_ELAPSED, PART_CACHED, PART_TICK };
static const char *const parts[] = {"user_ns",    "system_ns", "cpu_ns",  "machine_ns",
                                    "elapsed_ns", "cached",    "tick_us", NULL};

static struct members members;
static uint64_t cursor;
/* Pages that came in piece by piece lie in small folios, which a mapping needs more page faults for: after cold rows,
 * and in a process that does not know what was before, cached rows bring theirs in anew. By whether it is a RAID. */
static bool scattered[2] = {true, true};

/* Ways that have read so many of the members whole, in this process, and were right. */
static struct {
    char key[160];
    size_t members;
} checked[CHECKED];
static size_t checked_count;

static bool is_raid(const struct system_row *row) { return !system_is(row, "raid", "none"); }
static bool is_cold(const struct system_row *row) { return system_is(row, "cache", "cold"); }
static bool is_kept(const struct system_row *row) { return system_is(row, "mapping", "kept"); }

static const char *accept(struct system_row *row)
{
    static char problem[256];
    const uint64_t block = system_number(row, "size");
    if (block & (block - 1))
        return "size= is the block: give a power of two from 4096 to 1048576";
    if (!*system_word(row, "files") && !*system_word(row, "missing"))
        return "files= is missing: the members, with commas between them";
    if (is_cold(row) && is_kept(row))
        return "mapping=kept goes with cache=warm: its pages are in memory";
    for (size_t i = 0; i < row->name_count; i++) {
        const enum way_kind kind = way_find(row->targets, row->names[i]).kind;
        if (kind == WAY_UNKNOWN && !system_peer_without_copy(row, row->names[i])) {
            snprintf(problem, sizeof problem, "'%.80s' is none of " WAY_NAMES, row->names[i]);
            return problem;
        }
        if (is_kept(row) && (kind == WAY_READ || kind == WAY_DIRECT))
            return "mapping=kept is for those that go by a mapping: not for read and direct";
    }
    return NULL;
}

static const char *broken(struct system_row *row, const char *why)
{
    row->broken = why;
    return why;
}

/* A cold sample reads as much as a batch takes when read() does it, and never a block twice. */
static const char *choose_calls(struct system_row *row)
{
    const struct way read = {WAY_READ, NULL};
    const uint64_t blocks = members_blocks(&members), most = COLD_BYTES / members.block;
    uint64_t trial = TRIAL_BYTES / members.block;
    if (row->calls) {
        row->calls = row->calls < blocks ? row->calls : blocks;
        return NULL;
    }
    trial = trial < blocks ? trial : blocks;
    const uint64_t begin = clock_ns();
    const char *why = way_go(&read, &members, 0, trial, false);
    if (why)
        return broken(row, why);
    const double one = (double)(clock_ns() - begin) / (double)trial;
    const double fitting = fmin((double)row->batch_us * 1000 / one, (double)(most < blocks ? most : blocks));
    row->calls = fitting < 1 ? 1 : (uint64_t)fitting;
    return NULL;
}

static const char *cannot_cool(void)
{
    static char problem[256];
    const uint64_t blocks = members_blocks(&members), trial = TRIAL_BYTES / members.block;
    const uint64_t some = trial < blocks ? trial : blocks; /* what is not read stays for rows that want it cached */
    const double cached = members_cool(&members, 0, some);
    if (!(cached > STILL_COLD))
        return NULL;
    snprintf(problem, sizeof problem,
             "%.0f %% of the pages stay in the page cache: the file system keeps them there (tmpfs does), or a program "
             "has them mapped",
             cached * 100);
    return problem;
}

static const char *open_row(struct system_row *row)
{
    static char missing[256];
    if (*system_word(row, "missing")) {
        members_word(system_word(row, "missing"), missing, sizeof missing);
        return missing;
    }
    ways_catch_faults();
    const size_t count = is_raid(row) ? 1 : system_number(row, "members");
    const char *why = members_open(&members, system_word(row, "files"), count, system_number(row, "size"));
    if (!why)
        why = members_open_beneath(&members, system_word(row, "beneath"));
    if (why)
        return broken(row, why);
    cursor = 0;
    if (is_cold(row)) {
        scattered[is_raid(row)] = true;
        why = members_with_holes(&members);
        why = why ? why : cannot_cool();
        return why ? why : choose_calls(row);
    }
    const struct way read = {WAY_READ, NULL};
    if (scattered[is_raid(row)])
        members_drop(&members, 0, members_blocks(&members));
    why = way_go(&read, &members, 0, members_blocks(&members), false);
    if (why)
        return broken(row, why);
    if (is_raid(row) || count == MEMBERS)
        scattered[is_raid(row)] = false;
    if (members_cached(&members, 0, members_blocks(&members)) < NOT_WARM)
        return "the memory does not hold the members: some pages leave the page cache while they are read";
    why = is_kept(row) ? way_keep_mapped(&members) : NULL;
    return why ? broken(row, why) : NULL;
}

/* Past the page cache every block is a request to the device: to be compared the same bytes come in fewer. */
static void enlarge_blocks(void)
{
    while (members.block < MOST_BLOCK && members.stripes % 2 == 0) {
        members.block *= 2;
        members.stripes /= 2;
    }
}

/* The whole stripe, for each way once in a process. */
static const char *check_once(struct system_row *row, const char *name, const struct way *way, bool *wrong)
{
    char key[sizeof checked[0].key];
    const char *files = system_word(row, "files");
    snprintf(key, sizeof key, "%s %.80s %.60s", system_word(row, "raid"), name, files);
    size_t at = 0;
    while (at < checked_count && strcmp(checked[at].key, key) != 0)
        at++;
    if (at < checked_count && checked[at].members >= members.count)
        return NULL;
    const unsigned file = is_raid(row) ? CONTENT_OF_RAID : 0;
    const uint64_t block = members.block, stripes = members.stripes;
    if (way->kind == WAY_DIRECT)
        enlarge_blocks();
    const char *why = way_check(way, &members, system_number(row, "content"), file, wrong);
    members.block = block;
    members.stripes = stripes;
    if (!why && is_kept(row))
        why = way_keep_mapped(&members);
    if (!why && at < CHECKED && !host_interrupted) {
        memcpy(checked[at].key, key, sizeof key);
        checked[at].members = members.count;
        checked_count += at == checked_count;
    }
    return why;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    const struct way way = way_find(row->targets, name);
    const char *missing = way.target ? target_unavailable(way.target) : NULL;
    if (way.kind == WAY_UNKNOWN)
        missing = system_peer_without_copy(row, name);
    if (!missing && way.kind == WAY_DIRECT)
        missing = members_open_direct(&members);
    if (missing)
        return missing;
    const char *why = check_once(row, name, &way, wrong);
    return !why || *wrong ? why : broken(row, why);
}

/* rusage and /proc/stat go by the kernel's ticks; what the thread took in all, and what has elapsed, is exact. */
struct clocks {
    struct rusage own;
    double machine;
    uint64_t cpu, now;
};

/* Busy time of all CPUs in seconds. The kernel's own threads, a loop device's for instance, are in no process. */
static double machine_seconds(void)
{
    FILE *file = fopen("/proc/stat", "re");
    unsigned long long user, nice, system, idle, waiting, hard, soft;
    const bool known = file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                                      &waiting, &hard, &soft) == 7;
    if (file)
        fclose(file);
    return known ? (double)(user + nice + system + hard + soft) / (double)sysconf(_SC_CLK_TCK) : NAN;
}

static uint64_t nanoseconds_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 ? nanoseconds_of(now) : 0;
}

/* Of rusage and, where it is no longer, of /proc/stat. */
static double tick_us(void)
{
    struct timespec grain;
    const double least = 1e6 / (double)sysconf(_SC_CLK_TCK);
    return clock_getres(CLOCK_REALTIME_COARSE, &grain) == 0 ? (double)nanoseconds_of(grain) / 1000 : least;
}

/* The more exact a clock, the nearer to what is timed: reading /proc/stat takes longer than a small sample. */
static void before_sample(struct clocks *clocks)
{
    clocks->machine = machine_seconds();
    getrusage(RUSAGE_THREAD, &clocks->own);
    clocks->cpu = cpu_ns();
    clocks->now = clock_ns();
}

static void after_sample(struct clocks *clocks)
{
    clocks->now = clock_ns();
    clocks->cpu = cpu_ns();
    getrusage(RUSAGE_THREAD, &clocks->own);
    clocks->machine = machine_seconds();
}

static double seconds_of(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec * 1e-6; }

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    const struct way way = way_find(row->targets, name);
    const uint64_t blocks = members_blocks(&members);
    double cached = NAN;
    if (is_cold(row)) {
        cursor = cursor + calls <= blocks ? cursor : 0;
        cached = members_cool(&members, cursor, calls);
    }
    struct clocks before, after;
    before_sample(&before);
    const char *why = NULL;
    for (uint64_t left = calls; left && !why && !host_interrupted;) {
        const uint64_t now = left < blocks - cursor ? left : blocks - cursor;
        why = way_go(&way, &members, cursor, now, is_kept(row));
        cursor = (cursor + now) % blocks;
        left -= now;
    }
    after_sample(&after);
    if (!why)
        why = members_changed(&members);
    if (why)
        return broken(row, why);
    const double n = (double)calls;
    figures->ns = (double)(after.now - before.now) / n;
    figures->parts[PART_USER] = (seconds_of(after.own.ru_utime) - seconds_of(before.own.ru_utime)) * 1e9 / n;
    figures->parts[PART_SYSTEM] = (seconds_of(after.own.ru_stime) - seconds_of(before.own.ru_stime)) * 1e9 / n;
    figures->parts[PART_CPU] = (double)(after.cpu - before.cpu) / n;
    figures->parts[PART_MACHINE] = (after.machine - before.machine) * 1e9 / n;
    figures->parts[PART_ELAPSED] = figures->ns;
    figures->parts[PART_CACHED] = cached;
    figures->parts[PART_TICK] = tick_us();
    return NULL;
}

static void close_row(struct system_row *row)
{
    (void)row;
    members_close(&members);
}

extern const struct scene stripes_scene;
const struct scene stripes_scene = {"stripes", words, parts, accept, open_row, ready, sample, close_row};
