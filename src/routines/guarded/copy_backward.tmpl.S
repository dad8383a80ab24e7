/* Of copy_large.tmpl.S, V < 64: the destination begins inside the source, so the end goes first, behind a look at the pages. rax is
 * dst - src. */
/* clang-format off */
#define BACKWARD_LOAD(load, lost)                           \
    leaq    V(%rdi), %r10;                                  \
    andq    $-V, %r10;                                      \
    movq    %r10, %r11;                                     \
    subq    %rdi, %r11;                                     \
    addq    %rsi, %r11;                                     \
    load(lost, MOVE (%rsi), R(0));                          \
    load(lost, MOVE (%r11), R(1));                          \
    load(lost, MOVE V(%r11), R(2));                         \
    load(lost, MOVE 2 * V(%r11), R(3));                     \
    load(lost, MOVE -V(%rsi,%rdx), R(4))
/* clang-format on */

/* The destination begins inside the source. To 4096 bytes either side lies on two pages at most, so the first byte and the
 * last tell all, without a branch on how many there are. What is loaded first is loaded before a byte of it is written: it
 * would wait for that. */
    .p2align 4
#if V == 32
    .globl  wherry_guarded_copy_avx2_inside
    .hidden wherry_guarded_copy_avx2_inside
wherry_guarded_copy_avx2_inside:
#endif
AT(inside):
    cmpq    $4096, %rdx
    ja      AT(probe)
    BACKWARD_LOAD(LOAD, AT(inside_faulted))
    STORE(AT(inside_faulted), orb $0, (%rdi))
    STORE(AT(inside_faulted), orb $0, -1(%rdi,%rdx))
    jmp     AT(backward_loaded)
AT(inside_faulted):                 /* nothing has been changed */
    CLEAN_COPY
    jmp     AT(probe)

/* Is every page there? Of the source one byte of each is read, from the first on; then of the destination, as far as there is
 * a source, one byte of each is written as it is. Nothing is changed, so the sides may overlap, and what is written
 * belongs to what will be copied. rax is how far all is there, r8 where to look. */
    .p2align 4
#if V == 32
    .globl  wherry_guarded_copy_avx2_probe
    .hidden wherry_guarded_copy_avx2_probe
wherry_guarded_copy_avx2_probe:
#endif
AT(probe):
    movq    %rdx, %rax
    xorl    %r8d, %r8d
    movl    %esi, %r9d
    orq     $-4096, %r9             /* less the distance to the next page */
AT(look_at_source):
    LOAD_REPORT(AT(no_source), movzbl (%rsi,%r8), %r10d)
    subq    %r9, %r8
    movq    $-4096, %r9
    cmpq    %rdx, %r8
    jb      AT(look_at_source)
AT(probe_destination):
    xorl    %r8d, %r8d
    movl    %edi, %r9d
    orq     $-4096, %r9
AT(look_at_destination):
    cmpq    %rax, %r8
    jae     AT(looked)
    STORE_REPORT(AT(no_destination), orb $0, (%rdi,%r8))
    subq    %r9, %r8
    movq    $-4096, %r9
    jmp     AT(look_at_destination)
AT(looked):
    cmpq    %rdx, %rax
    jne     AT(missing)
    cmpq    $LARGE, %rdx
    jbe     TOP                     /* a page was missing and has come back */
    jmp     AT(backward)

AT(no_source):
    movq    %r8, %rax
    testq   %rcx, %rcx
    jz      AT(probe_destination)
    addq    %rsi, %r8
    movq    %r8, FAULT_ADDRESS(%rcx)
    movq    %r10, FAULT_SIGNO(%rcx)
    movb    %r11b, FAULT_WRITING(%rcx)
    jmp     AT(probe_destination)

AT(no_destination):
    movq    %r8, %rax
    testq   %rcx, %rcx
    jz      AT(missing)
    addq    %rdi, %r8
    movq    %r8, FAULT_ADDRESS(%rcx)
    movq    %r10, FAULT_SIGNO(%rcx)
    movb    %r11b, FAULT_WRITING(%rcx)

/* Just the rax bytes before the page that is missing. */
AT(missing):
    subq    %rax, %rdx
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    movq    %rax, %rdx              /* with the caller's fault: when more goes away meanwhile, that is what stops it */
    call    TOP
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    addq    %rdx, %rax
    ret

/* From the end down; every page was there a moment ago. rax, r8 the cursors; r9 where up to 4V are left; r10 the first
 * boundary of the destination. */
    .p2align 4
AT(backward):
    BACKWARD_LOAD(LOAD_REPORT, AT(lost))
AT(backward_loaded):
    leaq    (%rdi,%rdx), %rax
    leaq    (%rsi,%rdx), %r8
    leal    -1(%rax), %r9d
    andl    $(V - 1), %r9d
    addl    $1, %r9d                /* 1 to V, which the last block covers */
    subq    %r9, %rax
    subq    %r9, %r8
    leaq    4 * V(%rdi), %r9
    .p2align 4
AT(back_step):
    LOAD_REPORT(AT(lost), MOVE -V(%r8), R(8))
    LOAD_REPORT(AT(lost), MOVE -2 * V(%r8), R(7))
    LOAD_REPORT(AT(lost), MOVE -3 * V(%r8), R(6))
    LOAD_REPORT(AT(lost), MOVE -4 * V(%r8), R(5))
    subq    $(4 * V), %r8
    STORE_REPORT(AT(lost), MOVE R(8), -V(%rax))
    STORE_REPORT(AT(lost), MOVE R(7), -2 * V(%rax))
    STORE_REPORT(AT(lost), MOVE R(6), -3 * V(%rax))
    STORE_REPORT(AT(lost), MOVE R(5), -4 * V(%rax))
    subq    $(4 * V), %rax
    cmpq    %r9, %rax
    ja      AT(back_step)
    STORE_REPORT(AT(lost), MOVE R(1), (%r10))
    STORE_REPORT(AT(lost), MOVE R(2), V(%r10))
    STORE_REPORT(AT(lost), MOVE R(3), 2 * V(%r10))
    STORE_REPORT(AT(lost), MOVE R(0), (%rdi))
    STORE_REPORT(AT(lost), MOVE R(4), -V(%rdi,%rdx))
    CLEAN_COPY
    xorl    %eax, %eax
    ret

/* A page has gone since the look, and the source may be overwritten: nothing is sure. */
AT(lost):
    CLEAN_COPY
    testq   %rcx, %rcx
    jz      AT(lost_told)
    movq    %r9, FAULT_ADDRESS(%rcx)
    movq    %r10, FAULT_SIGNO(%rcx)
    movb    %r11b, FAULT_WRITING(%rcx)
AT(lost_told):
    movq    %rdx, %rax
    ret
