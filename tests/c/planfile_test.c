/* Plans under test: planfile-test COMMAND ...
 *
 * - read FILE [family=N] [model=N] [stepping=N] [vendor=ID] [lack=FEATURE] ... [last=KiB]: what this CPU, or one that
 *   differs so, makes of the plan: "0 NAME CHOICE THRESHOLD ..." or "ERRNO REASON"
 * - load FILE ...: wherry_plan_load of each (- is the default): its result and the status, a line each
 * - fuzz FILE SEED COUNT: spoils a good plan in every way; each must be refused, with a reason, and change nothing
 * - race FILE FILE MS: copies in threads while plans come and go
 * - busy FILE: loads that signal handlers and another thread ask for in the middle of one: refused, and the one goes on
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cpu/caches.h"
#include "dispatch/dispatch.h"
#include "planfile/planfile.h"
#include "wherry.h"

static const char *const features[] = {
#define X(id, name, leaf, subleaf, reg, bit, state) name,
    WHERRY_CPU_FEATURES(X)
#undef X
};

static _Noreturn void fail(const char *what, const char *detail)
{
    printf("failed: %s: %s\n", what, detail);
    exit(1);
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

static int command_read(int argc, char **argv)
{
    struct wherry_cpu cpu;
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    uint64_t last = wherry_cpu_last_level(&native, &cpu);
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (!value++)
            return 2;
        if (!strncmp(argv[i], "family=", 7))
            cpu.family = (uint32_t)atoi(value);
        else if (!strncmp(argv[i], "model=", 6))
            cpu.model = (uint32_t)atoi(value);
        else if (!strncmp(argv[i], "stepping=", 9))
            cpu.stepping = (uint32_t)atoi(value);
        else if (!strncmp(argv[i], "vendor=", 7))
            snprintf(cpu.vendor_name, sizeof cpu.vendor_name, "%s", value);
        else if (!strncmp(argv[i], "last=", 5))
            last = strtoull(value, NULL, 10) << 10;
        else
            for (int f = 0; f < WHERRY_CPU_FEATURE_COUNT; f++)
                if (!strcmp(value, features[f]))
                    cpu.features &= ~((uint64_t)1 << f);
    }
    struct wherry_planfile plan;
    struct wherry_line why;
    char reason[300];
    wherry_line_begin(&why, reason, sizeof reason);
    const int error = wherry_planfile_read(argv[0], &cpu, last, &plan, &why);
    if (error) {
        printf("%d %s\n", error, reason);
        return 0;
    }
    printf("0 %s %s", plan.name, wherry_isa_names[plan.isa]);
#define SHOW(field) printf(" %zu", plan.thresholds.field);
    WHERRY_THRESHOLDS(SHOW)
#undef SHOW
    puts("");
    return 0;
}

static int command_load(int argc, char **argv)
{
    printf("- %s\n", wherry_plan_status());
    for (int i = 0; i < argc; i++) {
        const int error = wherry_plan_load(strcmp(argv[i], "-") ? argv[i] : NULL);
        printf("%d %s | %s %zu\n", error, wherry_plan_status(), wherry_isa(), wherry_thresholds.copy_stream_from);
    }
    return 0;
}

/* ---- fuzz -------------------------------------------------------------------------------------------------------- */

enum { LARGEST = 16384, CRC_AT = 24 };
static int file;
static char path[64];
static struct wherry_thresholds thresholds_before;
static signed char choice_before;
static unsigned long refused, taken;

static uint64_t state;

