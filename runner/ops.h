/* What the runner knows of the ops: the sides they have, how they are called, and what a call must give. */
#ifndef RUNNER_OPS_H
#define RUNNER_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "routines/registry.h"

/* The destination holds the source's bytes afterwards. */
static inline bool op_copies(enum wherry_op op)
{
    return op == WHERRY_OP_copy || op == WHERRY_OP_move || op == WHERRY_OP_copy_csum || op == WHERRY_OP_copy_crc32c;
}

/* The destination holds one value afterwards; there is no source. */
static inline bool op_sets(enum wherry_op op)
{
    return op == WHERRY_OP_set || op == WHERRY_OP_zero || op == WHERRY_OP_pagezero;
}

/* There is a source and no destination; what counts is the result. */
static inline bool op_reads(enum wherry_op op)
{
    return op == WHERRY_OP_csum || op == WHERRY_OP_crc32c || op == WHERRY_OP_iszero;
}

/* Goes on with a sum or CRC that it is given, and returns another. */
static inline bool op_sums(enum wherry_op op) { return op >= WHERRY_OP_csum && op <= WHERRY_OP_copy_crc32c; }

/* The four ops that libc has, called with dst, src or a byte, and n. */
static inline bool op_is_plain(enum wherry_op op) { return op <= WHERRY_OP_zero; }

/* Models, a byte or a word at a time. */
uint32_t model_csum(const uint8_t *src, size_t n, uint32_t sum);
uint16_t model_fold(uint32_t sum);
uint32_t model_crc32c(uint32_t crc, const uint8_t *src, size_t n);

/* Is `returned` (the whole register) what a call that was given `value` and these bytes must return? For ops whose
 * result the bytes decide; true for the others. */
bool op_result_right(enum wherry_op op, uint64_t returned, uint32_t value, const uint8_t *src, size_t n);

/* "returned 0x1234, expected 0x4321 ..." for one that is not right. */
void op_result_text(char *text, size_t room, enum wherry_op op, uint64_t returned, uint32_t value, const uint8_t *src,
                    size_t n);

#endif
