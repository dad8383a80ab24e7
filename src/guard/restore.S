/* Where a handler of ours returns to: rt_sigreturn. Debuggers and unwinders know a signal frame by just these bytes, and
 * only where no unwind information says otherwise; gdb besides only where the name has "sigaction" in it, or there is
 * none. */
#include "routines/asm.h"

    .text
    .p2align 4
    .globl wherry_guard_sigaction_return
    .hidden wherry_guard_sigaction_return
    .type wherry_guard_sigaction_return, @function
    nop                             /* unwinders look up the byte before a return address */
wherry_guard_sigaction_return:
    .byte   0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00    /* movq $15, %rax, in its long form */
    syscall
    .size wherry_guard_sigaction_return, . - wherry_guard_sigaction_return
