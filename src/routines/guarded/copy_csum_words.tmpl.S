/* Of copy_csum.tmpl.S, PLAIN: to 64 bytes. Words added with carry, as many at once as there are: fewer instructions than
 * vectors take, whose lanes must be brought together in the end. r8 is the word that ends at the end, r9 how many of its
 * bytes count. */
/* clang-format off */
#define TWO_WORDS(at, add)                                  \
    movq    at(%rsi), %rcx;                                 \
    movq    at + 8(%rsi), %r10;                             \
    movq    %rcx, at(%rdi);                                 \
    movq    %r10, at + 8(%rdi);                             \
    add     %rcx, %rax;                                     \
    adcq    %r10, %rax
/* clang-format on */
    cmpl    $8, %edx
    jb      AT(bytes)
    leal    -1(%rdx), %r9d
    movq    -8(%rsi,%rdx), %r8
    andl    $7, %r9d
    leaq    -8(%rdi,%rdx), %r11
    addl    $1, %r9d
    movq    %r8, (%r11)             /* first, so that what others share with it stays as they were counted */
    movl    %ecx, %eax
    testb   $64, %dl
    jnz     AT(all_64)
    subl    %r9d, %edx              /* 0, 8 .. 56 */
    testb   $32, %dl
    jz      AT(below_32)
    TWO_WORDS(0, addq)
    TWO_WORDS(16, adcq)
    adcq    $0, %rax
    addq    $32, %rsi
    addq    $32, %rdi
AT(below_32):
    testb   $16, %dl
    jz      AT(below_16)
    TWO_WORDS(0, addq)
    adcq    $0, %rax
    addq    $16, %rsi
    addq    $16, %rdi
AT(below_16):
    testb   $8, %dl
    jz      AT(last_word)
    movq    (%rsi), %rcx
    movq    %rcx, (%rdi)
    addq    %rcx, %rax
    adcq    $0, %rax
AT(last_word):
    negl    %r9d
    shll    $3, %r9d                /* modulo 64: 64 less the bits that count */
    shrxq   %r9, %r8, %r8
    addq    %r8, %rax
    adcq    $0, %rax
    FOLD
    ret

/* Fewer than a word: r8 becomes the word that they are the lower part of, r9 the bits that it has. */
AT(bytes):
    xorl    %r8d, %r8d
    xorl    %r9d, %r9d
    testb   $4, %dl
    jz      AT(below_4)
    movl    (%rsi), %r8d
    movl    %r8d, (%rdi)
    movl    $32, %r9d
    addq    $4, %rsi
    addq    $4, %rdi
AT(below_4):
    testb   $2, %dl
    jz      AT(below_2)
    movzwl  (%rsi), %r10d
    movw    %r10w, (%rdi)
    shlxq   %r9, %r10, %r10
    addl    $16, %r9d
    orq     %r10, %r8
    addq    $2, %rsi
    addq    $2, %rdi
AT(below_2):
    testb   $1, %dl
    jz      AT(all_bytes)
    movzbl  (%rsi), %r10d
    movb    %r10b, (%rdi)
    shlxq   %r9, %r10, %r10
    orq     %r10, %r8
AT(all_bytes):
    movl    %ecx, %eax
    addq    %r8, %rax
    adcq    $0, %rax
    FOLD
    ret

/* One sum with carry, without a branch. */
AT(all_64):
    TWO_WORDS(0, addq)
    TWO_WORDS(16, adcq)
    TWO_WORDS(32, adcq)
    TWO_WORDS(48, adcq)
    adcq    $0, %rax
    FOLD
    ret
