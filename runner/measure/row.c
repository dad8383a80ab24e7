#include "row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "contradictions.h"
#include "host.h"
#include "mix.h"
#include "random.h"

enum { LINE = 64 };
const char *const state_names[STATE_COUNT] = {"L1", "L2", "L3", "DRAM"};

/* Behind the modes of the loops the percentiles of calls that are timed one by one. */
enum { MODE_NAMES = MODE_COUNT + 5 };
static const char *const mode_names[MODE_NAMES] = {"throughput", "latency", "fresh", "p50",
                                                   "p90",        "p99",     "p99.9", "p99.99"};

const char *const side_names[SIDES_COUNT] = {"none", "source", "destination", "both"};

static char problem[1024];

void row_init(struct row *row)
{
    *row = (struct row){
        .table = 65536, .delta = -1, .handed_by = -1, .buffer = 4194304, .threads = 1, .rounds = 15, .batch_us = 200};
}

static bool parse_int(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    if (!(*text >= '0' && *text <= '9') && *text != '-') /* strtoll would also take spaces and a plus */
        return false;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno || parsed < low || parsed > high)
        return false;
    *value = parsed;
    return true;
}

static int choice(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

enum key {
    KEY_id,
    KEY_op,
    KEY_routines,
    KEY_size,
    KEY_mix,
    KEY_table,
    KEY_src_off,
    KEY_dst_off,
    KEY_delta,
    KEY_walk,
    KEY_buffer,
    KEY_src_state,
    KEY_dst_state,
    KEY_content,
    KEY_places,
    KEY_ascending,
    KEY_handed,
    KEY_handed_by,
    KEY_code,
    KEY_overlap,
    KEY_mode,
    KEY_threads,
    KEY_huge,
    KEY_rounds,
    KEY_batch_us,
    KEY_calls,
    KEY_aa,
    KEY_COUNT
};

static const int64_t LARGEST = (int64_t)1 << 46;

/* Names, least and greatest of the keys that are numbers; the words allowed of those that are not. */
static const struct {
    const char *name;
    int64_t low, high;
    const char *words;
} keys[KEY_COUNT] = {
    [KEY_id] = {"id", INT64_MIN, INT64_MAX, NULL},
    [KEY_op] = {"op", 0, 0, "copy, move, set, zero, csum, copy_csum, crc32c, copy_crc32c, iszero or pagezero"},
    [KEY_routines] = {"routines", 0, 0, "names with commas between them, each once, at most 64"},
    [KEY_size] = {"size", 0, LARGEST, NULL},
    [KEY_mix] = {"mix", 0, 0, ""},
    [KEY_table] = {"table", 1, 1 << 24, NULL},
    [KEY_src_off] = {"src_off", 0, 4095, NULL},
    [KEY_dst_off] = {"dst_off", 0, 4095, NULL},
    [KEY_delta] = {"delta", 0, 4095, "any, or 0 to 4095"},
    [KEY_walk] = {"walk", 0, 0, "pool or stream"},
    [KEY_buffer] = {"buffer", 1, LARGEST, NULL},
    [KEY_src_state] = {"src_state", 0, 0, "L1, L2, L3 or DRAM"},
    [KEY_dst_state] = {"dst_state", 0, 0, "L1, L2, L3 or DRAM"},
    [KEY_content] = {"content", 0, 0, "any, dirty, zero, mixed or new"},
    [KEY_places] = {"places", 0, 0, "repeat or change"},
    [KEY_ascending] = {"ascending", 0, 0, "none, source, destination or both"},
    [KEY_handed] = {"handed", 0, 0, "none, source, destination or both"},
    [KEY_handed_by] = {"handed_by", 0, HOST_CPUS - 1, NULL},
    [KEY_code] = {"code", 0, 0, "warm or cold"},
    [KEY_overlap] = {"overlap", -LARGEST, LARGEST, NULL},
    [KEY_mode] = {"mode", 0, 0, "throughput, latency, fresh, p50, p90, p99, p99.9 or p99.99"},
    [KEY_threads] = {"threads", 1, 0, NULL},
    [KEY_huge] = {"huge", 0, 1, NULL},
    [KEY_rounds] = {"rounds", 1, ROW_ROUNDS, NULL},
    [KEY_batch_us] = {"batch_us", 1, 1000000, NULL},
    [KEY_calls] = {"calls", 0, (int64_t)1 << 40, NULL},
    [KEY_aa] = {"aa", 0, 0, "one of the row's routines"},
};

static const char *bad_value(enum key key, const char *value, int64_t high)
{
    int at = snprintf(problem, sizeof problem, "%s=%.200s: give ", keys[key].name, value);
    if (keys[key].words)
        snprintf(problem + at, sizeof problem - (size_t)at, "%s", keys[key].words);
    else if (key == KEY_id)
        snprintf(problem + at, sizeof problem - (size_t)at, "an integer");
    else
        snprintf(problem + at, sizeof problem - (size_t)at, "a number from %lld to %lld", (long long)keys[key].low,
                 (long long)high);
    return problem;
}

static bool parse_routines(struct row *row, char *value)
{
    if (!*value)
        return false;
    for (char *name = value; name; row->routine_count++) {
        char *comma = strchr(name, ',');
        if (comma)
            *comma = '\0';
        if (row->routine_count == ROW_ROUTINES || !*name)
            return false;
        for (size_t i = 0; i < row->routine_count; i++)
            if (strcmp(row->routines[i], name) == 0)
                return false;
        row->routines[row->routine_count] = name;
        name = comma ? comma + 1 : NULL;
    }
    return true;
}

/* Takes one key; *mix keeps a mix until the length of its table is known. */
static const char *take(struct row *row, enum key key, char *value, unsigned cpus, const char **mix)
{
    int64_t number = 0;
    int64_t high = key == KEY_threads ? (int64_t)cpus : keys[key].high;
    bool any = key == KEY_delta && strcmp(value, "any") == 0;
    bool numeric = (!keys[key].words || key == KEY_delta) && !any;
    char original[256];
    snprintf(original, sizeof original, "%s", value);
    if (numeric && !parse_int(value, keys[key].low, high, &number))
        return bad_value(key, value, high);
    int word = 0;
    switch (key) {
    case KEY_id:
        row->id = number;
        break;
    case KEY_op:
        word = choice(value, wherry_op_names, WHERRY_OP_COUNT);
        row->op = (enum wherry_op)word;
        break;
    case KEY_routines:
        word = parse_routines(row, value) ? 0 : -1;
        break;
    case KEY_size:
        row->size = (size_t)number;
        break;
    case KEY_mix:
        *mix = value;
        break;
    case KEY_table:
        row->table = (size_t)number;
        break;
    case KEY_src_off:
        row->src_off = (size_t)number;
        break;
    case KEY_dst_off:
        row->dst_off = (size_t)number;
        break;
    case KEY_delta:
        row->delta = any ? -1 : (int)number;
        break;
    case KEY_walk:
        word = choice(value, (const char *const[]){"pool", "stream"}, 2);
        row->stream = word == 1;
        break;
    case KEY_buffer:
        row->buffer = (size_t)number;
        break;
    case KEY_src_state:
    case KEY_dst_state:
        word = choice(value, state_names, STATE_COUNT);
        *(key == KEY_src_state ? &row->src_state : &row->dst_state) = (enum state)word;
        break;
    case KEY_content:
        word = choice(value, (const char *const[CONTENT_COUNT]){"any", "dirty", "zero", "mixed", "new"}, CONTENT_COUNT);
        row->content = (enum content)word;
        break;
    case KEY_places:
        word = choice(value, (const char *const[]){"repeat", "change"}, 2);
        row->scattered = word == 1;
        break;
    case KEY_ascending:
    case KEY_handed:
        word = choice(value, side_names, SIDES_COUNT);
        *(key == KEY_ascending ? &row->ascending : &row->handed) = (enum sides)word;
        break;
    case KEY_handed_by:
        row->handed_by = (int)number;
        break;
    case KEY_code:
        word = choice(value, (const char *const[]){"warm", "cold"}, 2);
        row->cold = word == 1;
        break;
    case KEY_overlap:
        row->overlaps = true;
        row->overlap = number;
        break;
    case KEY_mode:
        word = choice(value, mode_names, MODE_NAMES);
        row->mode = word < MODE_COUNT ? (enum mode)word : MODE_THROUGHPUT;
        row->percentile = word < MODE_COUNT ? 0 : strtod(value + 1, NULL);
        break;
    case KEY_threads:
        row->threads = (unsigned)number;
        break;
    case KEY_huge:
        row->huge = number == 1;
        break;
    case KEY_rounds:
        row->rounds = (unsigned)number;
        break;
    case KEY_batch_us:
        row->batch_us = (unsigned)number;
        break;
    case KEY_calls:
        row->calls = (uint64_t)number;
        break;
    case KEY_aa:
        row->aa = value;
        break;
    case KEY_COUNT:
        break;
    }
    return word < 0 ? bad_value(key, original, high) : NULL;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum { SURVEYED = 65536 };

/* What the layout of the memory needs to know of the table. */
static bool survey(struct row *row)
{
    size_t step = row->table / SURVEYED + 1, count = 0; /* of a long table some are enough to know the usual by */
    uint64_t *sorted = malloc((row->table / step + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < row->table; i += step)
        sorted[count++] = row->sizes[i];
    qsort(sorted, count, sizeof *sorted, ascending);
    row->usual = (size_t)sorted[count - 1 - count / 100];
    free(sorted);
    double sum = 0;
    for (size_t i = 0; i < row->table; i++) {
        sum += (double)row->sizes[i];
        row->largest = row->sizes[i] > row->largest ? (size_t)row->sizes[i] : row->largest;
    }
    row->mean = sum / (double)row->table;
    row->before = row->overlap < 0 ? (size_t)-row->overlap : 0;
    row->behind = row->overlap > 0 ? (size_t)row->overlap : 0;
    for (size_t i = 0; row->placed && i < row->table; i++) {
        const struct placed *call = &row->placed[i];
        if (call->meets == IN_PAGE)
            row->reach = 2 * (IN_PAGE + 1);
        if (call->meets == -1 && call->dst < 0 && (size_t)-call->dst > row->before)
            row->before = (size_t)-call->dst;
        if (call->meets == -1 && call->dst > 0 && (size_t)call->dst > row->behind)
            row->behind = (size_t)call->dst;
    }
    return true;
}

/* Places in their lines for calls whose sizes are drawn. */
static bool scatter(struct row *row, uint64_t seed)
{
    uint64_t state = seed ^ 0x73636174u;
    row->placed = calloc(row->table, sizeof *row->placed);
    for (size_t i = 0; row->placed && i < row->table; i++)
        row->placed[i] = (struct placed){.size = (uint32_t)row->sizes[i],
                                         .src = row_has_source(row) ? (uint16_t)random_below(&state, LINE) : 0,
                                         .dst = (int32_t)random_below(&state, LINE)};
    return row->placed != NULL;
}

/* Makes the table. */
static const char *draw(struct row *row, const char *spec, uint64_t seed)
{
    if (!spec && !row->scattered)
        row->table = 1;
    row->sizes = malloc(row->table * sizeof *row->sizes);
    if (!row->sizes)
        return "out of memory";
    for (size_t i = 0; !spec && i < row->table; i++)
        row->sizes[i] = row->size;
    if (spec) {
        struct mix mix = {.sources = row_has_source(row),
                          .may_meet = row->op == WHERRY_OP_move && !row->overlaps,
                          .count = row->table,
                          .sizes = row->sizes};
        const char *wrong = mix_draw(spec, &mix, seed);
        row->placed = mix.placed;
        row->runs = mix.runs;
        row->run_count = mix.run_count;
        if (wrong)
            return wrong;
    }
    if (row->placed && (row->src_off || row->dst_off || row->delta >= 0))
        return "the mix says where each call lies; give no src_off, dst_off or delta with it, or only the "
               "first line of its file";
    if (row->placed && row->scattered)
        return "the mix says where each call lies; give no places=change with it, or only the first line of its "
               "file";
    if (row->scattered && !scatter(row, seed))
        return "out of memory";
    for (size_t i = 0; row->placed && row->overlaps && i < row->table; i++) {
        row->placed[i].dst = row->placed[i].src; /* the bases are apart by the overlap already */
        row->placed[i].meets = 0;
    }
    /* Destinations that follow each other keep their places in their lines, not those in their pages. */
    for (size_t i = 0; row->placed && row->ascending & SIDES_DESTINATION && i < row->table; i++)
        if (row->placed[i].meets == IN_PAGE) {
            row->placed[i].meets = 63;
            row->placed[i].dst &= 63;
        }
    return survey(row) ? NULL : "out of memory";
}

static bool names(const struct row *row, const char *routine)
{
    for (size_t i = 0; i < row->routine_count; i++)
        if (strcmp(row->routines[i], routine) == 0)
            return true;
    return false;
}

const char *row_parse(struct row *row, const char *line, unsigned cpus, uint64_t seed)
{
    row_init(row);
    row->text = strdup(line);
    bool given[KEY_COUNT] = {false};
    const char *mix = NULL;
    char *rest = NULL;
    for (char *word = strtok_r(row->text, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = '\0';
        int key = 0;
        while (key < KEY_COUNT && strcmp(word, keys[key].name) != 0)
            key++;
        if (!equals || key == KEY_COUNT) {
            int at =
                snprintf(problem, sizeof problem, "'%.100s' is not a key%s; keys are", word, equals ? "" : "=value");
            for (key = 0; key < KEY_COUNT; key++)
                at += snprintf(problem + at, sizeof problem - (size_t)at, " %s", keys[key].name);
            return problem;
        }
        if (given[key]) {
            snprintf(problem, sizeof problem, "%s is given twice", word);
            return problem;
        }
        given[key] = true;
        const char *wrong = take(row, (enum key)key, equals + 1, cpus, &mix);
        if (wrong)
            return wrong;
    }
    for (int key = KEY_id; key <= KEY_routines; key++)
        if (!given[key]) {
            snprintf(problem, sizeof problem, "%s is missing", keys[key].name);
            return problem;
        }
    if (given[KEY_size] == (mix != NULL))
        return "give one of size and mix";
    if (!row->aa)
        row->aa = row->routines[0];
    if (!names(row, row->aa))
        return bad_value(KEY_aa, row->aa, 0);
    const char *wrong = row_contradiction(row, mix != NULL);
    if (wrong)
        return wrong;
    if (row_only_reads(row)) { /* as if the destination lay on the source */
        row->overlaps = !row->stream;
        row->dst_off = 0;
        row->dst_state = row->src_state;
    }
    return draw(row, mix, seed);
}

void row_free(struct row *row)
{
    free(row->sizes);
    free(row->placed);
    free(row->runs);
    free(row->text);
    row->sizes = NULL;
    row->placed = NULL;
    row->runs = NULL;
    row->text = NULL;
}
