#include "cpuinfo/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_word(int index, const char *name, char word[256])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fscanf(f, "%255s", word) == 1;
    fclose(f);
    return got;
}

static uint32_t read_number(int index, const char *name)
{
    char word[256];
    return read_word(index, name, word) ? (uint32_t)strtoul(word, NULL, 10) : 0;
}

static uint32_t count_cpus(int index)
{
    char word[256];
    uint32_t count = 0;
    if (!read_word(index, "shared_cpu_list", word))
        return 0;
    for (char *p = word; *p;) {
        unsigned long first = strtoul(p, &p, 10), last = *p == '-' ? strtoul(p + 1, &p, 10) : first;
        if (last < first || (*p && *p++ != ','))
            return 0;
        count += (uint32_t)(last - first + 1);
    }
    return count;
}

void sysfs_caches(struct wherry_caches *caches)
{
    for (int i = 0; i < 8; i++) {
        char type[256], size[256], *unit;
        if (!read_word(i, "type", type) || !read_word(i, "size", size))
            continue;
        uint32_t level = read_number(i, "level");
        bool code = !strcmp(type, "Instruction");
        if (level < 1 || level > 3 || (code && level != 1))
            continue;
        int at = level == 1 ? (code ? WHERRY_L1I : WHERRY_L1D) : level == 2 ? WHERRY_L2 : WHERRY_L3;
        uint64_t bytes = strtoull(size, &unit, 10);
        bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
        caches->of[WHERRY_CACHES_SYSFS][at] = (struct wherry_cache){.present = bytes != 0,
                                                                    .size = bytes,
                                                                    .line = read_number(i, "coherency_line_size"),
                                                                    .ways = read_number(i, "ways_of_associativity"),
                                                                    .shared = count_cpus(i)};
    }
}
