/* n <= 1024 for V = 64, as in public.S where sizes are together, with the registers of set_apart.tmpl.S. To be included
 * behind it. */
AT(together):
    vpbroadcastb %esi, R(0)
    cmpq    $1024, %rdx
    ja      AT(large)
    cmpl    $255, %edx
    ja      AT(together_256)
    cmpq    $4096, %rdi
    jb      AT(together_page_0)
/* One block under a mask, four times, or four whole ones of which those that n does not reach repeat the first; see
 * copy_together.tmpl.S. */
AT(together_four):
    prefetchw (%rdi)
    prefetchw -1(%rdi,%rdx)
    movl    %edi, %eax
    xorl    %r9d, %r9d
    movq    %rdx, %r10
    andl    $0xfc0, %eax
    subq    $64, %r10
    movq    %r10, %r8
    cmovnsq %r9, %r8
    cmovsq  %r9, %r10
    cmpl    $0xfc0, %eax
    movq    $-1, %rax
    cmovneq %r9, %r8
    bzhiq   %rdx, %rax, %rax
    subl    %r8d, %r9d
    shlxq   %r9, %rax, %rax
    addq    %rdi, %r8
    kmovq   %rax, %k1
    rorxl   $1, %edx, %eax
    leal    (%rdx,%rdx), %r9d
    andl    $64, %eax
    andl    %edx, %r9d
    andl    $128, %r9d
    STORE(AT(redo), vmovdqu8 R(0), (%r8){%k1})
    STORE(AT(redo), vmovdqu8 R(0), (%r8,%rax){%k1})
    STORE(AT(redo), vmovdqu8 R(0), (%r8,%r9){%k1})
    STORE(AT(redo), vmovdqu8 R(0), (%r8,%r10){%k1})
    xorl    %eax, %eax
    ret

AT(together_page_0):
    testl   %edx, %edx
    jnz     AT(together_four)
    xorl    %eax, %eax
    ret

/* The first block and the last two, and between them twelve from a line on: three there, three at r9, three at r10, two at r11
 * and three at rax, which is the least multiple of 64 from where three reach what the last two do not; r9, r10 and r11
 * are that where it is less than 192, 384 and 576, else these. */
    .p2align 5
AT(together_256):
    movl    %edi, %eax
    negl    %eax
    andl    $63, %eax
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), -128(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    addq    %rax, %rdi
    subl    %eax, %edx              /* 193 .. 1024 from there on */
    xorl    %r9d, %r9d
    leal    -257(%rdx), %eax
    andl    $-64, %eax
    cmovsl  %r9d, %eax
    movl    $192, %r9d
    cmpl    %r9d, %eax
    cmovbl  %eax, %r9d
    movl    $384, %r10d
    cmpl    %r10d, %eax
    cmovbl  %eax, %r10d
    movl    $576, %r11d
    cmpl    %r11d, %eax
    cmovbl  %eax, %r11d
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), 64(%rdi))
    STORE(AT(redo), MOVE R(0), 128(%rdi))
    STORE(AT(redo), MOVE R(0), (%rdi,%r9))
    STORE(AT(redo), MOVE R(0), 64(%rdi,%r9))
    STORE(AT(redo), MOVE R(0), 128(%rdi,%r9))
    STORE(AT(redo), MOVE R(0), (%rdi,%r10))
    STORE(AT(redo), MOVE R(0), 64(%rdi,%r10))
    STORE(AT(redo), MOVE R(0), 128(%rdi,%r10))
    STORE(AT(redo), MOVE R(0), (%rdi,%r11))
    STORE(AT(redo), MOVE R(0), 64(%rdi,%r11))
    STORE(AT(redo), MOVE R(0), (%rdi,%rax))
    STORE(AT(redo), MOVE R(0), 64(%rdi,%rax))
    STORE(AT(redo), MOVE R(0), 128(%rdi,%rax))
    xorl    %eax, %eax
    ret
