/* Of copy_csum.tmpl.S and copy_csum_lines.tmpl.S: chunks in ascending order, each from its end down. rdi is a chunk's beginning, r10 its end. */
/* clang-format off */
#define RESTORE                                             \
    movq    -8(%rsp), %rdi;                                 \
    movq    -16(%rsp), %r8;                                 \
    movq    -24(%rsp), %r9;                                 \
    movq    -32(%rsp), %r11
/* clang-format on */
AT(maybe_chunks):
    movl    %esi, %r10d
    negl    %r10d
    andl    $(ALIAS_BYTES - 1), %r10d
    subl    $1, %r10d
#if V == 64
    cmpl    $ALIAS_SPAN, %r10d
#else
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %r10d
#endif
    jae     AT(upwards)
    cmpq    $CHUNK, %rdx
    jbe     AT(chunk)               /* as fast in either case */
    cmpq    $NEAR_MOST, %rdx
    jae     AT(upwards)
    movq    %rdi, -8(%rsp)
    movq    %r8, -16(%rsp)
    movq    %r9, -24(%rsp)
    movq    %r11, -32(%rsp)
#if V == 64
    movq    %r9, %rdi
#else
    leaq    (%r11,%r9), %rdi
#endif
    subq    %rdx, %rdi
    RECENT_FIND_COPY(RECENT_SHIFTED_BMI2, AT(far))
    RESTORE
    jmp     AT(chunk)
AT(far):
    RECENT_ENTER(AT(enter), RECENT_COPY_PLACES)
    RESTORE
    jmp     AT(upwards)
AT(chunk):
    movq    %r11, %rax
    subq    %rdi, %rax
    movl    $CHUNK, %r10d
    andq    $(-4 * V), %rax
    jz      AT(ones)
    cmpq    %r10, %rax
    cmovaq  %r10, %rax
    LOAD(AT(stopped), MOVE (%rdi,%rsi), R(5))
    addq    %rdi, %rax
    STORE(AT(stopped), MOVE R(5), (%rdi))
    movq    %rax, %r10
#ifndef PLAIN
    SAME(ALL, R(13))
    SAME(HIGH, R(14))
#endif
    .p2align 5
AT(chunk_step):
    subq    $(4 * V), %rax
    STEP(AT(chunk_lost), MOVE, %rax, 3 * V, 2 * V, V, 0)
    cmpq    %rdi, %rax
    ja      AT(chunk_step)
    movq    %r10, %rdi
    jmp     AT(chunk)
#ifndef PLAIN
AT(chunk_lost):
    SAME(R(13), ALL)
    SAME(R(14), HIGH)
    jmp     AT(stopped)
#endif
