/* 513 to 1024 bytes, sizes apart. A part of copy_avx512.tmpl.S. */
#if WHERRY_EDGE_BRANCH
/* Lines of the destination, as many as the size alone tells, wherever the sides lie: with two blocks that end where the
 * buffer ends (n - 1) / 64 - 1 will do. As few as the places need are one less at times, but where these change from call
 * to call a wrong guess costs ten blocks. No loop: its jumps take longer than these. In ascending order, since what lies in memory is fetched in that order, and forward whatever the
 * distance, since where loads wait for stores 4 KiB apart so few bytes hardly do. Not for sides that meet close by (CLOSE).
 *
 *   r8  dst - src
 *   r9  the first of the lines
 *   r10 the source of what r9 is at
 */
#define LINE_MORE(at)                          \
    subl    $64, %ecx;                         \
    jbe     move_last_128;                     \
    vmovdqu64 at(%r10), %zmm16;                \
    vmovdqu64 %zmm16, at(%r9)
    .p2align 6
move_513_on:
    CLOSE
    jb      move_close
    cmpq    $1024, %rdx
    ja      move_1025_on
    LOAD_FIRST(%rsi)
    movq    %rdi, %r9
    cmpl    $0, wherry_thresholds + COPY_SOURCE_PAGE(%rip)
    jne     move_sixteen            /* on a CPU of another maker; lines of the source */
    TO_NEXT_LINE(%r9)
    PREFETCH_LINES
    STORE_FIRST(%rdi)
    movq    %r9, %r10
    leal    -512(%rdx), %ecx
    subq    %r8, %r10
    vmovdqu64 (%r10), %zmm16
    vmovdqu64 64(%r10), %zmm17
    vmovdqu64 128(%r10), %zmm18
    vmovdqu64 192(%r10), %zmm19
    vmovdqu64 256(%r10), %zmm20
    vmovdqu64 320(%r10), %zmm21
    vmovdqu64 384(%r10), %zmm22
    vmovdqu64 %zmm16, (%r9)
    vmovdqu64 %zmm17, 64(%r9)
    vmovdqu64 %zmm18, 128(%r9)
    vmovdqu64 %zmm19, 192(%r9)
    vmovdqu64 %zmm20, 256(%r9)
    vmovdqu64 %zmm21, 320(%r9)
    vmovdqu64 %zmm22, 384(%r9)
    LINE_MORE(448)
    LINE_MORE(512)
    LINE_MORE(576)
    LINE_MORE(640)
    LINE_MORE(704)
    LINE_MORE(768)
    LINE_MORE(832)
move_last_128:
    vmovdqu64 -128(%rsi,%rdx), %zmm17
    LOAD_LAST(%rsi, %rdx)
    vmovdqu64 %zmm17, -128(%rdi,%rdx)
    STORE_LAST(%rdi, %rdx)
    WATCH_PICK(wherry_watch_copies, %rsi, move_picked_back)
    ret
#else
/* Where the branches on a size are guessed rightly it has the fewest blocks: lines of the source, as many as there are,
 * since a load across lines costs more than a store across them. But one store across pages costs more than all that
 * (4.5 ns on Zen 5): then lines of the destination. In ascending order to the last load, since what lies in memory is
 * fetched in that order, and forward whatever the distance, since where loads wait for stores 4 KiB apart so few bytes
 * hardly do. Not for sides that meet close by (CLOSE).
 *
 *   r8  dst - src
 *   r10 the source of the line at rdi
 *   r11 what is left from there on
 */
    .p2align 6
move_513_whole:
    CLOSE
    jb      move_close
    cmpq    $1024, %rdx
    ja      move_1025_on
    WATCH_PICK(wherry_watch_copies, %rsi, move_picked_at_513)
move_513_watched:
    LOAD_FIRST(%rsi)
    leaq    (%rdi,%rdx), %r11
    movq    %rdi, %rcx
    movq    %rsi, %r10
    xorq    %r11, %rcx
    STORE_FIRST(%rdi)
    cmpq    wherry_thresholds + COPY_SOURCE_PAGE(%rip), %rcx
    ja      move_by_destination
    TO_NEXT_LINE(%r10)
    leaq    (%r10,%r8), %rdi
move_from_line:
    subl    %edi, %r11d
    .p2align 4
move_step_apart:
    vmovdqu64 (%r10), %zmm21
    vmovdqu64 64(%r10), %zmm22
    vmovdqu64 128(%r10), %zmm23
    vmovdqu64 192(%r10), %zmm24
    addq    $256, %r10
    vmovdqu64 %zmm21, (%rdi)
    vmovdqu64 %zmm22, 64(%rdi)
    vmovdqu64 %zmm23, 128(%rdi)
    vmovdqu64 %zmm24, 192(%rdi)
    addq    $256, %rdi
    subl    $256, %r11d
    cmpl    $256, %r11d
    ja      move_step_apart
    cmpl    $128, %r11d
    jbe     move_rest_128
    vmovdqu64 (%r10), %zmm16
    vmovdqu64 64(%r10), %zmm17
    vmovdqu64 -128(%r10,%r11), %zmm18
    LOAD_LAST(%r10, %r11)
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, 64(%rdi)
    vmovdqu64 %zmm18, -128(%rdi,%r11)
    STORE_LAST(%rdi, %r11)
    ret

move_rest_128:
    cmpl    $64, %r11d
    jbe     move_rest_64
    vmovdqu64 (%r10), %zmm16
    LOAD_LAST(%r10, %r11)
    vmovdqu64 %zmm16, (%rdi)
    STORE_LAST(%rdi, %r11)
    ret

move_rest_64:
    LOAD_LAST(%r10, %r11)
    STORE_LAST(%rdi, %r11)
    ret
    .nops   7                       /* so that move_1025_on begins a line */

#endif
