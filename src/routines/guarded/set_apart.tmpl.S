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

/* The first block and the last two, and between them six from a line on, of which those that n does not reach repeat others. */
    .p2align 5
AT(apart_257):
    cmpq    $1024, %rdx
    ja      AT(large)
#if !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     AT(halves)
#endif
    cmpl    $512, %edx
    ja      AT(forward)
    PREFETCH_TO_512
    movl    %edi, %eax
    negl    %eax
    andl    $63, %eax               /* 0 .. 63, to that line */
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), -128(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -64(%rdi,%rdx))
    addq    %rax, %rdi
    subl    %eax, %edx              /* 194 .. 512 from there on */
    movl    $320, %eax
    subl    %edx, %eax
    sarl    $31, %eax
    andl    $192, %eax              /* 192 when n > 320 */
    movl    $448, %r8d
    subl    %edx, %r8d
    sarl    $31, %r8d
    andl    $320, %r8d              /* 320 when n > 448 */
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), 64(%rdi))
    STORE(AT(redo), MOVE R(0), 128(%rdi))
    STORE(AT(redo), MOVE R(0), (%rdi,%rax))
    STORE(AT(redo), MOVE R(0), 64(%rdi,%rax))
    STORE(AT(redo), MOVE R(0), (%rdi,%r8))
    xorl    %eax, %eax
    ret
