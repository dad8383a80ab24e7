/* Of copy_csum.tmpl.S and copy_csum_lines.tmpl.S: the steps past the caches, where the destination was written before; else
 * goes to AT(not_past), rax the last place where a step may begin. */
#ifdef PLAIN
    COPIED_BEFORE(SUMMED_END, %rsi)
    cmpl    $WRITTEN_SURELY, %eax
#else
    movq    %rsi, %r10
    movq    SUMMED_END, %rax
    call    wherry_guarded_summed_before
#endif
    leaq    -4 * V(%r11), %rax
    jne     AT(not_past)
    cmpq    wherry_thresholds + COPY_AHEAD_FROM(%rip), %rdx
    jae     AT(stream_ahead)
AT(stream):
    STEP(AT(streamed), MOVE_NT, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    cmpq    %rax, %rdi
    jbe     AT(stream)
AT(streamed_all):
    KEEP_BEFORE(R(8))
    sfence
    jmp     AT(ones)
AT(stream_ahead):                   /* as copy_far.tmpl.S */
    AHEAD_BEGIN((%rdi,%rsi), %r10)
AT(stream_ahead_step):
    AHEAD_STEP(%r10, %r10d, %rax, %eax)
    STEP(AT(streamed), MOVE_NT, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    leaq    4 * V(%rdi), %rax
    cmpq    %r11, %rax
    jbe     AT(stream_ahead_step)
    jmp     AT(streamed_all)
#ifndef PLAIN
AT(streamed):
    sfence
    jmp     AT(stopped)
#endif
