#include "mix.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "mixfile.h"
#include "random.h"

enum { LINE = 64 };
static char problem[512];

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
    if (good && *low >= least && *low <= *high && *high <= MIX_LARGEST)
        return NULL;
    snprintf(problem, sizeof problem, "mix=...%s: give LO-HI in bytes with %llu <= LO <= HI <= %llu", text,
             (unsigned long long)least, (unsigned long long)MIX_LARGEST);
    return problem;
}

static uint64_t draw(const struct shares *shares, uint64_t *state)
{
    double at = random_unit(state) * shares->of[shares->count - 1].until;
    size_t low = 0, high = shares->count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (shares->of[middle].until > at)
            high = middle;
        else
            low = middle + 1;
    }
    return shares->of[low].value;
}

/* Bytes past a line's beginning: a multiple of the alignment drawn, and of no greater power of two. */
static size_t draw_offset(const struct shares *alignments, uint64_t *state)
{
    size_t alignment = alignments->count ? (size_t)draw(alignments, state) : LINE;
    if (alignment == LINE)
        return 0;
    return alignment * (1 + 2 * (size_t)random_below(state, LINE / alignment / 2));
}

/* A generator of its own for what sizes do not depend on: the sizes stay the same with and without alignments. */
static const char *place(const struct mixfile *file, struct mix *mix, uint64_t seed)
{
    uint64_t state = seed ^ 0x706c616365u;
    mix->placed = calloc(mix->count, sizeof *mix->placed);
    if (!mix->placed)
        return "out of memory";
    for (size_t i = 0; i < mix->count; i++) {
        uint32_t size = (uint32_t)mix->sizes[i];
        struct placed *call = &mix->placed[i];
        call->size = size;
        call->src = mix->sources ? (uint16_t)draw_offset(&file->alignments, &state) : 0;
        call->dst = (int32_t)draw_offset(&file->alignments, &state);
        bool meets = mix->may_meet && file->overlaps.count && draw(&file->overlaps, &state) == 1;
        if (meets && size) {
            call->meets = -1;
            call->dst = (int32_t)random_below(&state, 2 * (uint64_t)size - 1) - (int32_t)(size - 1);
        }
    }
    return NULL;
}

const char *mix_draw(const char *spec, struct mix *mix, uint64_t seed)
{
    uint64_t low, high;
    mix->placed = NULL;
    mix->runs = NULL;
    if (strncmp(spec, "uniform:", 8) == 0) {
        const char *wrong = parse_range(spec + 8, 0, &low, &high);
        for (size_t i = 0; !wrong && i < mix->count; i++)
            mix->sizes[i] = low + random_below(&seed, high - low + 1);
        return wrong;
    }
    if (strncmp(spec, "log:", 4) == 0) {
        const char *wrong = parse_range(spec + 4, 1, &low, &high);
        for (size_t i = 0; !wrong && i < mix->count; i++) {
            /* Every octave is as likely as every other; HI + 1 so that HI itself has its share. */
            double size = (double)low * exp(random_unit(&seed) * log((double)(high + 1) / (double)low));
            mix->sizes[i] = (uint64_t)size > high ? high : (uint64_t)size;
        }
        return wrong;
    }
    if (spec[0] == '@') {
        if (calls_is_file(spec + 1))
            return calls_read(spec + 1, mix);
        struct mixfile file;
        const char *wrong = mixfile_read(&file, spec + 1);
        for (size_t i = 0; !wrong && i < mix->count; i++)
            mix->sizes[i] = draw(&file.sizes, &seed);
        if (!wrong && (file.alignments.count || (mix->may_meet && file.overlaps.count)))
            wrong = place(&file, mix, seed);
        mixfile_free(&file);
        return wrong;
    }
    snprintf(problem, sizeof problem, "mix=%s: give uniform:LO-HI, log:LO-HI or @FILE", spec);
    return problem;
}
