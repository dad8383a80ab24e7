/* Of copy_csum.tmpl.S without PLAIN: V bytes and fewer. */
    .p2align 4
AT(short):
    cmpl    $8, %edx
    jb      AT(all_is_left)
    leal    -1(%rdx), %r9d
    andl    $7, %r9d
    addl    $1, %r9d
    leaq    (%rdi,%rdx), %r11
    LOAD(AT(all_is_left), movq -8(%r11,%rsi), %xmm0)
    subq    %r9, %r11
    xorl    %eax, %eax
    cmpq    %r11, %rdi
    jae     AT(last_word)
AT(word):
    LOAD(AT(words), movq (%rdi,%rsi), %r10)
    STORE(AT(words), movq %r10, (%rdi))
    addq    %r10, %rax
    adcq    $0, %rax
    addq    $8, %rdi
    cmpq    %r11, %rdi
    jb      AT(word)
AT(last_word):
    movq    %r10, %xmm2             /* what it shares with the word before stays as that one was read */
    leal    (,%r9,8), %r10d
    movd    %r10d, %xmm1
    negl    %r10d
    addl    $64, %r10d
    psrlq   %xmm1, %xmm2
    movd    %r10d, %xmm1
    psrlq   %xmm1, %xmm0
    movdqa  %xmm0, %xmm3
    psllq   %xmm1, %xmm3
    por     %xmm3, %xmm2
    STORE(AT(words), movq %xmm2, -8(%r11,%r9))
    movq    %xmm0, %r10
    addq    %r10, %rax
    adcq    $0, %rax
    addq    %r9, %rdi
AT(words):
    FOLD
    leaq    (%r11,%r9), %r10
    subq    %rdx, %r10
    addl    (%rcx), %eax
    adcl    $0, %eax
    movl    %eax, (%rcx)
    subq    %r10, %rdi
    cmpq    %rdx, %rdi
    jne     AT(some_is_left)
    xorl    %eax, %eax
    ret
