/* n <= 1024 for V = 64, as in public.S where sizes are apart. R(0), which is zmm16, has the byte in all its places. */
TOP:
    vpbroadcastb %esi, R(0)
    cmpq    $64, %rdx
    ja      AT(apart_65)
    cmpq    $4096, %rdi
    jb      AT(at_page_0)
AT(masked):
    prefetchw (%rdi)                /* as in public.S; none that cannot be fetched is a fault */
/* At r8: n - 64 where the block that begins at the buffer might reach into another page, else 0; k1 its bytes. */
    movl    %edi, %eax
    leaq    -64(%rdx), %r8
    andl    $0xfc0, %eax
    xorl    %r9d, %r9d
    cmpl    $0xfc0, %eax
    movq    $-1, %rax
    cmovneq %r9, %r8
    bzhiq   %rdx, %rax, %rax
    subl    %r8d, %r9d
    shlxq   %r9, %rax, %rax
    kmovq   %rax, %k1
    STORE(AT(redo), vmovdqu8 R(0), (%rdi,%r8){%k1})
    xorl    %eax, %eax
    ret

AT(at_page_0):
    testl   %edx, %edx
    jnz     AT(masked)
    xorl    %eax, %eax
    ret

    .p2align 6
AT(apart_65):
    cmpq    $256, %rdx
    ja      AT(apart_257)
    cmpl    $128, %edx
    ja      AT(apart_129)
    PREFETCH_TO_128
#if WHERRY_EDGE_BRANCH
    STORE(AT(redo), MOVE R(0), (%rdi))
#else
    STORE(AT(redo), vmovdqu64 %ymm16, (%rdi))
    STORE(AT(redo), vmovdqu64 %ymm16, 32(%rdi))
#endif
    STORE(AT(redo), vmovdqu64 %ymm16, -64(%rdi,%rdx))
    STORE(AT(redo), vmovdqu64 %ymm16, -32(%rdi,%rdx))
    xorl    %eax, %eax
    ret

    .p2align 6
AT(apart_129):
    PREFETCH_TO_256
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), 64(%rdi))
    STORE(AT(redo), MOVE R(0), -128(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    xorl    %eax, %eax
    ret

/* As in public.S: the first block, lines from either end, three and three, one more above 448 bytes, and the last block. */
    .p2align 5
AT(apart_257):
    cmpq    $1024, %rdx
    ja      AT(large)
#if !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     AT(halves)
#endif
    cmpl    $512, %edx
#if WHERRY_EDGE_BRANCH
    ja      AT(forward)
#else
    ja      AT(apart_513)
#endif
    PREFETCH_TO_512
    leaq    -1(%rdi,%rdx), %rax
    movq    %rdi, %r8
    andq    $-64, %rax
    andq    $-64, %r8
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), 64(%r8))
    STORE(AT(redo), MOVE R(0), 128(%r8))
    STORE(AT(redo), MOVE R(0), 192(%r8))
    cmpl    $448, %edx
    jbe     AT(last_of_512)
    STORE(AT(redo), MOVE R(0), 256(%r8))
AT(last_of_512):
    STORE(AT(redo), MOVE R(0), -192(%rax))
    STORE(AT(redo), MOVE R(0), -128(%rax))
    STORE(AT(redo), MOVE R(0), -64(%rax))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    xorl    %eax, %eax
    ret

#if !WHERRY_EDGE_BRANCH
#define LINE(n)                                \
    STORE(AT(redo), vmovdqa64 %ymm16, 64*(n)(%r8)); \
    STORE(AT(redo), vmovdqa64 %ymm16, 64*(n)+32(%r8))
#define LINE_MORE(n)                           \
    subl    $64, %r9d;                         \
    jbe     AT(last_of_1024);                  \
    LINE(n)
    .p2align 5
AT(apart_513):
    leaq    -1(%rdi,%rdx), %rax
    movq    %rdi, %r8
    leal    -512(%rdx), %r9d
    STORE(AT(redo), MOVE R(0), (%rdi))
    andq    $-64, %rax
    andq    $-64, %r8
    LINE(1)
    LINE(2)
    LINE(3)
    LINE(4)
    LINE(5)
    LINE_MORE(6)
    LINE_MORE(7)
    LINE_MORE(8)
    LINE_MORE(9)
    LINE_MORE(10)
    LINE_MORE(11)
    LINE_MORE(12)
AT(last_of_1024):
    STORE(AT(redo), vmovdqa64 %ymm16, -192(%rax))
    STORE(AT(redo), vmovdqa64 %ymm16, -160(%rax))
    STORE(AT(redo), vmovdqa64 %ymm16, -128(%rax))
    STORE(AT(redo), vmovdqa64 %ymm16, -96(%rax))
    STORE(AT(redo), vmovdqa64 %ymm16, -64(%rax))
    STORE(AT(redo), vmovdqa64 %ymm16, -32(%rax))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    xorl    %eax, %eax
    ret
#undef LINE
#undef LINE_MORE
#endif
