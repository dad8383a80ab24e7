/* n <= 1024 for V = 64, as in public.S where sizes are apart: just the blocks that n reaches, behind branches. Stores in
 * ascending order.
 *
 * Block i is in R(i), with four blocks the last but one in R(9); the first and the one at the end in those of ends.h.
 */
/* clang-format off */
#ifdef FIRST_WHOLE
#define LOAD_FIRST(lost) LOAD(lost, END_MOVE (%rsi), FIRST_WHOLE)
#define STORE_FIRST(lost) STORE(lost, END_MOVE FIRST_WHOLE, (%rdi))
#else
#define LOAD_FIRST(lost)                                  \
    LOAD(lost, END_MOVE (%rsi), FIRST_0);                 \
    LOAD(lost, END_MOVE 32(%rsi), FIRST_32)
#define STORE_FIRST(lost)                                 \
    STORE(lost, END_MOVE FIRST_0, (%rdi));                \
    STORE(lost, END_MOVE FIRST_32, 32(%rdi))
#endif
#define LOAD_LAST(lost)                                   \
    LOAD(lost, END_MOVE -64(%rsi,%rdx), LAST_0);          \
    LOAD(lost, END_MOVE -32(%rsi,%rdx), LAST_32)
#define STORE_LAST(lost)                                  \
    STORE(lost, END_MOVE LAST_0, -64(%rdi,%rdx));         \
    STORE(lost, END_MOVE LAST_32, -32(%rdi,%rdx));        \
    CLEAN_COPY                                            \
    xorl    %eax, %eax;                                   \
    ret
/* What the classes of 257 to 512 bytes begin to store with. */
#define APART_STORE_4                                     \
    STORE_FIRST(AT(apart_spill));                         \
    STORE(AT(apart_spill), MOVE R(1), 64(%rdi));          \
    STORE(AT(apart_spill), MOVE R(2), 128(%rdi));         \
    STORE(AT(apart_spill), MOVE R(3), 192(%rdi))
#define APART_TO_384                                      \
    cmpl    $320, %edx;                                   \
    ja      AT(apart_6_blocks);                           \
    APART_STORE_4;                                        \
    STORE_LAST(AT(apart_spill))
#define APART_TO_512                                      \
    LOAD(AT(redo), MOVE 256(%rsi), R(4));                 \
    LOAD(AT(redo), MOVE 320(%rsi), R(5));                 \
    cmpl    $448, %edx;                                   \
    jbe     AT(apart_7_blocks);                           \
    LOAD(AT(redo), MOVE 384(%rsi), R(6));                 \
    APART_STORE_4;                                        \
    STORE(AT(apart_spill), MOVE R(4), 256(%rdi));         \
    STORE(AT(apart_spill), MOVE R(5), 320(%rdi));         \
    STORE(AT(apart_spill), MOVE R(6), 384(%rdi));         \
    STORE_LAST(AT(apart_spill))
/* clang-format on */

TOP:
#if !WHERRY_EDGE_BRANCH
    cmpq    $512, %rdx              /* before the others, which memcpy has less of to ask on the way there */
    ja      AT(apart_513)
#endif
    cmpq    $64, %rdx
    ja      AT(apart_65)
AT(to_64):
    cmpq    $4096, %rsi             /* as in public.S: null and its like, where nothing is copied */
    jb      AT(from_page_0)
AT(masked):
    prefetchw (%rdi)                /* as in public.S; none that cannot be fetched is a fault */
#if !WHERRY_EDGE_BRANCH
    prefetcht0 (%rsi)
#endif
    AT_PAGE_END(%rsi, 32, %eax, AT(near_page_end))
    AT_PAGE_END(%rdi, 32, %eax, AT(near_page_end))
AT(halves):
    orq     $-1, %r8
    xorl    %r9d, %r9d
    bzhiq   %rdx, %r8, %r8
    kmovd   %r8d, %k1
    shrq    $32, %r8
    popcntl %r8d, %r8d              /* n - 32, or 0 */
AT(halves_placed):
    LOAD(AT(redo), vmovdqu8 (%rsi,%r9), %ymm16{%k1}{z})
    LOAD(AT(redo), vmovdqu8 (%rsi,%r8), %ymm17{%k1}{z})
AT(masked_stores):
    STORE(AT(masked_spill), vmovdqu8 %ymm16, (%rdi,%r9){%k1})
    STORE(AT(masked_spill), vmovdqu8 %ymm17, (%rdi,%r8){%k1})
    xorl    %eax, %eax
    ret

AT(near_page_end):                  /* below 32 bytes one block that ends where the buffer ends, twice */
    cmpl    $32, %edx
    jae     AT(halves)
    leaq    -32(%rdx), %r8
    orl     $-1, %eax
    movq    %r8, %r9
    shrxl   %edx, %eax, %eax
    notl    %eax                    /* the upper n bits */
    kmovd   %eax, %k1
    jmp     AT(halves_placed)

