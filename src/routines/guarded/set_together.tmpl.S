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

/* As set_256_to_1024 of public.S. rax is how far from the first line that the destination reaches the last one is; r9, r10 and
 * r11 are that where it is less than 448, 640 and 832, else these. */
    .p2align 5
AT(together_256):
    leaq    -1(%rdi,%rdx), %rax
    movq    %rdi, %r8
    STORE(AT(redo), MOVE R(0), (%rdi))
    andq    $-64, %r8
    andq    $-64, %rax
    subq    %r8, %rax
    LIMITED_PLACE(448, %r9d)
    LIMITED_PLACE(640, %r10d)
    LIMITED_PLACE(832, %r11d)
    STORE(AT(redo), MOVE R(0), 64(%r8))
    STORE(AT(redo), MOVE R(0), 128(%r8))
    STORE(AT(redo), MOVE R(0), 192(%r8))
    STORE(AT(redo), MOVE R(0), -192(%r8,%r9))
    STORE(AT(redo), MOVE R(0), -128(%r8,%r9))
    STORE(AT(redo), MOVE R(0), -64(%r8,%r9))
    STORE(AT(redo), MOVE R(0), -192(%r8,%r10))
    STORE(AT(redo), MOVE R(0), -128(%r8,%r10))
    STORE(AT(redo), MOVE R(0), -64(%r8,%r10))
    STORE(AT(redo), MOVE R(0), -192(%r8,%r11))
    STORE(AT(redo), MOVE R(0), -128(%r8,%r11))
    STORE(AT(redo), MOVE R(0), -64(%r8,%r11))
    STORE(AT(redo), MOVE R(0), -192(%r8,%rax))
    STORE(AT(redo), MOVE R(0), -128(%r8,%rax))
    STORE(AT(redo), MOVE R(0), -64(%r8,%rax))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    xorl    %eax, %eax
    ret
