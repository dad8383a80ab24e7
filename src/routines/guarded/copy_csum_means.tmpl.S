/* Of copy_csum.tmpl.S, V < 64: the loop upwards for many bytes, by means (csum_steps.h). rdi is where it begins, rax the
 * last place where a step may. */
#define STEPS_ALL R(11)
#define QUARTERS R(12)

/* clang-format off */
#if V == 16
#define MEAN(a, b, to) movdqa a, to; pavgw b, to
#define TOP_WORDS(v) psrlq $48, v
#define ZERO(v) pxor v, v
#else
#define MEAN(a, b, to) vpavgw a, b, to
#define TOP_WORDS(v) vpsrlq $48, v, v
#define ZERO(v) vpxor v, v, v
#endif

/* As STEP: nothing is added before the last store. */
#define STEP_BY_MEANS(lost)                                 \
    LOAD(lost, MOVE (%rdi,%rsi), R(5));                     \
    LOAD(lost, MOVE V(%rdi,%rsi), R(6));                    \
    LOAD(lost, MOVE 2 * V(%rdi,%rsi), R(7));                \
    LOAD(lost, MOVE 3 * V(%rdi,%rsi), R(8));                \
    STORE(lost, MOVE R(5), (%rdi));                         \
    MEAN(R(5), R(6), R(9));                                 \
    ADD(R(6), R(5));                                        \
    STORE(lost, MOVE R(6), V(%rdi));                        \
    MEAN(R(7), R(8), R(10));                                \
    STORE(lost, MOVE R(7), 2 * V(%rdi));                    \
    ADD(R(8), R(7));                                        \
    MEAN(R(9), R(10), R(6));                                \
    ADD(R(7), R(5));                                        \
    TOP_WORDS(R(6));                                        \
    STORE(lost, MOVE R(8), 3 * V(%rdi));                    \
    ADD(R(5), STEPS_ALL);                                   \
    ADD(R(6), QUARTERS)

/* What the steps come to, into ALL and HIGH: the upper half of the true sum, with how often STEPS_ALL wrapped above it. */
#if V == 16
#define HALVES_OF_STEPS                                     \
    movdqa  STEPS_ALL, R(5);                                \
    psllq   $2, QUARTERS;                                   \
    TOP_WORDS(R(5));                                        \
    paddq   AT(round)(%rip), QUARTERS;                      \
    psubq   R(5), QUARTERS;                                 \
    UPPER(STEPS_ALL, R(5));                                 \
    psrlq   $16, QUARTERS;                                  \
    psllq   $32, QUARTERS
#else
#define HALVES_OF_STEPS                                     \
    vpsllq  $2, QUARTERS, QUARTERS;                         \
    vpsrlq  $48, STEPS_ALL, R(5);                           \
    vpaddq  AT(round)(%rip), QUARTERS, QUARTERS;            \
    vpsubq  R(5), QUARTERS, QUARTERS;                       \
    UPPER(STEPS_ALL, R(5));                                 \
    vpsrlq  $16, QUARTERS, QUARTERS;                        \
    vpsllq  $32, QUARTERS, QUARTERS
#endif
#define TAKE_STEPS                                          \
    HALVES_OF_STEPS;                                        \
    ADD(STEPS_ALL, ALL);                                    \
    ADD(R(5), HIGH);                                        \
    ADD(QUARTERS, HIGH)
/* clang-format on */

/* Of the lower halves TAKE_STEPS leaves what is below 2^32, and the rest goes to the upper ones. Without PLAIN the bytes
 * that the last block overwrites are taken out again, which would leave less than nothing where the upper halves are
 * small: so the last step, which may hold them, goes as it is. */
    .p2align 4
AT(upwards):
#ifndef PLAIN
    subq    $(4 * V), %rax
AT(by_means):
#endif
    leaq    (4 * V * (CSUM_STEPS - 1))(%rdi), %r10
    ZERO(STEPS_ALL)
    ZERO(QUARTERS)
    cmpq    %rax, %r10
    cmovaq  %rax, %r10
    .p2align 6
AT(mean_step):
    STEP_BY_MEANS(AT(means_stopped))
    addq    $(4 * V), %rdi
    cmpq    %r10, %rdi
    jbe     AT(mean_step)
    TAKE_STEPS
    cmpq    %rax, %rdi
#ifdef PLAIN
    jbe     AT(upwards)
    jmp     AT(ones)
#else
    jbe     AT(by_means)
    addq    $(4 * V), %rax
    jmp     AT(step)
AT(means_stopped):
    TAKE_STEPS
    jmp     AT(stopped)
#endif

    .pushsection .rodata.cst32, "aM", @progbits, 32
    .p2align 5
AT(round):
    .quad CSUM_STEPS_ROUND, CSUM_STEPS_ROUND, CSUM_STEPS_ROUND, CSUM_STEPS_ROUND
    .popsection