AT(from_page_0):
    testl   %edx, %edx
    jnz     AT(masked)
    xorl    %eax, %eax
    ret

    .p2align 6
AT(apart_65):
    cmpq    $128, %rdx
    ja      AT(apart_129)
    PREFETCH_TO_128
    LOAD_FIRST(AT(redo))
    LOAD_LAST(AT(redo))
    STORE_FIRST(AT(apart_four_spill))
    STORE_LAST(AT(apart_four_spill))

    .p2align 6
AT(apart_129):
    cmpq    $256, %rdx
    ja      AT(apart_257)
    PREFETCH_TO_256
    LOAD_FIRST(AT(redo))
    LOAD(AT(redo), MOVE 64(%rsi), R(1))
    LOAD(AT(redo), MOVE -128(%rsi,%rdx), R(9))
    LOAD_LAST(AT(redo))
    STORE_FIRST(AT(apart_four_spill))
    STORE(AT(apart_four_spill), MOVE R(1), 64(%rdi))
    STORE(AT(apart_four_spill), MOVE R(9), -128(%rdi,%rdx))
    STORE_LAST(AT(apart_four_spill))

    .p2align 6
AT(apart_257):
#if WHERRY_EDGE_BRANCH              /* else the larger have been told */
    cmpq    $512, %rdx
    ja      AT(apart_513)
#endif
    PREFETCH_TO_512
    LOAD_FIRST(AT(redo))
    LOAD(AT(redo), MOVE 64(%rsi), R(1))
    LOAD(AT(redo), MOVE 128(%rsi), R(2))
    LOAD_LAST(AT(redo))
    LOAD(AT(redo), MOVE 192(%rsi), R(3))
    cmpl    $384, %edx
#if WHERRY_EDGE_BRANCH              /* the order of public.S, which hangs on that as well */
    ja      AT(apart_385)
    APART_TO_384
    .p2align 5
AT(apart_385):
    APART_TO_512
#else
    jbe     AT(apart_to_384)
    APART_TO_512
    .p2align 5
AT(apart_to_384):
    APART_TO_384
#endif

    .p2align 5
AT(apart_6_blocks):
    LOAD(AT(redo), MOVE 256(%rsi), R(4))
    APART_STORE_4
    STORE(AT(apart_spill), MOVE R(4), 256(%rdi))
    STORE_LAST(AT(apart_spill))

    .p2align 5
AT(apart_7_blocks):
    APART_STORE_4
    STORE(AT(apart_spill), MOVE R(4), 256(%rdi))
    STORE(AT(apart_spill), MOVE R(5), 320(%rdi))
    STORE_LAST(AT(apart_spill))

#if WHERRY_EDGE_BRANCH
/* As many lines of the destination as the size tells, as in public.S; from the beginning again after a fault, since both sides
 * are disjoint. Where they are not, or lines of the source are wanted, as sizes together.
 *
 *   r8  dst - src
 *   r9  the first of the lines
 *   r10 the source of what r9 is at
 *   eax n - 512, less 64 for each line more
 */
/* clang-format off */
#define LINE_MORE(at)                                     \
    subl    $64, %eax;                                    \
    jbe     AT(apart_last_128);                           \
    LOAD(AT(redo), MOVE at(%r10), R(0));                  \
    STORE(AT(redo), MOVE R(0), at(%r9))
/* clang-format on */
    .p2align 6
AT(apart_513):
    cmpq    $1024, %rdx
    ja      AT(large)
    movq    %rdi, %r8
    subq    %rsi, %r8
    leaq    (%rdx,%rdx), %r9
    leaq    (%r8,%rdx), %rax
    cmpq    %r9, %rax
    jb      AT(sixteen)
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
    jne     AT(sixteen)
    LOAD_FIRST(AT(redo))
    movq    %rdi, %r9
    orq     $63, %r9
    leal    -512(%rdx), %eax
    addq    $1, %r9
    PREFETCH_LINES
    STORE_FIRST(AT(redo))
    movq    %r9, %r10
    subq    %r8, %r10
    LOAD(AT(redo), MOVE (%r10), R(0))
    LOAD(AT(redo), MOVE 64(%r10), R(1))
    LOAD(AT(redo), MOVE 128(%r10), R(2))
    LOAD(AT(redo), MOVE 192(%r10), R(3))
    LOAD(AT(redo), MOVE 256(%r10), R(4))
    LOAD(AT(redo), MOVE 320(%r10), R(5))
    LOAD(AT(redo), MOVE 384(%r10), R(6))
    STORE(AT(redo), MOVE R(0), (%r9))
    STORE(AT(redo), MOVE R(1), 64(%r9))
    STORE(AT(redo), MOVE R(2), 128(%r9))
    STORE(AT(redo), MOVE R(3), 192(%r9))
    STORE(AT(redo), MOVE R(4), 256(%r9))
    STORE(AT(redo), MOVE R(5), 320(%r9))
    STORE(AT(redo), MOVE R(6), 384(%r9))
    LINE_MORE(448)
    LINE_MORE(512)
    LINE_MORE(576)
    LINE_MORE(640)
    LINE_MORE(704)
    LINE_MORE(768)
    LINE_MORE(832)
