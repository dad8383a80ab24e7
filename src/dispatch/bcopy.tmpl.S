/* void bcopy(const void *src rdi, void *dst rsi, size_t n rdx), which nobody calls often. Where there is room. */
    .p2align 4
EXPORT(PUBLIC(bcopy))
    xchgq   %rdi, %rsi
    jmp     move_others
    .cfi_endproc
    .size PUBLIC(bcopy), . - PUBLIC(bcopy)

