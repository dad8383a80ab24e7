/* Routines of which something is known beforehand: `wherry bench --self-check` measures them to show that the method is
 * right. known_copy_a and known_copy_b are one routine twice, at the same place of two pages, as when an object is
 * loaded twice; known_copy_moved is it once more, elsewhere in its page: that alone can cost a tenth. known_chain+N is
 * the copy, and then N links of a chain whose time a loop of its own finds out. */
#ifndef MEASURE_KNOWN_H
#define MEASURE_KNOWN_H

#include <stdbool.h>

#include "row.h"
#include "target.h"

enum { KNOWN_LINKS = 4096 };

/* Appends those that the row names and the list does not have. Returns whether the row has a chain. */
bool known_add(struct target_list *list, const struct row *row);

/* Makes known_chain as long as the target says; call before the target is called. NULL and any other target are fine.
 */
void known_enter(const struct target *target);

/* Nanoseconds of one link now: the median of several long fenced runs, by another clock than samples are timed with. */
double known_link_ns(void);

#endif
