/* Files of mixes, as google/fleetbench publishes its distributions: up to three lines of value:probability,... that
 * give the sizes, whether both sides overlap (0 or 1), and the alignments of each side. */
#ifndef MEASURE_MIXFILE_H
#define MEASURE_MIXFILE_H

#include <stddef.h>
#include <stdint.h>

#define MIX_LARGEST ((uint64_t)1 << 30)

struct share {
    uint64_t value;
    double until; /* sum of the probabilities up to and with this one */
};

struct shares {
    struct share *of;
    size_t count; /* 0: the file does not tell */
};

struct mixfile {
    struct shares sizes, overlaps, alignments;
};

/* Returns NULL, or what is wrong in one sentence (static). Free in any case. */
const char *mixfile_read(struct mixfile *file, const char *path);
void mixfile_free(struct mixfile *file);

#endif
