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
 * for the direction of the others. rdi and rsi stay, rax and r10 are the cursors, r9 is to the next step. */
    .p2align 4
AT(maybe_one_chunk):
    movq    %rsi, %r8
    subq    %rdi, %r8
    cmpq    %rdx, %r8
    jb      AT(not_one_chunk)
    CHUNKS_BEGIN
    STORE_END(AT(step_0))
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    LOAD(AT(step_0), MOVE V(%rsi), R(6))
    LOAD(AT(step_0), MOVE 2 * V(%rsi), R(7))
    LOAD(AT(step_0), MOVE 3 * V(%rsi), R(8))
    leaq    -4 * V - 1(%r11), %rdx
    subq    %rdi, %rdx              /* 4V for each step but the first two, and a rest */
    movq    %rdx, %r10
    andq    $(-4 * V), %r10
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %r9d
    sbbq    %r9, %r9
    andq    %r9, %r10
    andq    $(-8 * V), %r9
    addq    $(4 * V), %r9           /* -4V or 4V */
    leaq    (%rdi,%r10), %rax
    addq    %rsi, %r10
    STORE(AT(step_0), MOVE R(5), (%rdi))
    STORE(AT(step_0), MOVE R(6), V(%rdi))
    STORE(AT(step_0), MOVE R(7), 2 * V(%rdi))
    STORE(AT(step_0), MOVE R(8), 3 * V(%rdi))
    .p2align 4
AT(either_way):
    LOAD(AT(step_0), MOVE 4 * V(%r10), R(5))
    LOAD(AT(step_0), MOVE 5 * V(%r10), R(6))
    LOAD(AT(step_0), MOVE 6 * V(%r10), R(7))
    LOAD(AT(step_0), MOVE 7 * V(%r10), R(8))
    addq    %r9, %r10
    STORE(AT(step_0), MOVE R(5), 4 * V(%rax))
    STORE(AT(step_0), MOVE R(6), 5 * V(%rax))
    STORE(AT(step_0), MOVE R(7), 6 * V(%rax))
    STORE(AT(step_0), MOVE R(8), 7 * V(%rax))
    addq    %r9, %rax
    subq    $(4 * V), %rdx
    jae     AT(either_way)
    STORE(AT(step_0), MOVE R(1), END_BLOCK(3))
    STORE(AT(step_0), MOVE R(2), END_BLOCK(2))
    STORE(AT(step_0), MOVE R(3), END_BLOCK(1))
    CLEAN_COPY
    xorl    %eax, %eax
    ret
#endif
