#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ghz.h"
#include "json.h"
#include "last_words.h"
#include "wherry.h"

const char *const disturbance_names[DISTURBANCE_COUNT] = {"none", "migrated", "descheduled", "steal", "contended"};

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double clock_cost_ns(void)
{
    enum { READINGS = 2000, TRIES = 5 };
    double least = 1e9;
    for (int try = 0; try < TRIES; try++) { /* the least: an interrupt only adds */
        uint64_t begin = clock_ns(), end = begin;
        for (int i = 0; i < READINGS; i++)
            end = clock_ns();
        double cost = (double)(end - begin) / READINGS;
        least = cost < least ? cost : least;
    }
    return least;
}

uint64_t clock_step_ns(void)
{
    enum { STEPS = 10, READINGS = 1 << 22 };
    static uint64_t known;
    uint64_t last = clock_ns(), shortest = 0;
    bool again = false; /* two readings were the same */
    for (int steps = 0, i = 0; !known && steps < STEPS && i < READINGS; i++) {
        const uint64_t now = clock_ns();
        if (now == last) {
            again = true;
            continue;
        }
        const uint64_t step = now - last;
        last = now;
        shortest = !shortest || step < shortest ? step : shortest;
        steps++;
    }
    if (!known) /* between readings that all differ lies what one takes, and not a step */
        known = again ? shortest : 1;
    return known;
}

const char *clock_unfit(void)
{
    enum { MOST_NS = 4000 };
    static char reason[200];
    const uint64_t step = clock_step_ns();
    if (step == 0)
        return "the clock (CLOCK_MONOTONIC) stands still; nothing can be timed by it";
    if (step <= MOST_NS)
        return NULL;
    snprintf(reason, sizeof reason,
             "the clock (CLOCK_MONOTONIC) goes in steps of %.0f us, too coarse for samples of tenths of a millisecond; "
             "see /sys/devices/system/clocksource/clocksource0/current_clocksource",
             (double)step / 1000);
    return reason;
}

void host_put_start(const struct host *host, uint64_t seed)
{
    json_begin("start");
    json_string("version", wherry_version());
    json_int("pid", getpid());
    json_uint("cpu", host->cpu);
    json_uint("cpus", host->cpu_count);
    json_string("clock", "CLOCK_MONOTONIC");
    json_double("clock_ns", clock_cost_ns());
    json_double("ghz", clock_ghz());
    json_uint("seed", seed);
}

bool thread_pin(unsigned cpu)
{
    cpu_set_t *set = CPU_ALLOC(HOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(HOST_CPUS);
    if (!set)
        return false;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    bool done = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return done;
}

static long topology(unsigned cpu, const char *name)
{
    char path[96];
    long number = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &number) != 1)
        number = -1;
    if (file)
        fclose(file);
    return number;
}

bool cpus_share_core(unsigned cpu, unsigned other)
{
    const long core = topology(cpu, "core_id"), package = topology(cpu, "physical_package_id");
    return core >= 0 && core == topology(other, "core_id") && package == topology(other, "physical_package_id");
}

static void list_cpus(struct host *host, unsigned first)
{
    cpu_set_t *set = CPU_ALLOC(HOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(HOST_CPUS);
    bool first_allowed = false;
    host->cpu_count = 0;
    if (set && sched_getaffinity(0, bytes, set) == 0)
        for (unsigned cpu = 0; cpu < HOST_CPUS; cpu++)
            if (CPU_ISSET_S(cpu, bytes, set)) {
                first_allowed = first_allowed || cpu == first;
                host->cpus[host->cpu_count++] = cpu;
            }
    CPU_FREE(set);
    for (unsigned i = 0; first_allowed && i < host->cpu_count; i++)
        if (host->cpus[i] == first) {
            memmove(host->cpus + 1, host->cpus, i * sizeof host->cpus[0]);
            host->cpus[0] = first;
        }
}

const char *host_pin(struct host *host, const char *pin)
{
    static char problem[256];
    int current = sched_getcpu();
    unsigned long cpu = current < 0 ? 0 : (unsigned long)current;
    if (pin) {
        char *end;
        cpu = strtoul(pin, &end, 10);
        if (!(*pin >= '0' && *pin <= '9') || *end) {
            snprintf(problem, sizeof problem, "--pin %s: give the number of a CPU", pin);
            return problem;
        }
    }
    if (cpu < HOST_CPUS)
        list_cpus(host, (unsigned)cpu);
    const bool allowed = cpu < HOST_CPUS && host->cpu_count > 0 && host->cpus[0] == cpu;
    errno = 0;
    if (allowed && !thread_pin((unsigned)cpu)) {
        snprintf(problem, sizeof problem,
                 "cannot pin itself to CPU %lu, as measuring needs: sched_setaffinity: %s; a sandbox that refuses it "
                 "has to allow it",
                 cpu, strerror(errno));
        return problem;
    }
    if (!allowed) {
        int at = snprintf(problem, sizeof problem, "--pin %lu: this process may not use such a CPU; it may use", cpu);
        if (cpu >= HOST_CPUS)
            list_cpus(host, HOST_CPUS);
        for (unsigned i = 0; i < host->cpu_count && at < (int)sizeof problem - 16; i++)
            at += snprintf(problem + at, sizeof problem - (size_t)at, " %u", host->cpus[i]);
        return problem;
    }
    host->cpu = (unsigned)cpu;
    return NULL;
}

/* The eighth number after "cpuN" is the time the hypervisor gave to somebody else. */
static uint64_t steal_of(unsigned cpu)
{
    static _Thread_local char text[1 << 16];
    int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char name[24];
    snprintf(name, sizeof name, "\ncpu%u ", cpu);
    const char *line = strstr(text, name);
    unsigned long long steal = 0;
    if (line)
        sscanf(line + strlen(name), "%*u %*u %*u %*u %*u %*u %*u %llu", &steal);
    return steal;
}

void watch_read(struct watch *watch, unsigned cpu)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    int current = sched_getcpu();
    *watch = (struct watch){
        .cpu = current < 0 ? cpu : (unsigned)current, .switches = usage.ru_nivcsw, .steal = steal_of(cpu)};
}

enum disturbance watch_compare(const struct watch *before, const struct watch *after)
{
    if (before->cpu != after->cpu)
        return MIGRATED;
    if (after->steal > before->steal)
        return STOLEN;
    return after->switches > before->switches ? DESCHEDULED : UNDISTURBED;
}

volatile int host_interrupted;

static void on_interrupt(int signo)
{
    host_interrupted = signo;
    last_words_over(); /* a second one may end the process anywhere */
}

void host_catch_signals(void)
{
    /* Without SA_RESTART a read of standard input ends; a second signal of the kind ends the process. */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void host_die_of_signal(void)
{
    fflush(stdout);
    signal(host_interrupted, SIG_DFL);
    raise(host_interrupted);
}

const char *host_row(bool *endless)
{
    static char line[1 << 20];
    char *last = &line[sizeof line - 2];
    *last = '\n'; /* stays, or is the end of a line that just fits */
    *endless = false;
    if (!fgets(line, sizeof line, stdin))
        return NULL;
    *endless = *last != '\n';
    return *endless ? NULL : line;
}
