/* Stores and fences among instructions. Of the prefixes only those are told apart that change the answer. */
#include "stores.h"

#include <stdbool.h>

/* Opcodes that begin with 0f: movntps/pd and movntq/dq stand in the same place with VEX and EVEX, and so does
 * maskmovdqu. */
static bool weak_in_map_1(uint8_t opcode) { return opcode == 0x2b || opcode == 0xe7 || opcode == 0xf7; }

enum store_kind store_kind(const uint8_t *at)
{
    bool locked = false, repeated = false;
    for (;; at++) {
        if (*at == 0xf0)
            locked = true;
        else if (*at == 0xf3)
            repeated = true;
        else if (*at != 0x66 && *at != 0xf2 && *at != 0x2e && *at != 0x3e && *at != 0x64 && *at != 0x65 &&
                 *at != 0x67 && (*at & 0xf0) != 0x40)
            break;
    }
    if (locked)
        return STORE_FENCE;
    if (repeated && (*at == 0xa4 || *at == 0xa5 || *at == 0xaa || *at == 0xab))
        return STORE_REPEATED;
    if ((*at == 0x86 || *at == 0x87) && at[1] < 0xc0) /* xchg with memory locks by itself */
        return STORE_FENCE;
    bool weak = false;
    if (at[0] == 0x0f) {
        if (at[1] == 0xae && at[2] >= 0xf0) /* mfence, sfence */
            return STORE_FENCE;
        weak = weak_in_map_1(at[1]) || at[1] == 0xc3 ||                             /* movnti */
               (at[1] == 0x01 && at[2] == 0xfc) ||                                  /* clzero */
               (at[1] == 0x38 && (at[2] == 0xf8 || at[2] == 0xf9) && at[3] < 0xc0); /* movdir64b, movdiri */
    } else if (at[0] == 0xc5) {
        weak = weak_in_map_1(at[2]);
    } else if (at[0] == 0xc4 && (at[1] & 0x1f) == 1) {
        weak = weak_in_map_1(at[3]);
    } else if (at[0] == 0x62 && (at[1] & 7) == 1) {
        weak = weak_in_map_1(at[4]);
    }
    return weak ? STORE_WEAK : STORE_PLAIN;
}
