/* Eight bytes of any place, stored and loaded as they are: memcpy of so many is a call here (-fno-builtin), which in a
 * loop that is timed would be timed too, and of libc's or a preloaded routine at that. */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>

typedef uint64_t unaligned_word __attribute__((aligned(1), may_alias));

#endif
