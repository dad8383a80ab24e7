/* int_unrolled64: the C loop of Asami's tarball, eight loads of 8 bytes and then eight stores a turn.
 *
 * Disjoint. n must be a multiple of 64: the loop does nothing for a rest. Clobbers no x87, MMX or vector state.
 * The loop is historic, and so is the order of all loads before all stores, which the compiler keeps because dst
 * might overlap src. The original declared its eight temporaries as double between long long arrays, so each word was
 * converted there and back, and lost the bits that a double has no room for; here they are integers and every byte
 * arrives. He wrote the assembly (x87_fild64) because of what the compiler made of it.
 */
#include "../plain.h"
#include "word.h"

void *wherry_routine_int_unrolled64(void *dst_, const void *src_, size_t n)
{
    word *dst = dst_;
    const word *src = src_;
    AS_WRITTEN
    for (; n >= 64; n -= 64) {
        word word0 = src[0], word1 = src[1], word2 = src[2], word3 = src[3];
        word word4 = src[4], word5 = src[5], word6 = src[6], word7 = src[7];
        /* All eight are in integer registers here: Clang would move them as four pairs in SSE registers. */
        __asm__ volatile(""
                         : "+r"(word0), "+r"(word1), "+r"(word2), "+r"(word3), "+r"(word4), "+r"(word5), "+r"(word6),
                           "+r"(word7));
        dst[0] = word0;
        dst[1] = word1;
        dst[2] = word2;
        dst[3] = word3;
        dst[4] = word4;
        dst[5] = word5;
        dst[6] = word6;
        dst[7] = word7;
        src += 8;
        dst += 8;
    }
    return dst_;
}
