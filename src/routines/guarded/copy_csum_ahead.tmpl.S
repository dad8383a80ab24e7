/* Of copy_csum_lines.tmpl.S, PLAIN: what is behind its beginning. Stores reach memory in their order, and none before all
 * instructions ahead of it are done. So what the next call stores would wait for this call's sum, some 25 cycles behind the
 * last load, and nothing would be stored meanwhile. Hence the sum goes ahead: the last vector and the lines that fill no
 * step come first, and each step's lines are loaded and summed while those of the step before are stored. */
/* clang-format off */
#define SUM_TWO(a, b, sum, upper_a, upper_b)                \
    UPPER(a, upper_a);                                      \
    UPPER(b, upper_b);                                      \
    vpaddq  a, b, sum;                                      \
    vpaddq  upper_a, upper_b, upper_a
/* clang-format on */
    movl    %ecx, %ecx
    UPPER(FIRST, HIGH)
    vmovdqu8 LAST, LAST{%k2}{z}
    movl    %r11d, %eax
    vmovdqu8 LAST, -V(%r9){%k2}
    vprold  $8, LAST, LAST{%k3}
    subl    %edi, %eax              /* bytes of lines */
    ADD_ONE(LAST, T)
    testb   $V, %al
    jz      AT(even_lines)
    MOVE    (%rdi,%rsi), R(5)
    addq    $V, %rdi
    MOVE    R(5), -V(%rdi)
    ADD_ONE(R(5), R(6))
AT(even_lines):
    testb   $(2 * V), %al
    jz      AT(whole_steps)
    MOVE    (%rdi,%rsi), R(5)
    MOVE    V(%rdi,%rsi), R(6)
    addq    $(2 * V), %rdi
    MOVE    R(5), -2 * V(%rdi)
    MOVE    R(6), -V(%rdi)
    SUM_TWO(R(5), R(6), R(13), R(9), R(10))
    ADD(R(13), ALL)
    ADD(R(9), HIGH)
AT(whole_steps):
    andl    $(-4 * V), %eax
    jz      AT(ones)
    cmpq    $FORWARD_MOST, %rdx
    ja      AT(longer)
AT(steps):
    MOVE    (%rdi,%rsi), R(5)
    MOVE    V(%rdi,%rsi), R(6)
    MOVE    2 * V(%rdi,%rsi), R(7)
    MOVE    3 * V(%rdi,%rsi), R(8)
    SUM_TWO(R(5), R(6), R(13), R(9), R(10))
    SUM_TWO(R(7), R(8), R(14), R(11), R(12))
    subl    $(4 * V), %eax
    jz      AT(last_step)
    .p2align 5
AT(step):
    MOVE    R(5), (%rdi)
    MOVE    4 * V(%rdi,%rsi), R(5)
    vpaddq  R(13), R(14), R(13)
    MOVE    R(6), V(%rdi)
    MOVE    5 * V(%rdi,%rsi), R(6)
    vpaddq  R(9), R(11), R(9)
    ADD(R(13), ALL)
    MOVE    R(7), 2 * V(%rdi)
    MOVE    6 * V(%rdi,%rsi), R(7)
    ADD(R(9), HIGH)
    UPPER(R(5), R(9))
    UPPER(R(6), R(10))
    MOVE    R(8), 3 * V(%rdi)
    MOVE    7 * V(%rdi,%rsi), R(8)
    vpaddq  R(5), R(6), R(13)
    vpaddq  R(9), R(10), R(9)
    SUM_TWO(R(7), R(8), R(14), R(11), R(12))
    addq    $(4 * V), %rdi
    subl    $(4 * V), %eax
    jnz     AT(step)
AT(last_step):
    MOVE    R(5), (%rdi)
    MOVE    R(6), V(%rdi)
    vpaddq  R(13), R(14), R(13)
    vpaddq  R(9), R(11), R(9)
    MOVE    R(7), 2 * V(%rdi)
    MOVE    R(8), 3 * V(%rdi)
    ADD(R(13), ALL)
    ADD(R(9), HIGH)
AT(ones):
    LANES
AT(counted):
    testb   $1, %r8b
    jnz     AT(turn_sum)
    addq    %rcx, %rax
    FOLD
AT(summed):
    cmpq    $GUARDED_CSUM_MOST, %rdx
    je      AT(next_part)
    ret
AT(turn_sum):
    FOLD
    roll    $8, %eax
    addl    %ecx, %eax
    adcl    $0, %eax
    jmp     AT(summed)
AT(upwards):
    movl    %r11d, %eax
    subl    %edi, %eax
    cmpq    $NEAR_MOST, %rdx
    jb      AT(steps)
    .p2align 4
AT(step_upwards):                   /* outside the first-level cache a twentieth less than by the loop above */
    STEP(, MOVE, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    subl    $(4 * V), %eax
    jnz     AT(step_upwards)
    jmp     AT(ones)
