/* generic_bzero: the bzero that FreeBSD/i386 used on every CPU in the end; row zeroA of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * Four bytes a store with stosl, and the 0 to 3 that are left with stosb. The original began with cld, which the ABI
 * makes needless, and returned nothing.
 */
#include "../asm.h"

ENTRY(wherry_routine_generic_bzero)
    movq    %rdi, %r8       /* rax holds the zero that stosl stores */
    movq    %rdx, %rcx
    shrq    $2, %rcx
    xorl    %eax, %eax
    rep stosl
    movl    %edx, %ecx
    andl    $3, %ecx
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_generic_bzero)
