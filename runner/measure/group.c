#include "group.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* The files of both versions of the interface. */
static const struct version {
    const char *controller; /* between the colons of a line; "" is version 2 */
    const char *below;      /* of the root, where its groups are */
    const char *limit, *used, *active, *inactive;
} versions[] = {
    {"", "", "memory.max", "memory.current", "active_file", "inactive_file"},
    {"memory", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"},
};

static FILE *open_in(const char *directory, const char *name)
{
    char path[PATH_ROOM];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* The number in a file, `otherwise` where there is none: "max" is no limit. */
static size_t number_in(const char *directory, const char *name, size_t otherwise)
{
    FILE *file = open_in(directory, name);
    unsigned long long value;
    const bool known = file && fscanf(file, "%llu", &value) == 1;
    if (file)
        fclose(file);
    return known ? (size_t)value : otherwise;
}

/* Pages of files, which the kernel gives up before it kills. */
static size_t files_in(const char *directory, const struct version *version)
{
    FILE *file = open_in(directory, "memory.stat");
    char key[64];
    unsigned long long value;
    size_t sum = 0;
    while (file && fscanf(file, "%63s %llu", key, &value) == 2)
        if (strcmp(key, version->active) == 0 || strcmp(key, version->inactive) == 0)
            sum += (size_t)value;
    if (file)
        fclose(file);
    return sum;
}

static size_t left_in(const char *directory, const struct version *version)
{
    const size_t limit = number_in(directory, version->limit, SIZE_MAX);
    if (limit == SIZE_MAX)
        return SIZE_MAX;
    const size_t used = number_in(directory, version->used, 0), files = files_in(directory, version);
    const size_t held = used > files ? used - files : 0;
    return limit > held ? limit - held : 0;
}

/* Limits hold for all that lies below: the least from the group up to the root. */
static size_t left_up_from(const char *root, const char *path, const struct version *version)
{
    char directory[PATH_ROOM];
    size_t least = SIZE_MAX;
    const int top = snprintf(directory, sizeof directory, "%s%s", root, version->below);
    if (top < 0 || (size_t)top + strlen(path) >= sizeof directory)
        return SIZE_MAX;
    strcat(directory, path);
    for (;;) {
        const size_t left = left_in(directory, version);
        least = left < least ? left : least;
        char *last = strrchr(directory + top, '/');
        if (!last)
            return least;
        *last = '\0';
    }
}

size_t group_memory_left(const char *root, const char *groups)
{
    char text[PATH_ROOM];
    size_t least = SIZE_MAX;
    snprintf(text, sizeof text, "%s", groups);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        const char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");
        if (!number || !controllers || !line)
            continue;
        for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
            if (strcmp(controllers, versions[i].controller) == 0) {
                const size_t left = left_up_from(root, line, &versions[i]);
                least = left < least ? left : least;
            }
    }
    return least;
}
