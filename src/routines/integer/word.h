/* The 64-bit word of the integer copies: at any address, over data of any type. */
#ifndef WHERRY_WORD_H
#define WHERRY_WORD_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

#endif
