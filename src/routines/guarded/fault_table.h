/* The fault table: which instruction may fault, and where to go on when it does.
 *
 * A routine that works on memory that may be missing marks each of its loads and stores:
 *
 *     CAN_FAULT(symbol, FAULT_LOAD, resume, movdqu (%rsi), %xmm0)
 *     CAN_FAULT(symbol, FAULT_STORE, resume, movdqu %xmm0, (%rdi))
 *
 * symbol is the function as ENTRY() has it (any label of its section will do), resume a label of the same section.
 * Until something faults the mark costs nothing: it is an entry in a section of its own. After a fault the signal
 * handler (src/guard) finds the entry by the instruction's address and goes on at resume, with every register as it
 * was: no part of the faulting instruction has happened, except that a string instruction has moved its registers on by
 * what it has done, which is exact to the byte. There, work out from the registers what has surely been done, and
 * finish: most simply by leaving the rest to `rep movsb` under a mark of its own: what its rdi has not reached is
 * not copied. With FAULT_REPORT added to the kind the handler also says what happened, in three registers:
 *
 *     r9    address that the kernel gave, 0 when it gave none (non-canonical addresses)
 *     r10   signal number in the lower half, si_code in the upper
 *     r11   1 when it was a write, 0 when it was a read
 *
 * Without it the handler leaves that in the red zone, where whoever resumes finds it as long as it has pushed nothing:
 *
 *     FAULT_PAGE(%rsp)   the page of a page fault's address, and 1 added when it was a write; 0 or 1 when none is known
 *     FAULT_WHAT(%rsp)   as r10
 *
 * so the last resume, which fills in the caller's struct wherry_fault, has FAULT_REPORT, and r9 to r11 to spare.
 *
 * A routine that computes beside the copy needs none of this at its end: let each mark of the fast loop go on at a
 * label that returns how many bytes are surely copied and computed (loads of a step before its stores, in ascending
 * order), and let its caller copy the rest by wherry_copy_nofault and compute over what that says it has copied.
 * copy_csum.tmpl.S is one.
 *
 * Two rules make the destination untouched beyond the fault: the first store of a call goes to the first byte, and
 * stores then reach no page before the pages below it have been stored to. Up to 4096 bytes lie on two pages at most:
 * there the first store alone has to come first.
 *
 * Offsets are relative to the entry itself, so nothing is left for the loader to relocate, in a shared object or in a
 * static program. The section is linked to that of its function: it goes where that goes, also under --gc-sections.
 */
#ifndef WHERRY_FAULT_TABLE_H
#define WHERRY_FAULT_TABLE_H

/* What the instruction does; derives the direction of a fault for which the kernel gives none. */
#define FAULT_LOAD 0
#define FAULT_STORE 1
#define FAULT_STRING 2 /* movs: loads from rsi, stores to rdi */
#define FAULT_REPORT 4 /* added to one of these */

/* From the stack pointer, in bytes: 64-bit words. */
#define FAULT_PAGE (-64)
#define FAULT_WHAT (-56)

#ifdef __ASSEMBLER__
/* clang-format off */
#define CAN_FAULT(symbol, kind, resume, ...)                            \
    771: __VA_ARGS__;                                                   \
    .pushsection wherry_faults, "ao", @progbits, symbol;                \
    .balign 4;                                                          \
    .long 771b - .;                                                     \
    .long resume - .;                                                   \
    .long kind;                                                         \
    .popsection
/* clang-format on */
#else
#include <stdint.h>

struct wherry_fault_entry {
    int32_t instruction; /* from the address of this field */
    int32_t resume;      /* from the address of this field */
    uint32_t kind;
};

/* The linker's names for the two ends of the section. */
extern const struct wherry_fault_entry wherry_faults_begin[] __asm__("__start_wherry_faults")
    __attribute__((visibility("hidden")));
extern const struct wherry_fault_entry wherry_faults_end[] __asm__("__stop_wherry_faults")
    __attribute__((visibility("hidden")));
#endif

#endif
