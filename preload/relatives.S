/* The other names under which programs reach the six: wide characters, the forms that _FORTIFY_SOURCE makes of them, and
 * those that glibc keeps beside. Each checks or scales what it is given and goes on in dispatch/public.S.
 *
 * What a checked form finds too long goes to __chk_fail of the C library, which says so and aborts, as the library's own
 * do. The reference is weak: where there is none, or where this object has not been relocated yet, the process traps.
 * dropin.S includes this file behind dispatch/public.S, with which come the marks of an assembly file.
 */
    .weak __chk_fail

/* clang-format off */
#define RELATIVE(symbol)                       \
    .globl symbol;                             \
    .type symbol, @function;                   \
    .p2align 4;                                \
symbol:                                        \
    .cfi_startproc;                            \
    _CET_ENDBR

#define IS(symbol, function)                   \
RELATIVE(symbol);                              \
    jmp     function;                          \
END(symbol)

/* room: the register with the size of the destination, in the units of n */
#define CHECKED(symbol, n, room, function)     \
RELATIVE(symbol);                              \
    cmpq    n, room;                           \
    jb      too_long;                          \
    jmp     function;                          \
END(symbol)

/* n counts wchar_t; what does not fit 64 bits in bytes is cut off, as glibc does it. */
#define WIDE(symbol, function)                 \
RELATIVE(symbol);                              \
    shlq    $2, %rdx;                          \
    jmp     function;                          \
END(symbol)

    .text
IS(__mempcpy, mempcpy)
IS(__bzero, bzero)
IS(explicit_bzero, bzero)
IS(memset_explicit, memset)

CHECKED(__memcpy_chk, %rdx, %rcx, memcpy)
CHECKED(__memmove_chk, %rdx, %rcx, memmove)
CHECKED(__mempcpy_chk, %rdx, %rcx, mempcpy)
CHECKED(__memset_chk, %rdx, %rcx, memset)
CHECKED(__explicit_bzero_chk, %rsi, %rdx, bzero)
CHECKED(__memset_explicit_chk, %rdx, %rcx, memset)

WIDE(wmemcpy, memcpy)
WIDE(wmemmove, memmove)
WIDE(wmempcpy, mempcpy)

CHECKED(__wmemcpy_chk, %rdx, %rcx, wmemcpy)
CHECKED(__wmemmove_chk, %rdx, %rcx, wmemmove)
CHECKED(__wmempcpy_chk, %rdx, %rcx, wmempcpy)
CHECKED(__wmemset_chk, %rdx, %rcx, wmemset)
/* clang-format on */

too_long:
    .cfi_startproc
    movq    __chk_fail@GOTPCREL(%rip), %rax
    testq   %rax, %rax
    jz      no_libc
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    *%rax
no_libc:
    ud2
    .cfi_endproc

/* wchar_t *wmemset(wchar_t *dst rdi, wchar_t c esi, size_t n rdx). Four equal bytes, 0 above all, are a memset; others are
 * rare, and 16 bytes a step for them. */
RELATIVE(wmemset)
    movzbl  %sil, %eax
    imull   $0x01010101, %eax, %eax
    cmpl    %esi, %eax
    jne     wide_pattern
    shlq    $2, %rdx
    jmp     memset

wide_pattern:
    movq    %rdi, %rax
    shlq    $2, %rdx                /* what does not fit is cut off here, too */
    shrq    $2, %rdx
    cmpq    $4, %rdx
    jb      wide_to_3
    movd    %esi, %xmm0
    pshufd  $0, %xmm0, %xmm0
    leaq    -16(%rdi,%rdx,4), %rcx  /* the last block */
    .p2align 4
wide_step:
    movups  %xmm0, (%rdi)
    addq    $16, %rdi
    cmpq    %rcx, %rdi
    jb      wide_step
    movups  %xmm0, (%rcx)
    ret

wide_to_3:
    testl   %edx, %edx
    jz      wide_end
    movl    %esi, (%rdi)
    movl    %esi, -4(%rdi,%rdx,4)
    cmpl    $3, %edx
    jb      wide_end
    movl    %esi, 4(%rdi)
wide_end:
    ret
END(wmemset)
