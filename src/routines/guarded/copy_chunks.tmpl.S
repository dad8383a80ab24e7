/* Of copy_large.tmpl.S: chunks, each copied from its end down. */
/* Loads would wait for stores that are on their way, in the same line of another page: from the end down they do not, nor do
 * those of a chunk for the stores of the one before. rdi and rsi are a chunk's beginning, rax and r10 what is left of it. */
AT(maybe_chunks):
    movq    %rsi, %r8
    subq    %rdi, %r8
    cmpq    %rdx, %r8
    jb      AT(loop)
    CHUNKS_BEGIN
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    jmp     AT(first_chunk)         /* whose first page, of the destination, has been stored to */
AT(chunk):
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    STORE(AT(step_0), MOVE R(5), (%rdi))
AT(first_chunk):
    movq    %r11, %rax
    subq    %rdi, %rax
    addq    $(4 * V - 1), %rax
    andq    $(-4 * V), %rax
    cmpq    $CHUNK, %rax
    ja      AT(not_the_last)
    STORE_END(AT(step_0))
    STORE(AT(step_0), MOVE R(3), END_BLOCK(1))
    STORE(AT(step_0), MOVE R(2), END_BLOCK(2))
    STORE(AT(step_0), MOVE R(1), END_BLOCK(3))
AT(chunk_begins):
    leaq    (%rsi,%rax), %r10
    addq    %rdi, %rax
    movq    %rax, %r9
    .p2align 4
AT(chunk_step):
#if V == 64
    LOAD(AT(step_0), MOVE -V(%r10), R(8))
    LOAD(AT(step_0), MOVE -2 * V(%r10), R(7))
    subq    $(4 * V), %rax
    subq    $(4 * V), %r10
    LOAD(AT(step_0), MOVE V(%r10), R(6))
    LOAD(AT(step_0), MOVE (%r10), R(5))
    STORE(AT(step_0), MOVE R(8), 3 * V(%rax))
    STORE(AT(step_0), MOVE R(7), 2 * V(%rax))
    STORE(AT(step_0), MOVE R(6), V(%rax))
    STORE(AT(step_0), MOVE R(5), (%rax))
#else                               /* by turns, as copy_avx2_step_either_way */
    LOAD(AT(step_0), MOVE -V(%r10), R(8))
    STORE(AT(step_0), MOVE R(8), -V(%rax))
    LOAD(AT(step_0), MOVE -2 * V(%r10), R(7))
    STORE(AT(step_0), MOVE R(7), -2 * V(%rax))
    LOAD(AT(step_0), MOVE -3 * V(%r10), R(6))
    STORE(AT(step_0), MOVE R(6), -3 * V(%rax))
    LOAD(AT(step_0), MOVE -4 * V(%r10), R(5))
    STORE(AT(step_0), MOVE R(5), -4 * V(%rax))
    subq    $(4 * V), %r10
    subq    $(4 * V), %rax
#endif
    cmpq    %rdi, %rax
    ja      AT(chunk_step)
    subq    %rdi, %r9
    addq    %r9, %rdi
    addq    %r9, %rsi
    cmpq    %r11, %rdi
    jb      AT(chunk)
    CLEAN_COPY
    xorl    %eax, %eax
    ret
AT(not_the_last):
    movl    $CHUNK, %eax
    jmp     AT(chunk_begins)

#if V == 32
/* All are steps of one chunk, whose pages the first line and the tail have proved. As in public.S the first step does not wait
 * for the direction of the others, nor does a vector for the one before. rdi and rsi stay, rax and r10 are the cursors, r8 is
 * to the next vector, r9 to the last of a step. */
    .p2align 4
AT(maybe_one_chunk):
    movq    %rsi, %r8
    subq    %rdi, %r8
    cmpq    %rdx, %r8
    jb      AT(not_one_chunk)
    CHUNKS_BEGIN
    STORE_END(AT(step_0))
    STORE(AT(step_0), MOVE R(3), END_BLOCK(1))
    STORE(AT(step_0), MOVE R(2), END_BLOCK(2))
    STORE(AT(step_0), MOVE R(1), END_BLOCK(3))
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    LOAD(AT(step_0), MOVE V(%rsi), R(6))
    LOAD(AT(step_0), MOVE 2 * V(%rsi), R(7))
    LOAD(AT(step_0), MOVE 3 * V(%rsi), R(8))
    leaq    -4 * V - 1(%r11), %rdx
    subq    %rdi, %rdx              /* 4V for each step but the first two, and a rest */
    movq    %rdx, %r10
    andq    $(-4 * V), %r10
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %r9d
    sbbq    %r8, %r8
    andq    %r8, %r10
    movl    %r8d, %r9d
    andl    $(3 * V), %r9d
    andq    $(-2 * V), %r8
    addq    %r9, %r10
    addq    $V, %r8                 /* -V or V */
    leaq    (%rdi,%r10), %rax
    addq    %rsi, %r10
    leaq    (%r8,%r8,2), %r9
    STORE(AT(step_0), MOVE R(5), (%rdi))
    STORE(AT(step_0), MOVE R(6), V(%rdi))
    STORE(AT(step_0), MOVE R(7), 2 * V(%rdi))
    STORE(AT(step_0), MOVE R(8), 3 * V(%rdi))
    subq    $(-4 * V), %rax
    subq    $(-4 * V), %r10
    .p2align 6
AT(either_way):
    LOAD(AT(step_0), MOVE (%r10), R(5))
    STORE(AT(step_0), MOVE R(5), (%rax))
    LOAD(AT(step_0), MOVE (%r10,%r8), R(6))
    STORE(AT(step_0), MOVE R(6), (%rax,%r8))
    LOAD(AT(step_0), MOVE (%r10,%r8,2), R(7))
    STORE(AT(step_0), MOVE R(7), (%rax,%r8,2))
    LOAD(AT(step_0), MOVE (%r10,%r9), R(8))
    STORE(AT(step_0), MOVE R(8), (%rax,%r9))
    leaq    (%r10,%r8,4), %r10
    leaq    (%rax,%r8,4), %rax
    subq    $(4 * V), %rdx
    jae     AT(either_way)
    CLEAN_COPY
    xorl    %eax, %eax
    ret
#endif
