/* For the routines in C: what the compiler is to leave as it is written. */
#ifndef WHERRY_PLAIN_H
#define WHERRY_PLAIN_H

/* Before a loop: its turn stays the one that is written. Clang would unroll it further, and a routine named after 32
 * bytes a turn would measure 128. */
#ifdef __clang__
#define AS_WRITTEN _Pragma("clang loop unroll(disable)")
#else
#define AS_WRITTEN _Pragma("GCC unroll 1")
#endif

/* Before a return of a call: a jump. Clang sees that a callee returns its first argument, and would call it and return
 * that itself. */
#ifdef __clang__
#define AS_A_JUMP __attribute__((musttail))
#else
#define AS_A_JUMP
#endif

#endif
