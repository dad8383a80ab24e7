/* Experiments on whole systems: a switch from process to process, bytes through a network, files read, loads that wait
 * for each other. A row is a set of cells that differ in one name (the routines of the row) and are measured
 * interleaved, as in measure/; what a call is and what may be said of it is the scene's own. docs/runner-systems.md
 * has the words. */
#ifndef RUNNER_SYSTEM_H
#define RUNNER_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/host.h"
#include "target.h"

enum { SYSTEM_NAMES = 64, SYSTEM_WORDS = 24, SYSTEM_PARTS = 12, SYSTEM_ROUNDS = 1000, SYSTEM_TEXT = 4096 };

struct scene;

struct system_row {
    long id;
    const struct scene *scene;
    const char *names[SYSTEM_NAMES];
    size_t name_count;
    unsigned rounds;
    unsigned within; /* per cent: rounds end when half the 95 % interval of each mean is no wider; 0: all rounds */
    unsigned batch_us;
    uint64_t calls; /* 0: chosen from batch_us */
    struct {
        const char *key, *value;
    } words[SYSTEM_WORDS]; /* those of the scene */
    size_t word_count;
    char text[SYSTEM_TEXT]; /* what names and words point into */
    const struct host *host;
    const struct target_list *targets;
    uint64_t *random;
    /* Set by the scene: what one call loads or moves (0: what size= says), the memory that it works on, and whether
     * that is in huge pages. */
    double call_bytes;
    size_t pool_bytes;
    bool huge;
    /* Set by the scene: nothing in it waits, so a sample in which its thread was descheduled is no good; and each name
     * has a count of calls of its own, so that none is longer than it has to be. */
    bool steady;
    const char *broken; /* set by the scene: what it works on has failed, so that no other name or row can be had */
};

/* One sample: nanoseconds a call, and the scene's own figures (NAN: not to be had). */
struct system_figures {
    double ns;
    double parts[SYSTEM_PARTS];
    /* Of a steady row whose samples have much in them that is not timed: the scene has looked itself, at what is. */
    bool looked;
    enum disturbance disturbed;
};

/* A word that rows of a scene may have: one of `values` (separated by blanks), or with NULL a number from low to high,
 * or with `any` whatever it is. */
struct scene_word {
    const char *key, *values, *usual;
    uint64_t low, high;
    bool any;
};

struct scene {
    const char *op;
    const struct scene_word *words; /* ends with a NULL key */
    const char *const *parts;       /* names of its figures, at most SYSTEM_PARTS; ends with NULL */
    /* NULL, or what is wrong with the row as it was asked for: misuse. */
    const char *(*accept)(struct system_row *row);
    /* Prepares a row. NULL, or why it cannot be had here: the whole row is skipped. close follows in any case. */
    const char *(*open)(struct system_row *row);
    /* Prepares and checks one name. NULL or why it is skipped; *wrong set: it is not skipped but wrong. */
    const char *(*ready)(struct system_row *row, const char *name, bool *wrong);
    /* One sample of so many calls. NULL, or what failed: the row ends. */
    const char *(*sample)(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures);
    void (*close)(struct system_row *row);
};

/* The value of a word, its usual one when the row has none. */
const char *system_word(const struct system_row *row, const char *key);
uint64_t system_number(const struct system_row *row, const char *key);
bool system_is(const struct system_row *row, const char *key, const char *value);

/* Why a peer that has no copy is left out of a scene that copies, or NULL. Peers are given for all rows of a run, so
 * one that has other functions alone is a skip and no misuse. */
const char *system_peer_without_copy(const struct system_row *row, const char *name);

/* Takes a line apart. NULL, or what is wrong with it (static). */
const char *system_parse(struct system_row *row, const char *line);

/* All scenes; ends with NULL. */
extern const struct scene *const scenes[];
const struct scene *scene_find(const char *op);

#endif
