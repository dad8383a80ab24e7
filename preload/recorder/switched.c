#include "switched.h"

/* The signature before where it would go on is what glibc registers with (RSEQ_SIG), as an instruction that traps. */
__asm__(".pushsection .text.recorder_no_sequence, \"ax\", @progbits\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        ".hidden recorder_sequence_abort\n"
        "recorder_sequence_abort:\n\t"
        "ud2\n"
        ".hidden recorder_sequence_begin\n"
        "recorder_sequence_begin:\n\t"
        "nop\n\t"
        ".popsection");
extern const char recorder_sequence_abort[] __attribute__((visibility("hidden")));
extern const char recorder_sequence_begin[] __attribute__((visibility("hidden")));

const struct recorder_sequence recorder_no_sequence = {
    .begin = (uintptr_t)recorder_sequence_begin,
    .bytes = 1,
    .abort = (uintptr_t)recorder_sequence_abort,
};
