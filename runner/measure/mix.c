#include "mix.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { MIX_ENTRIES = 65536 };
static const uint64_t LARGEST = (uint64_t)1 << 30;
static char problem[512];

struct share {
    uint64_t size;
    double until; /* sum of the probabilities up to and with this one */
};

static const char *parse_range(const char *text, uint64_t least, uint64_t *low, uint64_t *high)
{
    char *end;
    errno = 0;
    *low = strtoull(text, &end, 10);
    bool good = end != text && *text >= '0' && *text <= '9' && *end == '-';
    if (good) {
        const char *second = end + 1;
        *high = strtoull(second, &end, 10);
        good = *second >= '0' && *second <= '9' && *end == '\0' && errno == 0;
    }
    if (good && *low >= least && *low <= *high && *high <= LARGEST)
        return NULL;
    snprintf(problem, sizeof problem, "mix=...%s: give LO-HI in bytes with %llu <= LO <= HI <= %llu", text,
             (unsigned long long)least, (unsigned long long)LARGEST);
    return problem;
}

/* Reads "size:probability,..." from the first line of the file; *count is 0 on failure. */
static struct share *read_shares(const char *path, size_t *count)
{
    *count = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(problem, sizeof problem, "mix=@%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    char *line = NULL;
    size_t room = 0;
    ssize_t length = getline(&line, &room, file);
    fclose(file);
    struct share *shares = length > 0 ? calloc(MIX_ENTRIES, sizeof *shares) : NULL;
    double sum = 0;
    const char *at = line;
    size_t found = 0;
    bool good = shares != NULL;
    while (good && *at && *at != '\n' && *at != '\r') {
        char *end;
        errno = 0;
        uint64_t size = strtoull(at, &end, 10);
        good = end != at && *at >= '0' && *at <= '9' && *end == ':' && errno == 0 && size <= LARGEST;
        if (!good)
            break;
        const char *number = end + 1;
        double probability = strtod(number, &end);
        good = end != number && isfinite(probability) && probability >= 0 && found < MIX_ENTRIES &&
               (*end == ',' || *end == '\n' || *end == '\r' || *end == '\0');
        if (!good)
            break;
        sum += probability;
        if (probability > 0)
            shares[found++] = (struct share){size, sum};
        at = *end == ',' ? end + 1 : end;
    }
    free(line);
    if (!good || found == 0) {
        snprintf(
            problem, sizeof problem,
            "mix=@%s: its first line must be size:probability,... (sizes to %llu bytes, at most %d of them), as in "
            "8:0.5,64:0.5",
            path, (unsigned long long)LARGEST, MIX_ENTRIES);
        free(shares);
        return NULL;
    }
    *count = found;
    return shares;
}

static uint64_t draw(const struct share *shares, size_t count, uint64_t *state)
{
    double at = random_unit(state) * shares[count - 1].until;
    size_t low = 0, high = count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (shares[middle].until > at)
            high = middle;
        else
            low = middle + 1;
    }
    return shares[low].size;
}

const char *mix_draw(const char *spec, uint64_t *sizes, size_t count, uint64_t seed)
{
    uint64_t low, high;
    if (strncmp(spec, "uniform:", 8) == 0) {
        const char *wrong = parse_range(spec + 8, 0, &low, &high);
        for (size_t i = 0; !wrong && i < count; i++)
            sizes[i] = low + random_below(&seed, high - low + 1);
        return wrong;
    }
    if (strncmp(spec, "log:", 4) == 0) {
        const char *wrong = parse_range(spec + 4, 1, &low, &high);
        for (size_t i = 0; !wrong && i < count; i++) {
            /* Every octave is as likely as every other; HI + 1 so that HI itself has its share. */
            double size = (double)low * exp(random_unit(&seed) * log((double)(high + 1) / (double)low));
            sizes[i] = (uint64_t)size > high ? high : (uint64_t)size;
        }
        return wrong;
    }
    if (spec[0] == '@') {
        size_t entries;
        struct share *shares = read_shares(spec + 1, &entries);
        if (!shares)
            return problem;
        for (size_t i = 0; i < count; i++)
            sizes[i] = draw(shares, entries, &seed);
        free(shares);
        return NULL;
    }
    snprintf(problem, sizeof problem, "mix=%s: give uniform:LO-HI, log:LO-HI or @FILE", spec);
    return problem;
}
