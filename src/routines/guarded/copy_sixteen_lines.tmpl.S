/* 8V < n <= 16V for V = 64, as in public.S: the blocks between the first and the last two begin at a line of the source.
 * The first block is always the one at the first byte, which is stored first.
 *
 *   r11 the destination as it was
 */
    .p2align 5
AT(sixteen):
    movq    %rdi, %r11
    movl    %esi, %eax
    negl    %eax
    andl    $63, %eax               /* 0 .. 63, to that line */
    movl    $64, %r10d
    cmpl    $960, %edx              /* they reach 960 bytes from there, so above that they follow the first block */
    cmoval  %r10d, %eax
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi), R(0))
    addq    %rax, %rsi
    addq    %rax, %rdi
    subq    %rax, %rdx
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi), R(1))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi), R(2))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi), R(3))
    LOAD(AT(sixteen_redo), vmovdqu64 192(%rsi), R(4))
    LOAD(AT(sixteen_redo), vmovdqu64 256(%rsi), R(5))
    LOAD(AT(sixteen_redo), vmovdqu64 320(%rsi), R(6))
    LOAD(AT(sixteen_redo), vmovdqu64 384(%rsi), R(7))
    movl    $576, %eax
    movl    $704, %r9d
    movl    $832, %r10d
    subl    %edx, %eax
    subl    %edx, %r9d
    subl    %edx, %r10d
    sarl    $31, %eax
    sarl    $31, %r9d
    sarl    $31, %r10d
    andl    $448, %eax              /* 448 when n > 576 from that line on, else 0 */
    andl    $576, %r9d
    andl    $704, %r10d
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%rax), R(8))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%rax), R(9))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r9), R(10))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r9), R(11))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r10), R(12))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r10), R(13))
    LOAD(AT(sixteen_redo), vmovdqu64 -128(%rsi,%rdx), R(14))
    LOAD(AT(sixteen_redo), vmovdqu64 -64(%rsi,%rdx), R(15))
AT(sixteen_stores):
    STORE(AT(sixteen_spill), vmovdqu64 R(0), (%r11))
    STORE(AT(sixteen_spill), vmovdqu64 R(1), (%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(2), 64(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(3), 128(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(4), 192(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(5), 256(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(6), 320(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(7), 384(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(8), (%rdi,%rax))
    STORE(AT(sixteen_spill), vmovdqu64 R(9), 64(%rdi,%rax))
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
    jmp     AT(redo)

/* As SPILLED, with the destination in two registers. */
AT(sixteen_spill):
    subq    %r11, %rdi
    addq    %rdi, %rdx
    SPILL_ROOM(%r11, %rdx)
    subq    %rdi, %rdx
    movq    %rsp, %r11
    addq    %r11, %rdi
    call    AT(sixteen_stores)
    SPILL_ENDS
