/* Register state that a process keeps live: what a switch to another one has to save. */
#ifndef RUNNER_SWITCH_STATES_H
#define RUNNER_SWITCH_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum live { LIVE_NONE, LIVE_X87, LIVE_SSE, LIVE_AVX, LIVE_AVX512, LIVE_OPMASK, LIVE_AMX, LIVE_COUNT };

#define LIVE_NAMES "none x87 sse avx avx512 opmask amx"

enum live live_find(const char *name);

/* NULL, or why this machine has no such state (static). */
const char *live_unavailable(enum live live);

/* Registers as at a program's start: everything as after reset, so that nothing needs saving. */
void live_clear(void);
/* Puts value into the registers of that state. value: 0 and the like are legal, but then nothing is in use. */
void live_begin(enum live live, float value);
/* The work of one turn, as in the mail of 1998: a float times 1.00001, in each register of the state. */
void live_turn(enum live live);
/* What one register of the state holds: 8 bytes of it that no other state has. */
uint64_t live_read(enum live live);
/* What XGETBV with ECX = 1 says is not as after reset; 0 where the CPU does not tell. */
uint64_t live_in_use(void);
/* Can live_in_use tell? */
bool live_told(void);

/* Bytes of an XSAVE area for all that the system has switched on, standard and compacted form; 0: no XSAVE. */
size_t xsave_bytes(void);
bool xsave_has_compacted(void);
bool xsave_has_optimised(void);

#endif
