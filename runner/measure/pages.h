/* Memory in huge pages, or in none. */
#ifndef MEASURE_PAGES_H
#define MEASURE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20 };

/* What a mapping for so many bytes takes: whole pages of the kind. */
size_t pages_bytes(size_t bytes, bool huge);

/* As much, private, zero, not there yet. It begins where a huge page can, in either case: what differs is then the
 * pages alone. The kernel is asked for huge pages, or to give none. NULL when there is no memory; munmap gives it back.
 */
char *pages_map(size_t bytes, bool huge);

/* How many bytes are in huge pages of the mappings that have a part of these, by /proc/self/smaps; 0 where that cannot
 * be read. A mapping may have been joined with a neighbour, which is then counted too. */
size_t pages_huge(const void *from, size_t bytes);

#endif
