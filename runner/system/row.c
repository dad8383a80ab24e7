/* A row of a scene, from its line of words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

static char problem[512];

const struct scene *scene_find(const char *op)
{
    for (size_t i = 0; scenes[i]; i++)
        if (strcmp(scenes[i]->op, op) == 0)
            return scenes[i];
    return NULL;
}

const char *system_word(const struct system_row *row, const char *key)
{
    for (size_t i = 0; i < row->word_count; i++)
        if (strcmp(row->words[i].key, key) == 0)
            return row->words[i].value;
    for (const struct scene_word *word = row->scene->words; word->key; word++)
        if (strcmp(word->key, key) == 0)
            return word->usual;
    return NULL;
}

uint64_t system_number(const struct system_row *row, const char *key)
{
    const char *value = system_word(row, key);
    return value ? strtoull(value, NULL, 10) : 0;
}

bool system_is(const struct system_row *row, const char *key, const char *value)
{
    const char *own = system_word(row, key);
    return own && strcmp(own, value) == 0;
}

static bool number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *value >= low && *value <= high;
}

static bool is_among(const char *value, const char *values)
{
    size_t length = strlen(value);
    for (const char *at = values; *at; at += strspn(at, " ")) {
        size_t own = strcspn(at, " ");
        if (own == length && strncmp(at, value, length) == 0)
            return true;
        at += own;
    }
    return false;
}

static const char *take_names(struct system_row *row, char *value)
{
    char *rest = value;
    while (rest) {
        char *name = strsep(&rest, ",");
        if (!*name)
            return "routines= has an empty name";
        if (row->name_count == SYSTEM_NAMES)
            return "routines= has more than 64 names";
        for (size_t i = 0; i < row->name_count; i++)
            if (strcmp(row->names[i], name) == 0) {
                snprintf(problem, sizeof problem, "'%.80s' is named twice", name);
                return problem;
            }
        row->names[row->name_count++] = name;
    }
    return NULL;
}

static const char *out_of_range(const char *key, const char *value, uint64_t low, uint64_t high)
{
    snprintf(problem, sizeof problem, "%s=%.80s: give a number from %llu to %llu", key, value, (unsigned long long)low,
             (unsigned long long)high);
    return problem;
}

/* The words that every row has. Returns true when the key was one of them. */
static bool take_common(struct system_row *row, const char *key, char *value, const char **wrong)
{
    static const struct {
        const char *key;
        uint64_t low, high;
    } numbers[] = {{"id", 0, INT32_MAX},
                   {"rounds", 1, SYSTEM_ROUNDS},
                   {"batch_us", 1, 10000000},
                   {"calls", 0, UINT32_MAX},
                   {"within", 0, 100}};
    if (strcmp(key, "op") == 0)
        return true;
    if (strcmp(key, "routines") == 0) {
        *wrong = take_names(row, value);
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t n;
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (!number(value, numbers[i].low, numbers[i].high, &n))
            *wrong = out_of_range(key, value, numbers[i].low, numbers[i].high);
        else if (i == 0)
            row->id = (long)n;
        else if (i == 1)
            row->rounds = (unsigned)n;
        else if (i == 2)
            row->batch_us = (unsigned)n;
        else if (i == 3)
            row->calls = n;
        else
            row->within = (unsigned)n;
        return true;
    }
    return false;
}

static const char *take_own(struct system_row *row, const char *key, const char *value)
{
    uint64_t n;
    const struct scene_word *word = row->scene->words;
    while (word->key && strcmp(word->key, key) != 0)
        word++;
    if (!word->key) {
        snprintf(problem, sizeof problem, "op=%s has no word '%.80s'", row->scene->op, key);
        return problem;
    }
    if (!word->any && word->values && !is_among(value, word->values)) {
        snprintf(problem, sizeof problem, "%s=%.80s: give one of %s", key, value, word->values);
        return problem;
    }
    if (!word->any && !word->values && !number(value, word->low, word->high, &n))
        return out_of_range(key, value, word->low, word->high);
    if (row->word_count == SYSTEM_WORDS)
        return "too many words";
    row->words[row->word_count].key = key;
    row->words[row->word_count++].value = value;
    return NULL;
}

const char *system_peer_without_copy(const struct system_row *row, const char *name)
{
    const struct target *copy = target_for(row->targets, name, WHERRY_OP_copy);
    if (copy && copy->abi == ABI_MEMCPY)
        return NULL;
    for (size_t i = 0; i < row->targets->count; i++)
        if (row->targets->items[i].kind == TARGET_PEER && strcmp(row->targets->items[i].name, name) == 0)
            return "has nothing for op=copy";
    return NULL;
}

const char *system_parse(struct system_row *row, const char *line)
{
    row->id = -1;
    row->rounds = 15;
    row->batch_us = 20000;
    if (strlen(line) >= sizeof row->text)
        return "the line is longer than 4095 bytes";
    strcpy(row->text, line);
    char *pairs[2 * SYSTEM_WORDS];
    size_t count = 0;
    for (char *rest = row->text, *word; (word = strsep(&rest, " \t\r\n"));) {
        if (!*word)
            continue;
        if (count == sizeof pairs / sizeof pairs[0])
            return "too many words";
        char *equals = strchr(word, '=');
        if (!equals) {
            snprintf(problem, sizeof problem, "'%.80s' is not key=value", word);
            return problem;
        }
        *equals = '\0';
        for (size_t i = 0; i < count; i++)
            if (strcmp(pairs[i], word) == 0) {
                snprintf(problem, sizeof problem, "%.80s= is there twice", word);
                return problem;
            }
        pairs[count++] = word;
        if (strcmp(word, "op") == 0 && !(row->scene = scene_find(equals + 1))) {
            snprintf(problem, sizeof problem, "no op '%.80s'; wherry-run system --help names them", equals + 1);
            return problem;
        }
    }
    if (!row->scene)
        return "op= is missing";
    for (size_t i = 0; i < count; i++) {
        char *value = pairs[i] + strlen(pairs[i]) + 1;
        const char *wrong = NULL;
        if (!take_common(row, pairs[i], value, &wrong))
            wrong = take_own(row, pairs[i], value);
        if (wrong)
            return wrong;
    }
    if (row->id < 0)
        return "id= is missing";
    if (!row->name_count)
        return "routines= is missing";
    return row->scene->accept ? row->scene->accept(row) : NULL;
}
