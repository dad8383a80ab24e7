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
/* As set_to_255 of public.S. */
AT(together_four):
    CUT_AT_PAGE_END(%rdi, %edx, %eax, AT(masked))
    prefetchw (%rdi)
    prefetchw -1(%rdi,%rdx)
    PLACES_TO_SET(%rax, %eax)
    STORE(AT(redo), vmovdqu8 %ymm16, (%rdi){%k1})
    STORE(AT(redo), vmovdqu8 %ymm16, (%rdi,%r11){%k1})
    STORE(AT(redo), MOVE R(0), (%r8,%rax))
    STORE(AT(redo), MOVE R(0), (%r8,%r9))
    STORE(AT(redo), vmovdqu64 %ymm16, (%r8,%r10))
    STORE(AT(redo), vmovdqu64 %ymm16, 32(%r8,%r10))
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
    FARTHEST_PLACE
    LIMITED_PLACE(192, %r9d)
    LIMITED_PLACE(384, %r10d)
    LIMITED_PLACE(576, %r11d)
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
