/* For the routines in C whose loop is the subject. */
#ifndef WHERRY_PLAIN_H
#define WHERRY_PLAIN_H

/* Before a loop: its turn stays the one that is written. Clang would unroll it further, and a routine named after 32
 * bytes a turn would measure 128. */
#ifdef __clang__
#define AS_WRITTEN _Pragma("clang loop unroll(disable)")
#else
#define AS_WRITTEN _Pragma("GCC unroll 1")
#endif

#endif
