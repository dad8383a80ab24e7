#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mixfile.h"

enum { MOST_CALLS = 1 << 20, LINE_ROOM = 128 };
static const char first_line[] = "calls";
static char problem[512];

bool calls_is_file(const char *path)
{
    char line[LINE_ROOM] = "";
    FILE *stream = fopen(path, "re");
    bool is = stream && fgets(line, sizeof line, stream);
    line[strcspn(line, "\r\n")] = '\0';
    is = is && strcmp(line, first_line) == 0;
    if (stream)
        fclose(stream);
    return is;
}

struct call {
    uint32_t size;
    uint16_t src, delta;
    int32_t distance;
    bool meets, begins;
};

static bool number(const char **at, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    const char c = **at;
    if (!(c >= '0' && c <= '9') && c != '-')
        return false;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    if (end == *at || errno || *value < low || *value > high || (*end && *end != ' '))
        return false;
    *at = *end ? end + 1 : end;
    return true;
}

/* SIZE SRC DELTA [DISTANCE] */
static bool parse(const char *at, struct call *call)
{
    int64_t size, src, delta, distance = 0;
    if (!number(&at, 0, (int64_t)MIX_LARGEST, &size) || !number(&at, 0, 63, &src) || !number(&at, 0, IN_PAGE, &delta))
        return false;
    const bool meets = *at != '\0';
    if (meets && (!number(&at, -size, size, &distance) || *at || llabs(distance) >= (size ? size : 1)))
        return false;
    *call = (struct call){(uint32_t)size, (uint16_t)src, (uint16_t)delta, (int32_t)distance, meets, false};
    return true;
}

/* All calls of the file, to be freed; NULL: `problem` tells. */
static struct call *read_all(const char *path, size_t *count)
{
    char line[LINE_ROOM];
    struct call *calls = NULL;
    size_t room = 0, at = 1;
    bool begins = true;
    FILE *stream = fopen(path, "re");
    *count = 0;
    problem[0] = '\0';
    if (!stream || !fgets(line, sizeof line, stream))
        snprintf(problem, sizeof problem, "mix=@%s: cannot be read: %s", path, strerror(errno));
    while (!problem[0] && fgets(line, sizeof line, stream)) {
        at++;
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "-") == 0) {
            begins = true;
            continue;
        }
        if (*count == room) {
            room = room ? 2 * room : 4096;
            struct call *more = room <= MOST_CALLS ? realloc(calls, room * sizeof *calls) : NULL;
            if (!more) {
                snprintf(problem, sizeof problem, "mix=@%s: holds more than %d calls", path, MOST_CALLS);
                break;
            }
            calls = more;
        }
        if (!parse(line, &calls[*count])) {
            snprintf(problem, sizeof problem,
                     "mix=@%s: line %zu must be SIZE SRC DELTA [DISTANCE] (sizes to %llu bytes, SRC to 63, DELTA to "
                     "4095, the DISTANCE of sides that overlap below SIZE) or -",
                     path, at, (unsigned long long)MIX_LARGEST);
            break;
        }
        calls[(*count)++].begins = begins;
        begins = false;
    }
    if (!problem[0] && *count == 0)
        snprintf(problem, sizeof problem, "mix=@%s: holds no calls", path);
    if (stream)
        fclose(stream);
    if (problem[0]) {
        free(calls);
        return NULL;
    }
    return calls;
}

static struct placed placed_of(const struct call *call, const struct mix *mix)
{
    struct placed placed = {.size = call->size, .src = call->src, .dst = call->delta, .meets = IN_PAGE};
    if (!mix->sources) {
        placed.src = 0;
        placed.meets = 0;
        placed.dst = (int32_t)(call->delta & 63);
    } else if (call->meets && mix->may_meet) {
        placed.meets = -1;
        placed.dst = call->distance;
    }
    return placed;
}

const char *calls_read(const char *path, struct mix *mix)
{
    size_t count;
    struct call *calls = read_all(path, &count);
    if (!calls)
        return problem;
    mix->placed = calloc(mix->count, sizeof *mix->placed);
    mix->runs = calloc(mix->count + 1, sizeof *mix->runs);
    mix->run_count = 0;
    if (!mix->placed || !mix->runs) {
        free(calls);
        return "out of memory";
    }
    for (size_t i = 0; i < mix->count; i++) {
        const struct call *call = &calls[i % count];
        mix->sizes[i] = call->size;
        mix->placed[i] = placed_of(call, mix);
        if (call->begins || i == 0)
            mix->runs[mix->run_count++] = (uint32_t)i;
    }
    mix->runs[mix->run_count] = (uint32_t)mix->count;
    free(calls);
    return NULL;
}
