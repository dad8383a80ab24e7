/* 4V <= n <= 16V for V = 64, as in public.S: between the first block and the last two thirteen that begin at a line of the
 * source or, by the plan, the destination; those that n does not reach repeat others. The first block is always the one at the first byte, which is stored
 * first.
 *
 *   rax the least multiple of 64 from where three blocks reach what the last two do not
 *   r9, r10, r8 that where it is less than 192, 384, 576, else these: three blocks, three, and one, and at rax three again
 *   r11 the destination as it was
 */
    .p2align 5
AT(sixteen):
    movq    %rdi, %r11
    movl    %esi, %eax
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
    cmovel  %edi, %eax
    negl    %eax
    andl    $63, %eax               /* 0 .. 63, to that line */
    movl    $64, %r10d
    cmpl    $960, %edx              /* they reach 960 bytes from there, so above that they follow the first block */
    cmoval  %r10d, %eax
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi), R(0))
    addq    %rax, %rsi
    addq    %rax, %rdi
    subq    %rax, %rdx              /* 193 .. 960 */
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi), R(1))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi), R(2))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi), R(3))
    FARTHEST_PLACE
    LIMITED_PLACE(192, %r9d)
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r9), R(4))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r9), R(5))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi,%r9), R(6))
    LIMITED_PLACE(384, %r10d)
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r10), R(7))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%r10), R(8))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi,%r10), R(9))
    LIMITED_PLACE(576, %r8d)
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%r8), R(10))
    LOAD(AT(sixteen_redo), vmovdqu64 (%rsi,%rax), R(11))
    LOAD(AT(sixteen_redo), vmovdqu64 64(%rsi,%rax), R(12))
    LOAD(AT(sixteen_redo), vmovdqu64 128(%rsi,%rax), R(13))
    LOAD(AT(sixteen_redo), vmovdqu64 -128(%rsi,%rdx), R(14))
    LOAD(AT(sixteen_redo), vmovdqu64 -64(%rsi,%rdx), R(15))
AT(sixteen_stores):
    STORE(AT(sixteen_spill), vmovdqu64 R(0), (%r11))
    STORE(AT(sixteen_spill), vmovdqu64 R(1), (%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(2), 64(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(3), 128(%rdi))
    STORE(AT(sixteen_spill), vmovdqu64 R(4), (%rdi,%r9))
    STORE(AT(sixteen_spill), vmovdqu64 R(5), 64(%rdi,%r9))
    STORE(AT(sixteen_spill), vmovdqu64 R(6), 128(%rdi,%r9))
    STORE(AT(sixteen_spill), vmovdqu64 R(7), (%rdi,%r10))
    STORE(AT(sixteen_spill), vmovdqu64 R(8), 64(%rdi,%r10))
    STORE(AT(sixteen_spill), vmovdqu64 R(9), 128(%rdi,%r10))
    STORE(AT(sixteen_spill), vmovdqu64 R(10), (%rdi,%r8))
    STORE(AT(sixteen_spill), vmovdqu64 R(11), (%rdi,%rax))
    STORE(AT(sixteen_spill), vmovdqu64 R(12), 64(%rdi,%rax))
    STORE(AT(sixteen_spill), vmovdqu64 R(13), 128(%rdi,%rax))
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