static uint64_t dice(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* By the definition, a bit at a time: the library's own is by half bytes. */
static uint32_t crc_of(const uint8_t *bytes, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= i >= CRC_AT && i < CRC_AT + 4 ? 0 : bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void seal(uint8_t *bytes, size_t n)
{
    const uint32_t crc = crc_of(bytes, n);
    memcpy(bytes + CRC_AT, &crc, sizeof crc);
}

static int load(const uint8_t *bytes, size_t n)
{
    if (ftruncate(file, 0) || pwrite(file, bytes, n, 0) != (ssize_t)n)
        fail("writing", strerror(errno));
    return wherry_plan_load(path);
}

static bool unchanged(void)
{
    return wherry_choice == choice_before && !memcmp(&wherry_thresholds, &thresholds_before, sizeof thresholds_before);
}

static void must_refuse(const char *how, const uint8_t *bytes, size_t n)
{
    const int error = load(bytes, n);
    const char *status = wherry_plan_status();
    if (!error)
        fail(how, "was taken");
    if (error != EINVAL && error != EOPNOTSUPP && error != ENODEV)
        fail(how, strerror(error));
    if (!unchanged())
        fail(how, "changed what is in force");
    const char *reason = strstr(status, "was not used: ");
    if (!reason || strlen(reason) < 24 || strchr(status, '\n') || !strstr(status, path))
        fail(how, status);
    refused++;
}

static bool bounded(size_t from, size_t least) { return from == SIZE_MAX || (from >= least && from <= 1ull << 40); }

static bool recent_right(size_t from, size_t recent) { return from == SIZE_MAX ? recent == 0 : bounded(recent, from); }

/* A plan with a right checksum may be taken or not; what is taken must be sane, and what is not must change nothing. */
static void either(const uint8_t *bytes, size_t n)
{
    if (load(bytes, n)) {
        if (!unchanged() || !strstr(wherry_plan_status(), "was not used: "))
            fail("a sealed plan", wherry_plan_status());
        refused++;
        return;
    }
    const struct wherry_thresholds *t = &wherry_thresholds;
    const bool rep = t->copy_rep_from != SIZE_MAX;
    if (!bounded(t->copy_rep_from, 128) || !bounded(t->set_rep_from, 128) || !bounded(t->copy_stream_from, 65536) ||
        !bounded(t->set_stream_from, 65536) || t->copy_rep_slow_ahead > 4095 || t->copy_backward_ahead > 4095 ||
        !recent_right(t->copy_stream_from, t->copy_stream_recent_from) ||
        !recent_right(t->set_stream_from, t->set_stream_recent_from) || !bounded(t->copy_ymm_from, 1025) ||
        !bounded(t->copy_source_lines_to, 0) || !bounded(t->copy_parts_from, 0) ||
        (rep && t->copy_rep_to < t->copy_rep_from))
        fail("a sealed plan", "with absurd thresholds was taken");
    const struct wherry_thresholds complete = wherry_thresholds_complete(*t);
#define MADE(field)                                                                                                    \
    if (t->field != complete.field)                                                                                    \
        fail("a sealed plan", "left " #field " as it was");
    WHERRY_THRESHOLDS_MADE(MADE)
#undef MADE
    char from[5000], to[5000];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i * 7);
    memset(to, 0, sizeof to);
    wherry_memcpy(to, from, sizeof from);
    if (memcmp(from, to, sizeof from))
        fail("a sealed plan", "copies wrongly");
    taken++;
    wherry_plan_load(NULL);
}

static int command_fuzz(int argc, char **argv)
{
    uint8_t good[LARGEST], bytes[LARGEST];
    if (argc != 3)
        return 2;
    FILE *in = fopen(argv[0], "rb");
    if (!in)
        fail(argv[0], strerror(errno));
    const size_t n = fread(good, 1, sizeof good, in);
    fclose(in);
    state = strtoull(argv[1], NULL, 0) * 2 + 1;
    file = memfd_create("plan", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    wherry_plan_load(NULL);
    thresholds_before = wherry_thresholds;
    choice_before = wherry_choice;
    if (load(good, n))
        fail("the good plan", wherry_plan_status());
    wherry_plan_load(NULL);

    for (size_t cut = 0; cut < n; cut++)
        must_refuse("a truncation", good, cut);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(bytes, good, n);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        must_refuse("a bit flip", bytes, n);
    }
    memcpy(bytes, good, n);
    bytes[n] = 0;
    must_refuse("a byte too many", bytes, n + 1);
    const unsigned long count = strtoul(argv[2], NULL, 0);
    for (unsigned long i = 0; i < count; i++) {
        const size_t size = dice() % (2 * n);
        for (size_t at = 0; at < size; at++)
            bytes[at] = (uint8_t)dice();
        if (i % 2 && size >= 8)
            memcpy(bytes, good, 8); /* the magic, to get further */
        must_refuse("random bytes", bytes, size);
    }
    for (unsigned long i = 0; i < count; i++) {
        memcpy(bytes, good, n);
        const uint64_t how = dice();
        for (unsigned k = 0; k <= how % 3; k++) {
            const size_t at = 8 + dice() % (n - 8);
            if (how & 0x100)
                bytes[at] = (uint8_t)dice();
            else if (how & 0x200)
                bytes[at] ^= (uint8_t)(1 << dice() % 8);
            else
                memset(bytes + (at & ~(size_t)7), how & 0x400 ? 0xff : 0, 8);
        }
        seal(bytes, n);
        either(bytes, n);
    }
    printf("%lu refused, %lu taken\n", refused, taken);
    return 0;
}

/* ---- race -------------------------------------------------------------------------------------------------------- */

static atomic_bool over;
static atomic_ulong copies;

static void *copy_about(void *context)
{
    enum { MOST = 1 << 20 };
    const unsigned which = (unsigned)(uintptr_t)context;
    unsigned char *from = malloc(MOST + 64), *to = malloc(MOST + 64);
    uint64_t state = which + 12345;
    if (!from || !to)
        fail("race", "no memory");
    for (size_t i = 0; i < MOST + 64; i++)
        from[i] = (unsigned char)(i * 31 >> 3);
    while (!atomic_load(&over)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const size_t n = (state >> 33) >> (state >> 59 & 15) & (MOST - 1);
        unsigned char *dst = to + (state >> 20 & 63);
        wherry_memset(dst, 0x5a, n);
        if (n && (dst[0] != 0x5a || dst[n / 2] != 0x5a || dst[n - 1] != 0x5a))
            fail("race", "a wrong set");
        wherry_memcpy(dst, from + (state >> 10 & 63), n);
        if (memcmp(dst, from + (state >> 10 & 63), n))
            fail("race", "a wrong copy");
        atomic_fetch_add(&copies, 1);
    }
    return NULL;
}

static int command_race(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, copy_about, (void *)(uintptr_t)i);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    unsigned long loads = 0;
    do {
        if (wherry_plan_load(argv[loads % 2]))
            fail("race", wherry_plan_status());
        if (++loads % 5 == 0)
            wherry_plan_load(NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < atol(argv[2]));
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%lu loads, %lu copies\n", loads, atomic_load(&copies));
    return 0;
}

/* ---- busy -------------------------------------------------------------------------------------------------------- */

static atomic_ulong refused_inside, refused_beside;

static void load_inside(int signo)
{
    (void)signo;
    const int error = wherry_plan_load(NULL);
    if (error && error != EBUSY)
        fail("busy", "a handler's load");
    atomic_fetch_add(&refused_inside, error != 0);
}

static void *load_beside(void *path)
{
    while (!atomic_load(&over)) {
        const int error = wherry_plan_load(path);
        if (error && error != EBUSY)
            fail("busy", "a thread's load");
        atomic_fetch_add(&refused_beside, error != 0);
    }
    return NULL;
}

static int command_busy(int argc, char **argv)
{
    pthread_t beside;
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    if (argc != 1)
        return 2;
    signal(SIGALRM, load_inside);
    setitimer(ITIMER_REAL, &often, NULL);
    while (!atomic_load(&refused_inside))
        if (wherry_plan_load(argv[0]))
            fail("busy", wherry_plan_status());
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_create(&beside, NULL, load_beside, argv[0]);
    for (int error = 0; !error || !atomic_load(&refused_beside);) {
        error = wherry_plan_load(argv[0]);
        if (error && error != EBUSY)
            fail("busy", wherry_plan_status());
    }
    atomic_store(&over, true);
    pthread_join(beside, NULL);
    if (wherry_plan_load(argv[0]))
        fail("busy", "afterwards");
    puts(wherry_plan_status());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        int least;
    } commands[] = {{"read", command_read, 1},
                    {"load", command_load, 0},
                    {"fuzz", command_fuzz, 3},
                    {"race", command_race, 3},
                    {"busy", command_busy, 1}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].least)
            return commands[i].run(argc - 2, argv + 2);
    fputs("usage: planfile-test read|load|fuzz|race|busy ... (see its head)\n", stderr);
    return 2;
}
