#include "pages.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t pages_bytes(size_t bytes, bool huge) { return up(bytes, huge ? HUGE_PAGE_BYTES : PAGE_BYTES); }

char *pages_map(size_t bytes, bool huge)
{
    bytes = pages_bytes(bytes, huge);
    char *whole = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return NULL;
    char *base = (char *)up((size_t)whole, HUGE_PAGE_BYTES);
    if (base > whole)
        munmap(whole, (size_t)(base - whole));
    if (whole + HUGE_PAGE_BYTES > base)
        munmap(base + bytes, (size_t)(whole + HUGE_PAGE_BYTES - base));
    madvise(base, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return base;
}

size_t pages_huge(const void *from, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)from, end = begin + bytes;
    FILE *file = fopen("/proc/self/smaps", "re");
    if (!file)
        return 0;
    char line[512];
    bool inside = false;
    size_t kib = 0, found = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = low < end && high > begin;
        else if (inside && sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
            found += kib * 1024;
    }
    fclose(file);
    return found;
}
