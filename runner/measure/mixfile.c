#include "mixfile.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 65536, MOST_BYTES = 4 << 20 };
static char problem[512];

static bool is_size(uint64_t value) { return value <= MIX_LARGEST; }
static bool is_overlap(uint64_t value) { return value <= 1; }
static bool is_alignment(uint64_t value) { return value >= 1 && value <= 64 && (value & (value - 1)) == 0; }

static const struct {
    bool (*allows)(uint64_t value);
    const char *form;
} lines[] = {
    {is_size, "size:probability,... (sizes to 1073741824 bytes, at most 65536 of them), as in 8:0.5,64:0.5"},
    {is_overlap, "0:probability,1:probability (1: both sides overlap), as in 0:0.99,1:0.01"},
    {is_alignment, "alignment:probability,... (alignments 1, 2, 4, 8, 16, 32 and 64 bytes), as in 1:0.3,64:0.7"},
};
enum { LINES = sizeof lines / sizeof lines[0] };

/* Takes a line without its end. False when it has another form, or nothing in it is possible. */
static bool parse_line(struct shares *shares, const char *at, bool (*allows)(uint64_t value))
{
    double sum = 0;
    size_t room = 1;
    for (const char *comma = at; (comma = strchr(comma, ',')); comma++)
        room += comma[1] != '\0';
    if (room > MOST_ENTRIES || !(shares->of = calloc(room, sizeof *shares->of)))
        return false;
    while (*at) {
        char *end;
        errno = 0;
        uint64_t value = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || *end != ':' || errno || !allows(value))
            return false;
        const char *number = end + 1;
        double probability = strtod(number, &end);
        if (end == number || !isfinite(probability) || probability < 0 || (*end && *end != ','))
            return false;
        sum += probability;
        if (probability > 0)
            shares->of[shares->count++] = (struct share){value, sum};
        at = *end ? end + 1 : end;
    }
    return shares->count > 0;
}

/* The whole file as a string; NULL when it cannot be read, is longer than a mix may be, or holds a NUL. */
static char *contents(const char *path)
{
    FILE *stream = fopen(path, "re");
    char *text = malloc(MOST_BYTES + 1);
    size_t length = 0;
    errno = text ? errno : ENOMEM;
    bool good = stream && text;
    if (good) {
        errno = 0;
        length = fread(text, 1, MOST_BYTES + 1, stream);
        good = !ferror(stream);
    }
    if (!good)
        snprintf(problem, sizeof problem, "mix=@%s: cannot be read: %s", path, strerror(errno));
    else if (length > MOST_BYTES)
        snprintf(problem, sizeof problem, "mix=@%s: is longer than %d MiB; a mix is three lines of text", path,
                 MOST_BYTES >> 20);
    else if (memchr(text, '\0', length))
        snprintf(problem, sizeof problem, "mix=@%s: is no text; a mix is three lines of text", path);
    if (stream)
        fclose(stream);
    if (problem[0]) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

const char *mixfile_read(struct mixfile *file, const char *path)
{
    struct shares *const all[LINES] = {&file->sizes, &file->overlaps, &file->alignments};
    memset(file, 0, sizeof *file);
    problem[0] = '\0';
    char *text = contents(path), *next = text;
    for (size_t number = 0; next && !problem[0]; number++) {
        char *line = strsep(&next, "\n");
        for (size_t length = strlen(line); length > 0 && line[length - 1] == '\r'; length--)
            line[length - 1] = '\0';
        if (number >= LINES && *line)
            snprintf(problem, sizeof problem, "mix=@%s: has more than three lines (sizes, overlap, alignments)", path);
        /* A line may be left empty, but not the sizes. */
        else if (number < LINES && (*line || number == 0) && !parse_line(all[number], line, lines[number].allows))
            snprintf(problem, sizeof problem, "mix=@%s: line %zu must be %s", path, number + 1, lines[number].form);
    }
    free(text);
    return problem[0] ? problem : NULL;
}

void mixfile_free(struct mixfile *file)
{
    free(file->sizes.of);
    free(file->overlaps.of);
    free(file->alignments.of);
    memset(file, 0, sizeof *file);
}