AT(apart_last_128):
    LOAD(AT(redo), MOVE -128(%rsi,%rdx), R(1))
    LOAD_LAST(AT(redo))
    STORE(AT(redo), MOVE R(1), -128(%rdi,%rdx))
    STORE_LAST(AT(redo))
#else
/* By the loop; where the destination begins inside the source, as sizes together. Where a 64-byte store takes two cycles, by
 * 32-byte vectors, as memcpy. */
    .p2align 5
AT(apart_513):
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     wherry_guarded_copy_avx2_large
    cmpq    $1024, %rdx
    ja      AT(large)
    movq    %rdi, %rax
    subq    %rsi, %rax
    cmpq    %rdx, %rax
    jb      AT(sixteen)
    cmpq    $-TIGHT, %rax
    ja      AT(tight)
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
    je      AT(apart_by_destination)
    movl    %edi, %r8d              /* lines of the source, or of a destination on two pages: copy_avx512_lines.tmpl.S */
    movq    %rdi, %r9
    movq    %rsi, %rax
    orl     $-ALIAS_BYTES, %r8d
    orq     $-64, %r9
    orq     $-64, %rax
    addl    %edx, %r8d
    cmovcq  %r9, %rax
AT(apart_from_line):
    LOAD_FIRST(AT(redo))
    leaq    -256(%rdi,%rdx), %r11   /* up to 256 bytes are left from here on */
    STORE_FIRST(AT(redo))
    subq    %rax, %rsi
    subq    %rax, %rdi
    .p2align 4
AT(apart_step):
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    LOAD(AT(step_0), MOVE 64(%rsi), R(6))
    LOAD(AT(step_0), MOVE 128(%rsi), R(7))
    LOAD(AT(step_0), MOVE 192(%rsi), R(8))
    addq    $256, %rsi
    STORE(AT(stored_0), MOVE R(5), (%rdi))
    STORE(AT(stored_1), MOVE R(6), 64(%rdi))
    STORE(AT(stored_2), MOVE R(7), 128(%rdi))
    STORE(AT(stored_3), MOVE R(8), 192(%rdi))
    addq    $256, %rdi
    cmpq    %r11, %rdi
    jb      AT(apart_step)
    leal    256(%r11), %edx
    subl    %edi, %edx
    cmpl    $128, %edx
    jbe     AT(apart_rest_128)
    LOAD(AT(step_0), MOVE (%rsi), R(0))
    LOAD(AT(step_0), MOVE 64(%rsi), R(1))
    LOAD(AT(step_0), MOVE -128(%rsi,%rdx), R(2))
    LOAD_LAST(AT(step_0))
    STORE(AT(step_0), MOVE R(0), (%rdi))
    STORE(AT(step_0), MOVE R(1), 64(%rdi))
    STORE(AT(step_0), MOVE R(2), -128(%rdi,%rdx))
    STORE_LAST(AT(step_0))

AT(apart_rest_128):
    cmpl    $64, %edx
    jbe     AT(apart_rest_64)
    LOAD(AT(step_0), MOVE (%rsi), R(0))
    LOAD_LAST(AT(step_0))
    STORE(AT(step_0), MOVE R(0), (%rdi))
    STORE_LAST(AT(step_0))

AT(apart_rest_64):
    LOAD_LAST(AT(step_0))
    STORE_LAST(AT(step_0))

AT(apart_by_destination):
    movq    %rdi, %rax
    orq     $-64, %rax
    jmp     AT(apart_from_line)
#endif

/* All registers of a class into the stack, in the places of the largest. What a smaller one has not loaded lies where the
 * halves at its end overwrite it, or behind n. */
AT(apart_four_spill):
    SPILL_ROOM(%rdi, %rdx)
    MOVE    R(1), 64(%rsp)
    MOVE    R(9), -128(%rsp,%rdx)
    jmp     AT(apart_ends_spill)
    .cfi_adjust_cfa_offset -(SPILL + 24)

AT(apart_spill):
    SPILL_ROOM(%rdi, %rdx)
    MOVE    R(1), 64(%rsp)
    MOVE    R(2), 128(%rsp)
    MOVE    R(3), 192(%rsp)
    MOVE    R(4), 256(%rsp)
    MOVE    R(5), 320(%rsp)
    MOVE    R(6), 384(%rsp)
AT(apart_ends_spill):
#ifdef FIRST_WHOLE
    END_MOVE FIRST_WHOLE, (%rsp)
#else
    END_MOVE FIRST_0, (%rsp)
    END_MOVE FIRST_32, 32(%rsp)
#endif
    END_MOVE LAST_0, -64(%rsp,%rdx)
    END_MOVE LAST_32, -32(%rsp,%rdx)
    CLEAN_COPY
    SPILL_ENDS
