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
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
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
 * (4.5 ns on Zen 5): then lines of the destination, and without a branch, which would be guessed wrong where places change
 * from call to call. No address waits for a load, with which rows through memory take a third longer: what the plan says is
 * asked by a branch. In ascending order to the last load, since what lies in memory is fetched in that order,
 * and forward whatever the distance, since where loads wait for stores 4 KiB apart so few bytes hardly do. Not for sides
 * that meet close by (CLOSE).
 *
 *   rdi, rsi what the next line is copied to, and from
 *   edx what is left from there on
 *   r9  less than 0 by what is copied before the first line
 */
    .p2align 6
move_513_whole:
    CLOSE
    jb      move_close
    cmpq    $1024, %rdx
    ja      move_1025_on
    WATCH_PICK(wherry_watch_copies, %rsi, move_picked_at_513)
move_513_watched:
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
    je      move_by_destination
    movl    %edi, %ecx
    movq    %rdi, %r10
    movq    %rsi, %r9
    orl     $-ALIAS_BYTES, %ecx
    orq     $-64, %r10
    orq     $-64, %r9
    addl    %edx, %ecx              /* carries where the destination goes on in another page */
    cmovcq  %r10, %r9
move_from_line:
    LOAD_FIRST(%rsi)
    STORE_FIRST(%rdi)
    subq    %r9, %rsi
    subq    %r9, %rdi
    addl    %r9d, %edx
    .p2align 4
move_step_apart:
    vmovdqu64 (%rsi), %zmm21
    vmovdqu64 64(%rsi), %zmm22
    vmovdqu64 128(%rsi), %zmm23
    vmovdqu64 192(%rsi), %zmm24
    addq    $256, %rsi
    vmovdqu64 %zmm21, (%rdi)
    vmovdqu64 %zmm22, 64(%rdi)
    vmovdqu64 %zmm23, 128(%rdi)
    vmovdqu64 %zmm24, 192(%rdi)
    addq    $256, %rdi
    subl    $256, %edx
    cmpl    $256, %edx
    ja      move_step_apart
    cmpl    $128, %edx
    jbe     move_rest_128
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 64(%rsi), %zmm17
    vmovdqu64 -128(%rsi,%rdx), %zmm18
    LOAD_LAST(%rsi, %rdx)
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, 64(%rdi)
    vmovdqu64 %zmm18, -128(%rdi,%rdx)
    STORE_LAST(%rdi, %rdx)
    ret

move_rest_128:
    cmpl    $64, %edx
    jbe     move_rest_64
    vmovdqu64 (%rsi), %zmm16
    LOAD_LAST(%rsi, %rdx)
    vmovdqu64 %zmm16, (%rdi)
    STORE_LAST(%rdi, %rdx)
    ret

move_rest_64:
    LOAD_LAST(%rsi, %rdx)
    STORE_LAST(%rdi, %rdx)
    ret
    .nops   7                       /* so that move_1025_on begins a line */

#endif
