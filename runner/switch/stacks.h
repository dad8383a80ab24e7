/* Switches between two stacks of one thread, which nobody but us makes: what is saved at each is ours to choose. */
#ifndef RUNNER_SWITCH_STACKS_H
#define RUNNER_SWITCH_STACKS_H

#include <stddef.h>
#include <stdint.h>

/* stacks.S reads it by offset. */
struct stack {
    void *top;     /* what the stack pointer was when it was left */
    void *area;    /* of an XSAVE, on a line boundary */
    uint64_t kept; /* what `in use` has saved there */
};

typedef void stack_switch(struct stack *from, struct stack *to);

/* Callee-saved integer registers alone; the others save the vector and x87 registers, too. */
stack_switch stack_never, stack_fxsave, stack_xsave, stack_xsavec, stack_xsaveopt, stack_in_use;

/* What XSAVE is asked for: all that the system has switched on. */
extern uint64_t stack_mask;

#endif
