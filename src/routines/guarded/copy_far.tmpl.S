/* Of copy_large.tmpl.S: the string instruction, or past the caches; only what is disjoint. rax is dst - src. */
AT(maybe_by_rep):
#if V > 16
    testq   %rdx, %rdx              /* sums of an address and n would wrap */
    js      LOOK_FIRST
#endif
    cmpq    wherry_thresholds + COPY_REP_RECENT_FROM(%rip), %rdx
    jae     AT(large_by_rep)
    RECENT_FIND_COPY(SHIFTED, AT(far))
    jmp     AT(not_by_rep)
AT(far):
    movq    %rsi, %r10
    subq    %rdi, %r10
    cmpq    %rdx, %r10
    jb      AT(by_loop)
    cmpq    wherry_thresholds + COPY_REP_TO(%rip), %rdx
    jae     AT(not_by_rep)
    RECENT_ENTER(AT(enter), RECENT_COPY_PLACES)
    jmp     AT(by_rep)
AT(large_by_rep):
    movq    %rsi, %r8
    subq    %rdi, %r8
    cmpq    %rdx, %r8
    jb      AT(by_loop)
    cmpq    wherry_thresholds + COPY_REP_TO(%rip), %rdx
    jae     AT(not_by_rep)
    cmpq    wherry_thresholds + COPY_REP_ALL_FROM(%rip), %rdx
    jae     AT(suits)
    movl    %eax, %r8d
    andl    $(ALIAS_BYTES - 1), %r8d
    subl    $1, %r8d
    cmpq    wherry_thresholds + COPY_REP_SLOW_AHEAD(%rip), %r8
    jb      AT(not_by_rep)
AT(suits):
    cmpq    $WRITTEN_FROM, %rdx
    jae     AT(maybe_stream)
AT(by_rep):
    CLEAN_COPY
    jmp     AT(forward)

AT(maybe_stream):
#if V > 16
    testq   %rdx, %rdx
    js      LOOK_FIRST
#endif
    call    wherry_guarded_copied_apart
    jb      AT(by_rep)
    je      AT(by_loop)
#if V > 32
    jmp     wherry_guarded_copy_avx2_stream /* memory is what is waited for, and this page is full */
#else

/* A line: the first goes by ordinary stores, so that whole lines of the destination follow. */
#if V == 32
#define LINE(lost, from, to)                            \
    LOAD(lost, MOVE from, R(0));                        \
    LOAD(lost, MOVE 32 + from, R(1));                   \
    STORE(lost, MOVE R(0), to);                         \
    STORE(lost, MOVE R(1), 32 + to)
#else
#define LINE(lost, from, to)                            \
    LOAD(lost, MOVE from, R(0));                        \
    LOAD(lost, MOVE 16 + from, R(1));                   \
    LOAD(lost, MOVE 32 + from, R(2));                   \
    LOAD(lost, MOVE 48 + from, R(3));                   \
    STORE(lost, MOVE R(0), to);                         \
    STORE(lost, MOVE R(1), 16 + to);                    \
    STORE(lost, MOVE R(2), 32 + to);                    \
    STORE(lost, MOVE R(3), 48 + to)
#endif
#define TO_NEXT_LINE                                    \
    movl    %edi, %eax;                                 \
    andl    $63, %eax;                                  \
    subq    $64, %rax;                                  \
    subq    %rax, %rdi;                                 \
    subq    %rax, %rsi;                                 \
    addq    %rax, %rdx

#if V == 32
    .globl  wherry_guarded_copy_avx2_stream
    .hidden wherry_guarded_copy_avx2_stream
wherry_guarded_copy_avx2_stream:
#endif
AT(stream):
    LINE(AT(redo), 0(%rsi), 0(%rdi))
    TO_NEXT_LINE
/* Upwards, in one stream: several, as memcpy has them, would need a look at every page before. From copy_ahead_from on the
 * source's pages are fetched side by side instead. */
#define STREAM_STEP                                     \
    LOAD(AT(stream_0), MOVE (%rsi), R(5));              \
    LOAD(AT(stream_0), MOVE V(%rsi), R(6));             \
    LOAD(AT(stream_0), MOVE 2 * V(%rsi), R(7));         \
    LOAD(AT(stream_0), MOVE 3 * V(%rsi), R(8));         \
    addq    $(4 * V), %rsi;                             \
    STORE(AT(streamed_0), MOVE_NT R(5), (%rdi));        \
    STORE(AT(streamed_1), MOVE_NT R(6), V(%rdi));       \
    STORE(AT(streamed_2), MOVE_NT R(7), 2 * V(%rdi));   \
    STORE(AT(streamed_3), MOVE_NT R(8), 3 * V(%rdi));   \
    addq    $(4 * V), %rdi;                             \
    cmpq    %r11, %rdi
    leaq    -4 * V(%rdi,%rdx), %r11
    cmpq    wherry_thresholds + COPY_AHEAD_FROM(%rip), %rdx
    jae     AT(stream_ahead)
    .p2align 4
AT(stream_step):
    STREAM_STEP
    jbe     AT(stream_step)
    sfence
    jmp     AT(rest)
AT(stream_ahead):
    AHEAD_BEGIN((%rsi), %r10)
    .p2align 4
AT(stream_ahead_step):
    AHEAD_STEP(%r10, %r10d, %rax, %eax)
    STREAM_STEP
    jbe     AT(stream_ahead_step)
    sfence
    jmp     AT(rest)
AT(stream_0):
    sfence
    jmp     AT(step_0)
AT(streamed_3):
    MOVE_ON(V)
AT(streamed_2):
    MOVE_ON(V)
AT(streamed_1):
    MOVE_ON(V)
AT(streamed_0):
    sfence
    jmp     AT(stored_0)
#endif
