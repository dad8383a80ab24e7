/* 8V < n <= 16V for V = 64, as in public.S: the blocks between the first and the last two begin at a line of the source.
 * The first block is always the one at the first byte, which is stored first.
 *
 *   r11 the destination as it was; k2 the caller's fault, since every integer register is taken
 */
    .p2align 5
AT(sixteen):
    kmovq   %rcx, %k2
    movq    %rdi, %r11
    movl    %esi, %ecx
    negl    %ecx
    andl    $63, %ecx               /* 0 .. 63, to that line */
    xorl    %r9d, %r9d
    movl    $832, %r10d
    cmpl    $960, %edx              /* they reach 960 bytes at most, so above that they begin where the source does */
    cmoval  %r9d, %ecx
    movl    %ecx, %r8d
    cmoval  %r10d, %r8d             /* and the one that repeats the first takes its place at 832 */
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi), R(0))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r8), R(1))
    addq    %rdi, %r8
    addq    %rcx, %rsi
    addq    %rcx, %rdi
    subq    %rcx, %rdx
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi), R(2))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi), R(3))
    LOAD(AT(sixteen_redo), vmovdqu64 192(%rsi), R(4))
    LOAD(AT(sixteen_redo), vmovdqu64 256(%rsi), R(5))
    LOAD(AT(sixteen_redo), vmovdqu64 320(%rsi), R(6))
    LOAD(AT(sixteen_redo), vmovdqu64 384(%rsi), R(7))
    xorl    %ecx, %ecx
    xorl    %r10d, %r10d
    movl    $448, %eax
    cmpl    $576, %edx
    cmoval  %eax, %ecx
    movl    $576, %eax
    cmpl    $704, %edx
    cmoval  %eax, %r9d
    movl    $704, %eax
    cmpl    $832, %edx
    cmoval  %eax, %r10d
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%rcx), R(8))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%rcx), R(9))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r9), R(10))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r9), R(11))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r10), R(12))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r10), R(13))
    LOAD(AT(sixteen_redo), vmovdqu64 -128(%rsi,%rdx), R(14))
    LOAD(AT(sixteen_redo), vmovdqu64 -64(%rsi,%rdx), R(15))
AT(sixteen_stores):
    STORE(AT(sixteen_spill), vmovdqu64 R(0), (%r11))
    STORE(AT(sixteen_spill), vmovdqu64 R(1), (%r8))
    STORE(AT(sixteen_spill), vmovdqu64 R(2), 64(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(3), 128(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(4), 192(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(5), 256(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(6), 320(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(7), 384(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(8), (%rdi,%rcx))
    STORE(AT(sixteen_spill), vmovdqu64 R(9), 64(%rdi,%rcx))
    STORE(AT(sixteen_spill), vmovdqu64 R(10), (%rdi,%r9))
    STORE(AT(sixteen_spill), vmovdqu64 R(11), 64(%rdi,%r9))
    STORE(AT(sixteen_spill), vmovdqu64 R(12), (%rdi,%r10))
    STORE(AT(sixteen_spill), vmovdqu64 R(13), 64(%rdi,%r10))
    STORE(AT(sixteen_spill), vmovdqu64 R(14), -128(%rdi,%rdx))
    STORE(AT(sixteen_spill), vmovdqu64 R(15), -64(%rdi,%rdx))
    xorl    %eax, %eax
    ret

/* Before rdi, rsi and rdx have moved on rdi is r11, and this changes nothing. */
AT(sixteen_redo):
    movq    %rdi, %rax
    subq    %r11, %rax
    movq    %r11, %rdi
    subq    %rax, %rsi
    addq    %rax, %rdx
    kmovq   %k2, %rcx
    jmp     AT(redo)

/* As SPILLED, with the destination in three registers. */
AT(sixteen_spill):
    leaq    -(SPILL + 24)(%rsp), %rsp
    .cfi_adjust_cfa_offset SPILL + 24
    movq    %r11, SPILL(%rsp)
    subq    %r11, %rdi
    subq    %r11, %r8
    leaq    (%rdx,%rdi), %rax
    movq    %rax, SPILL + 8(%rsp)
    kmovq   %k2, SPILL + 16(%rsp)
    movq    %rsp, %r11
    addq    %r11, %rdi
    addq    %r11, %r8
    call    AT(sixteen_stores)
    jmp     AT(from_spill)
    .cfi_adjust_cfa_offset -(SPILL + 24)
