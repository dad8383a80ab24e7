/* Whether the code that calls lies far from all that it calls.
 *
 * A call of code more than 4 GiB away takes longer than one within: two to three cycles of the ten of a small copy, on
 * an Emerald Rapids (the branch predictor keeps near targets in fewer bits). A program calls libc from afar, and
 * whatever is preloaded. The routines of this executable would lie near, libc's and peers' afar; so the loops go where
 * all do. */
#ifndef MEASURE_APART_H
#define MEASURE_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps code that refers to nothing outside itself a second time, where nothing else is. Returns how far that is from
 * the code, or 0 where it cannot be had: then it runs where it is. */
ptrdiff_t code_set_apart(const char *begin, const char *end);

#endif
