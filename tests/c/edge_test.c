/* What AVX-512 masks out of a small copy or set must not lie in the page behind the buffer: nothing is wrong with that
 * but time, some 180 ns where nothing is mapped there. So each call is made an instruction at a time, and the address
 * of each access under a mask is worked out before it is executed. In the tiers that have such accesses; or, with a
 * shared object's name, of what it has under the names of libc.
 * Besides, that the ladder's choice leads to its routines and no other does: any of them is right. */
#include <sys/mman.h>

#include "ways.h"

enum { PAGE = 4096 };
static const unsigned before_end[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64};
static const unsigned sizes[] = {0, 1, 2, 8, 15, 16, 17, 24, 31, 32, 33, 63, 64};

static unsigned accesses;
static volatile uintptr_t end_of[2]; /* the last byte of the source, and of the destination */
static volatile uintptr_t beyond;    /* an access that has left them by the end */

/* What the ladder's choice leads to, and no other. */
void wherry_routine_move_avx512_ladder(void);
void wherry_routine_set_avx512_ladder(void);
static volatile bool climbed;

static uintptr_t register_of(const greg_t *regs, unsigned number)
{
    static const unsigned char order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                          REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uintptr_t)regs[order[number]];
}

/* Is this vmovdqu8 under a mask, to or from memory by a base register? Then where, and how many bytes. */
static bool is_masked(const uint8_t *at, const greg_t *regs, bool *stores, uintptr_t *address, unsigned *bytes)
{
    enum { EVEX = 0x62, MAP_0F = 1, PREFIX_F2 = 3, LOAD = 0x6f, STORE = 0x7f, HAS_SIB = 4 };
    const bool evex = at[0] == EVEX && (at[1] & 7) == MAP_0F && (at[2] & 3) == PREFIX_F2;
    const unsigned mod = at[5] >> 6, rm = at[5] & 7;
    if (!evex || !(at[3] & 7) || (at[4] != LOAD && at[4] != STORE) || mod == 3)
        return false;
    const uint8_t *displacement = at + 6 + (rm == HAS_SIB);
    const unsigned high_base = at[1] & 0x20 ? 0 : 8, high_index = at[1] & 0x40 ? 0 : 8;
    *bytes = 16u << (at[3] >> 5 & 3);
    *stores = at[4] == STORE;
    if (rm == HAS_SIB) {
        const unsigned index = (at[6] >> 3 & 7) | high_index;
        *address = register_of(regs, (at[6] & 7) | high_base);
        if (index != 4)
            *address += register_of(regs, index) << (at[6] >> 6);
    } else {
        *address = register_of(regs, rm | high_base);
    }
    int32_t far = 0;
    if (mod == 1)
        far = (int8_t)*displacement * (int32_t)*bytes;
    else if (mod == 2)
        memcpy(&far, displacement, sizeof far);
    *address += (uintptr_t)(intptr_t)far;
    return true;
}

static void on_step(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    bool stores;
    uintptr_t address;
    unsigned bytes;
    climbed |= regs[REG_RIP] == (greg_t)(uintptr_t)wherry_routine_move_avx512_ladder ||
               regs[REG_RIP] == (greg_t)(uintptr_t)wherry_routine_set_avx512_ladder;
    if (!is_masked((const uint8_t *)regs[REG_RIP], regs, &stores, &address, &bytes))
        return;
    accesses++;
    if ((address + bytes - 1) / PAGE > end_of[stores] / PAGE)
        beyond = address;
}

static uint8_t *room[2]; /* a page, and another behind it */

static void look_at(const char *whose)
{
    const unsigned met = accesses;
    for (unsigned which = 0; which < WAYS; which++)
        for (unsigned side = ways[which].sets ? 1 : 0; ways[which].fn && side < (ways[which].sets ? 2 : 3); side++)
            for (size_t p = 0; p < sizeof before_end / sizeof *before_end; p++)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                    const size_t n = sizes[s];
                    uint8_t *begin[2];
                    for (unsigned own = 0; own < 2; own++) {
                        begin[own] = room[own] + (side == own || side == 2 ? PAGE - before_end[p] : PAGE / 2);
                        end_of[own] = (uintptr_t)begin[own] + n - (n > 0);
                    }
                    beyond = 0;
                    ways_go(&ways[which], begin[1], begin[0], 7, n);
                    if (!beyond)
                        continue;
                    failures++;
                    printf("%s, %s: %zu bytes from %p to %p: a mask at %#lx\n", whose, ways[which].name, n,
                           (void *)begin[0], (void *)begin[1], (unsigned long)beyond);
                }
    printf("%s: %u accesses under a mask looked at\n", whose, accesses - met);
}

static void climbs(enum wherry_isa isa)
{
    static const unsigned some[] = {100, 300, 1024, 2000};
    wherry_dispatch_force(isa);
    for (unsigned which = 0; which < WAYS; which++)
        for (size_t s = 0; s < sizeof some / sizeof *some && !ways_survives(&ways[which]); s++) {
            climbed = false;
            end_of[0] = end_of[1] = UINTPTR_MAX;
            ways_go(&ways[which], room[1], room[0], 7, some[s]);
            if (climbed == (isa == WHERRY_ISA_AVX512_LADDER))
                continue;
            failures++;
            printf("%s, %s of %u bytes: by the ladder %d\n", wherry_isa_names[isa], ways[which].name, some[s], climbed);
        }
}

int main(int count, char **words)
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    for (int side = 0; side < 2; side++) {
        room[side] = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room[side] == MAP_FAILED)
            return 3;
        memset(room[side], side, 2 * PAGE);
    }
    if (!wherry_dispatch_force(WHERRY_ISA_AVX512) || wherry_nofault_init()) {
        puts("no AVX-512, or no handler for faults");
        return 3;
    }
    if (count > 1) {
        ways_out_of(words[1]);
        look_at(words[1]);
    } else {
        look_at("avx512");
        wherry_dispatch_force(WHERRY_ISA_AVX512_TOGETHER);
        look_at("avx512_together");
        climbs(WHERRY_ISA_AVX512);
        climbs(WHERRY_ISA_AVX512_TOGETHER);
        climbs(WHERRY_ISA_AVX512_LADDER);
    }
    return failures || !accesses;
}
