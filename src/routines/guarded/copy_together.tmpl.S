/* n <= 1024 for V = 64, as in public.S where sizes are together: one run of instructions for a class, and no branch on n
 * within it. From 256 bytes on the class is that of copy_sixteen_lines.tmpl.S. To be included behind it.
 */
AT(together):
    cmpq    $LARGE, %rdx
#if WHERRY_EDGE_BRANCH
    ja      AT(large)
#else
    ja      AT(apart_513)           /* which asks for the loop sooner */
#endif
    cmpl    $255, %edx
#if WHERRY_EDGE_BRANCH
    ja      AT(sixteen)
#else
    ja      AT(together_256)
#endif
    cmpq    $4096, %rsi             /* as for one block under a mask */
    jb      AT(together_page_0)
/* As move_to_255 of public.S. */
AT(together_four):
    CUT_AT_PAGE_END(%rsi, %edx, %eax, AT(masked))
    CUT_AT_PAGE_END(%rdi, %edx, %eax, AT(masked))
    prefetchw (%rdi)
    prefetcht0 (%rsi)
    prefetchw -1(%rdi,%rdx)
    PLACES_TO_COPY(%rax, %eax, AT(anything))
    LOAD(AT(redo), vmovdqu8 (%rsi), %ymm16{%k1}{z})
    LOAD(AT(redo), vmovdqu8 (%rsi,%r10), %ymm21{%k1}{z})
    LOAD(AT(redo), MOVE (%r11,%rax), R(1))
    LOAD(AT(redo), MOVE (%r11,%r8), R(2))
    LOAD(AT(redo), vmovdqu64 -64(%r11,%rdx), %ymm19)
    LOAD(AT(redo), vmovdqu64 -32(%r11,%rdx), %ymm20)
AT(together_stores):
    STORE(AT(together_spill), vmovdqu8 %ymm16, (%rdi){%k1})
    STORE(AT(together_spill), vmovdqu8 %ymm21, (%rdi,%r10){%k1})
    STORE(AT(together_spill), MOVE R(1), (%r9,%rax))
    STORE(AT(together_spill), MOVE R(2), (%r9,%r8))
    STORE(AT(together_spill), vmovdqu64 %ymm19, -64(%r9,%rdx))
    STORE(AT(together_spill), vmovdqu64 %ymm20, -32(%r9,%rdx))
    xorl    %eax, %eax
    ret

AT(together_page_0):
    testl   %edx, %edx
    jnz     AT(together_four)
    xorl    %eax, %eax
    ret

#if !WHERRY_EDGE_BRANCH
/* As move_together_loop of public.S. So few bytes lie on two pages at most, on either side: when both ends are there all is, and
 * of the end nothing is stored before both of its sides are. After a fault all is done again from the first byte on, since
 * the sides are disjoint.
 *
 *   r8  dst - src
 *   r9  the source of the last four blocks
 *   r10 the source of what comes next
 */
/* clang-format off */
#define MOVE_4(from, ...)                                 \
    LOAD(AT(redo), MOVE (from), R(0));                    \
    LOAD(AT(redo), MOVE 64(from), R(1));                  \
    LOAD(AT(redo), MOVE 128(from), R(2));                 \
    LOAD(AT(redo), MOVE 192(from), R(3));                 \
    STORE(AT(redo), MOVE R(0), (__VA_ARGS__));            \
    STORE(AT(redo), MOVE R(1), 64(__VA_ARGS__));          \
    STORE(AT(redo), MOVE R(2), 128(__VA_ARGS__));         \
    STORE(AT(redo), MOVE R(3), 192(__VA_ARGS__))
/* clang-format on */
AT(together_256):
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    je      AT(sixteen)
    movq    %rdi, %r8
    leal    (%rdx,%rdx), %r9d
    subq    %rsi, %r8
    leaq    (%r8,%rdx), %r10
    cmpq    %r9, %r10
    jb      AT(sixteen)
    MOVE_4(%rsi, %rdi)
    leaq    -256(%rsi,%rdx), %r9
    movq    %rdi, %r10
    MOVE_4(%r9, %r9,%r8)
    andq    $-64, %r10
    addq    $256, %r10
    subq    %r8, %r10
    cmpl    $512, %edx
    jbe     AT(together_256_done)
AT(together_step):
    MOVE_4(%r10, %r10,%r8)
    addq    $256, %r10
    cmpq    %r9, %r10
    jb      AT(together_step)
AT(together_256_done):
    xorl    %eax, %eax
    ret
#undef MOVE_4
#endif

/* As SPILLED, with the destination in r9 too, but for what goes to below the stack: that is below what is called. */
AT(together_spill):
    cmpq    %rdi, %r9
    SPILL_ROOM(%rdi, %rdx)
    movq    %rsp, %rdi
    leaq    -72(%rsp), %r9
    cmoveq  %rdi, %r9
    call    AT(together_stores)
    SPILL_ENDS
