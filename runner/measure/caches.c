#include "caches.h"

#include <stdio.h>

#include "cpu/caches.h"
#include "cpuinfo/sysfs.h"
#include "group.h"

static size_t within(uint64_t reported, size_t low, size_t high, size_t otherwise)
{
    if (reported == 0)
        return otherwise;
    size_t bytes = (size_t)reported;
    return bytes < low ? low : bytes > high ? high : bytes;
}

struct caches caches_believable(void)
{
    const size_t kib = 1024, mib = 1024 * kib;
    struct wherry_cpu cpu;
    struct wherry_caches told = {0};
    const struct wherry_cpu_source source = wherry_cpu_native();
    wherry_cpu_decode(&source, &cpu);
    wherry_cpu_read_caches(&source, &told);
    sysfs_caches(&told);
    const struct wherry_believed believed = wherry_cpu_believe(cpu.vendor, &told);
    struct caches caches = {
        .l1d = within(believed.size[WHERRY_L1D], 16 * kib, 128 * kib, 32 * kib),
        .l2 = within(believed.size[WHERRY_L2], 128 * kib, 4 * mib, 512 * kib),
        /* A CPU without an L3 is rare, and a wrong guess only makes a pool smaller. */
        .l3 = within(believed.size[WHERRY_L3], 2 * mib, 64 * mib, 8 * mib),
    };
    return caches;
}

static size_t left_by_groups(void)
{
    char groups[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    const size_t length = file ? fread(groups, 1, sizeof groups - 1, file) : 0;
    if (file)
        fclose(file);
    groups[length] = '\0';
    return group_memory_left("/sys/fs/cgroup", groups);
}

size_t memory_available(void)
{
    size_t kib = 1024 * 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    const size_t left = left_by_groups();
    return left < kib * 1024 ? left : kib * 1024;
}
