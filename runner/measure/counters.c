#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct counter_set sets[] = {
    {"hardware",
     {{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
      {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
      {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
      {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}}},
    {"software",
     {{"task_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
      {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
      {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS}}},
    {"none", {{NULL, 0, 0}}},
};

/* As the kernel writes a group: how many, two times, then a value and its id for each. */
struct group {
    uint64_t count, enabled, running;
    struct {
        uint64_t value, id;
    } events[COUNTERS];
};

enum { ENABLED = COUNTERS, RUNNING = COUNTERS + 1 }; /* in begun, behind the counts */

const struct counter_set *counters_find(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (strcmp(name, sets[i].name) == 0)
            return &sets[i];
    return NULL;
}

static int paranoid(void)
{
    int level = -2;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    if (file && fscanf(file, "%d", &level) != 1)
        level = -2;
    if (file)
        fclose(file);
    return level;
}

void counters_explain(char *text, unsigned long room, const char *what, int error, int level)
{
    if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
        snprintf(text, room, "%s: this processor, or the hypervisor before it, offers no such counter", what);
    else if (error == ENOSYS)
        snprintf(text, room, "%s: this kernel is built without perf events", what);
    else if ((error == EACCES || error == EPERM) && level > 2)
        snprintf(text, room,
                 "%s: kernel.perf_event_paranoid is %d; sysctl kernel.perf_event_paranoid=2 (as root) allows them",
                 what, level);
    else if (error == EACCES || error == EPERM)
        snprintf(text, room,
                 "%s: not allowed here; a container's seccomp profile or a security module forbids "
                 "perf_event_open",
                 what);
    else
        snprintf(text, room, "%s: %s", what, strerror(error));
}

static int open_event(uint32_t type, uint64_t config, int leader)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = type,
        .config = config,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format =
            PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

bool counters_open(struct counters *counters, const struct counter_set *set)
{
    *counters = (struct counters){.set = set, .leader = -1};
    for (int i = 0; i < COUNTERS; i++)
        counters->files[i] = -1;
    for (int i = 0; i < COUNTERS && set->events[i].name; i++) {
        int leader = counters->leader < 0 ? -1 : counters->files[counters->leader];
        int file = open_event(set->events[i].type, set->events[i].config, leader);
        if (file >= 0 && ioctl(file, PERF_EVENT_IOC_ID, &counters->ids[i]) != 0) {
            close(file);
            file = -1;
        }
        int refused = errno;
        if (file < 0 && !counters->reason[0])
            counters_explain(counters->reason, sizeof counters->reason, set->events[i].name, refused, paranoid());
        if (file >= 0 && counters->leader < 0)
            counters->leader = i;
        counters->files[i] = file;
    }
    counters->thread = counters->leader < 0 ? 0 : (pid_t)syscall(SYS_gettid);
    return counters->leader >= 0;
}

void counters_close(struct counters *counters)
{
    for (int i = COUNTERS - 1; i >= 0 && counters->thread; i--)
        if (counters->files[i] >= 0)
            close(counters->files[i]);
    counters->thread = 0;
}

void counters_follow(struct counters *counters)
{
    if (!counters->thread || counters->thread == (pid_t)syscall(SYS_gettid))
        return;
    counters_close(counters);
    counters_open(counters, counters->set);
}

/* The group as it stands: counts in the set's order, then the times. */
static bool read_group(const struct counters *counters, uint64_t *values)
{
    struct group group = {0};
    if (!counters->thread || read(counters->files[counters->leader], &group, sizeof group) < (ssize_t)sizeof(uint64_t))
        return false;
    for (int i = 0; i < COUNTERS; i++)
        for (uint64_t k = 0; counters->files[i] >= 0 && k < group.count && k < COUNTERS; k++)
            if (group.events[k].id == counters->ids[i])
                values[i] = group.events[k].value;
    values[ENABLED] = group.enabled;
    values[RUNNING] = group.running;
    return true;
}

void counters_begin(struct counters *counters)
{
    if (!read_group(counters, counters->begun))
        counters->begun[ENABLED] = UINT64_MAX;
}

void counters_end(struct counters *counters, double *counts)
{
    uint64_t now[COUNTERS + 2] = {0};
    bool whole = read_group(counters, now) && counters->begun[ENABLED] != UINT64_MAX;
    uint64_t enabled = now[ENABLED] - counters->begun[ENABLED], running = now[RUNNING] - counters->begun[RUNNING];
    whole = whole && running > 0 && running + running / 100 >= enabled;
    for (int i = 0; i < COUNTERS; i++)
        counts[i] += whole && counters->files[i] >= 0 ? (double)(now[i] - counters->begun[i]) : NAN;
}
