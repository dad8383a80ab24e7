/* What via=stack does alike whether both ends are in this thread or in two processes: the stack is loaded, the
 * functions of a name are chosen, hooked with or without counting, and packets are checked. */
#ifndef RUNNER_NETWORK_STACK_USE_H
#define RUNNER_NETWORK_STACK_USE_H

#include "network.h"
#include "stack.h"

/* The stack has no time stamps in its segments: 40 bytes of headers and the data that a packet of 1500 has with them.
 */
enum { HEADERS = 40, STACK_MTU = SEGMENT + HEADERS };

extern const struct stack *stack;

const char *stack_names(const struct system_row *row, const char *name);
/* Loads it and makes the messages. NULL, or what is missing. */
const char *stack_prepare(struct system_row *row);
/* Hooks the functions that a name means. NULL, or why they cannot be had. */
const char *stack_choose(const struct system_row *row, const char *name);
/* From here on calls are counted, and packets can be checked. */
void stack_count(void);
struct stack_work stack_work_of(const struct system_row *row, uint64_t messages);

struct stack_counts {
    uint64_t copied, summed;
    bool bad_sum;
};
struct stack_counts stack_counted(void);
void stack_check_packet(const unsigned char *packet, size_t n);

/* What became of a checked stream of so many bytes, in words; NULL: all is right. Wrong bytes, as opposed to a stack
 * that cannot be used, set *wrong. */
const char *stack_verdict(const char *failed, const struct stack_work *work, const struct stack_counts *counts,
                          bool *wrong);

#endif
