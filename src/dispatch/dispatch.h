/* The public functions' hidden pointers. Before anything has set them they are null, and null means the baseline. */
#ifndef WHERRY_DISPATCH_H
#define WHERRY_DISPATCH_H

#include "plan/plan.h"
#include "routines/recent.h"

/* What the public functions go by, read at each call. Its values, of a signed byte, are such that one comparison with 1
 * tells the frequent ones apart. */
enum wherry_choice {
    WHERRY_CHOICE_SSE2 = 0, /* also what holds before anything has run */
    WHERRY_CHOICE_AVX2 = 1,
    WHERRY_CHOICE_AVX512 = 2,           /* of copies and sets: sizes to 255 bytes apart (watch.h) */
    WHERRY_CHOICE_AVX512_TOGETHER = -2, /* sizes to 255 bytes together; the only one whose parity is odd, less 1 */
    WHERRY_CHOICE_AVX512_LADDER = -3,
    WHERRY_CHOICE_AVX512_LOOK = -5, /* as together, and each call is recorded */
};

/* Of copies and of sets, which public.S reads; and of the rest, to which the last two are none. */
extern _Atomic(signed char) wherry_copy_choice __attribute__((visibility("hidden")));
extern _Atomic(signed char) wherry_set_choice __attribute__((visibility("hidden")));
extern _Atomic(signed char) wherry_choice __attribute__((visibility("hidden")));

/* An enum wherry_needs: what the CRC in force needs, which is no matter of the tier alone. 0 is the baseline. */
extern _Atomic(signed char) wherry_crc_choice __attribute__((visibility("hidden")));

/* The same of the checksum: csum_vnni where the tier is AVX-512 and the CPU has it. */
extern _Atomic(signed char) wherry_csum_choice __attribute__((visibility("hidden")));

/* The tier in force. */
enum wherry_isa wherry_dispatch_isa(void);

/* Forces a tier for every later public call: for tests and measurements. Returns false, and changes nothing, when
 * this CPU cannot run it. Not to be called while other threads are inside a public call. */
bool wherry_dispatch_force(enum wherry_isa isa);

#endif
