/* The state a callee must leave as it was: control words, x87 and MMX registers, the upper halves of vectors. The
 * integer registers and the direction flag are looked at after every call of every family (call.c). */
#include <cpuid.h>
#include <inttypes.h>
#include <string.h>

#include "verify.h"

enum { LOADED = 1, OVERLAPPING = 2, ROOM = 16384, AVX_STATE = 4, ZMM_STATE = 0x40 };

struct fx_area {
    uint16_t fcw, fsw;
    uint8_t ftw, reserved;
    uint16_t fop;
    uint64_t fip, fdp;
    uint32_t mxcsr, mxcsr_mask;
    uint8_t st[8][16], xmm[16][16], rest[96];
} __attribute__((aligned(16)));

static bool has_avx, has_xinuse, has_avx512;
static struct arena source, destination;

static uint64_t xgetbv(uint32_t which)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(which));
    return low | (uint64_t)high << 32;
}

static void look_at_cpu(void)
{
    unsigned a, b, c = 0, d;
    __get_cpuid(1, &a, &b, &c, &d);
    bool osxsave = c >> 27 & 1;
    has_avx = osxsave && (c >> 28 & 1) && (xgetbv(0) & 6) == 6;
    has_avx512 = has_avx && (xgetbv(0) & 0xe6) == 0xe6;
    if (has_avx && __get_cpuid_count(0xd, 1, &a, &b, &c, &d))
        has_xinuse = a >> 2 & 1;
}

__attribute__((target("avx"))) static void clear_upper(void) { __asm__ volatile("vzeroall" ::: "memory"); }

/* The upper 16 bytes of ymm0-15, one after another. */
__attribute__((target("avx"))) static void read_upper(uint8_t upper[16][16])
{
#define ONE(i) __asm__ volatile("vextractf128 $1, %%ymm" #i ", %0" : "=m"(*(uint8_t (*)[16])upper[i]));
    ONE(0)
    ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) ONE(9) ONE(10) ONE(11) ONE(12) ONE(13) ONE(14) ONE(15)
#undef ONE
}

static size_t largest(const struct unit *unit)
{
    return unit->level == LEVEL_BRIEF ? (size_t)1 << 20 : past_caches(unit) ? (size_t)64 << 20 : (size_t)8 << 20;
}

static void run(struct unit *unit, const struct vcase *one)
{
    const bool overlapping = one->at & OVERLAPPING && unit->target->op == WHERRY_OP_move;
    const size_t span = one->n + (overlapping ? reach_of(one) : 0);
    if (!destination.length) {
        look_at_cpu();
        /* What generate() comes to, with an overlap of nearly as much: memory of which nothing is used takes as long.
         */
        const size_t most = unit->level == LEVEL_BRIEF ? 2 << 20 : largest(unit);
        const size_t length = 2 * ROOM + (span > most ? span : most);
        source = arena_make(length, one->seed, 1);
        destination = arena_make(length, one->seed, 0);
    }
    if (span + 2 * PAGE > destination.length) {
        fail(unit, one, NULL, NULL, "", "the state family has no room for so many bytes");
        return;
    }
    uint8_t *dst = destination.base + one->d % PAGE + (overlapping && one->dist > 0 ? one->dist : 0);
    const uint8_t *src = is_set(unit->target) ? NULL : overlapping ? dst - one->dist : source.base + one->s % PAGE;
    static struct fx_area before, after, usual;
    bool saves = unit->target->routine && unit->target->routine->traits & TRAIT_X87;
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        unit->pulse->now = *one;
        uint8_t upper[16][16] = {{0}};
        uint64_t used_before = 0, used_after = 0;
        const uint32_t mxcsr = 0x5f80; /* round up: not what anyone would set by habit */
        const uint16_t fcw = 0x0b7f;
        __asm__ volatile("fninit\n\tfxsave %0" : "=m"(usual));
        if (one->at & LOADED)
            __asm__ volatile("fld1\n\tfldpi\n\tfldl2e\n\tfldz\n\tfldln2");
        __asm__ volatile("fldcw %0\n\tldmxcsr %1" ::"m"(fcw), "m"(mxcsr));
        if (has_avx)
            clear_upper();
        if (has_xinuse)
            used_before = xgetbv(1);
        __asm__ volatile("fxsave %0" : "=m"(before));
        struct outcome seen = call_raw(unit, one, dst, src, one->n);
        if (has_xinuse)
            used_after = xgetbv(1);
        if (has_avx)
            read_upper(upper);
        __asm__ volatile("fxsave %0" : "=m"(after));
        if (has_avx)
            clear_upper();
        __asm__ volatile("fxrstor %0" ::"m"(usual));
        if (!call_judge(unit, one, &seen, dst, src, one->n))
            return;
        if ((after.mxcsr & 0xffc0) != (before.mxcsr & 0xffc0))
            fail(unit, one, dst, src, "MXCSR", "changed MXCSR: 0x%04x came back as 0x%04x", before.mxcsr, after.mxcsr);
        else if (after.fcw != before.fcw)
            fail(unit, one, dst, src, "x87 control word", "changed the x87 control word: 0x%04x came back as 0x%04x",
                 before.fcw, after.fcw);
        else if (!(one->at & LOADED) && after.ftw != 0)
            fail(unit, one, dst, src, "x87 tag", "left x87/MMX registers in use (tags 0x%02x; emms is missing)",
                 after.ftw);
        else if (one->at & LOADED && saves &&
                 (after.ftw != before.ftw || (after.fsw ^ before.fsw) & 0x3800 ||
                  memcmp(after.st, before.st, sizeof after.st) != 0))
            fail(unit, one, dst, src, "x87 registers", "did not restore the x87 registers (tags 0x%02x, were 0x%02x)",
                 after.ftw, before.ftw);
        for (int r = 0; r < 16 && has_avx; r++)
            if (!plain_all(upper[r], 0, 16)) {
                fail(unit, one, dst, src, "upper vector state",
                     "left the upper half of ymm%d dirty (vzeroupper is missing)", r);
                break;
            }
        /* A zeroing routine leaves zeros there; only the processor's own note tells that they are in use. */
        uint64_t watched = AVX_STATE | (has_avx512 ? ZMM_STATE : 0);
        if (has_xinuse && !(used_before & AVX_STATE) && used_after & watched & ~used_before)
            fail(unit, one, dst, src, "upper vector state",
                 "left the upper vector state in use (XINUSE 0x%" PRIx64 "; vzeroupper is missing)", used_after);
    }
}

/* A move has code of its own where the two overlap, and where they are the same: the case, once in each direction. */
static void overlapping(struct unit *unit, struct vcase one)
{
    if (unit->target->op != WHERRY_OP_move || one.n < 2 || one.n > 4 << 20 || (unit->thin && one.n % 4))
        return;
    const int64_t distance = 1 + (int64_t)below(unit, one.n < 256 || one.n / 4 % 2 ? one.n - 1 : 255);
    one.at |= OVERLAPPING;
    for (int sign = -1; sign <= 1 && !unit->failed; sign++) {
        one.dist = sign * distance;
        run(unit, &one);
    }
}

/* By turns anywhere in a line, at the beginning of one, with a page's end in the destination, the source or both, and
 * far from each other modulo a page; by the size as well, since a size has few turns. */
static void place(struct unit *unit, struct vcase *one, unsigned turn)
{
    enum { LINE_BEGINS = 1, DESTINATION_CROSSES, SOURCE_CROSSES, BOTH_CROSS, FAR, KINDS };
    const unsigned kind = (unsigned)(one->n + 2 * turn) % KINDS;
    const uint64_t reach = one->n < PAGE ? one->n : PAGE;
    one->d = kind == LINE_BEGINS ? 0 : below(unit, 64);
    one->s = kind == LINE_BEGINS && one->n / KINDS % 2 ? 0 : below(unit, kind == FAR ? PAGE : 64);
    if (kind == DESTINATION_CROSSES || kind == BOTH_CROSS)
        one->d = PAGE - 1 - below(unit, reach);
    if (kind == SOURCE_CROSSES || kind == BOTH_CROSS)
        one->s = PAGE - 1 - below(unit, reach);
}

static void generate(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    bool saves = unit->target->routine && unit->target->routine->traits & TRAIT_X87;
    bool brief = unit->level == LEVEL_BRIEF;
    unsigned modes = saves ? 2 : 1, rounds = unit->level == LEVEL_FULL ? 16 : brief ? 1 : 3;
    for (one.n = 0; one.n <= (brief ? 600 : 4200); one.n++)
        for (unsigned round = 0; round < rounds && size_fits(unit->target, one.n); round++)
            for (one.at = 0; one.at < modes; one.at++) {
                place(unit, &one, round);
                one.c = one.n % 4 == round % 4 ? 0 : (int)next_random(&unit->random);
                run(unit, &one);
                if (unit->failed)
                    return;
                overlapping(unit, one);
            }
    /* And between those of the next loop. */
    for (unsigned k = 0; k < (brief ? 0 : unit->few ? 600u : 200u) && !unit->failed; k++) {
        const uint64_t step = (uint64_t)4096 << k % 8;
        one.n = fit(unit->target, 4200 + (k / 8 % 2 ? step / 2 : 0) + below(unit, k / 8 % 4 < 2 ? step / 2 : step));
        one.at = k / 8 % modes;
        place(unit, &one, k / 8);
        one.c = k % 5 ? (int)next_random(&unit->random) : 0;
        run(unit, &one);
        overlapping(unit, one);
    }
    for (uint64_t n = 4096; n <= largest(unit); n *= 2)
        for (unsigned exact = 0; exact < 2; exact++) /* whole pages may go a way of their own */
            for (one.at = 0; one.at < modes && !unit->failed; one.at++) {
                one.n = fit(unit->target, exact ? n : n - 64 + below(unit, 128));
                if (one.n + 2 * PAGE > destination.length)
                    one.n = fit(unit->target, destination.length - 2 * PAGE);
                run(unit, &one);
                overlapping(unit, one);
            }
    if (!has_avx)
        __builtin_snprintf(unit->skipped, sizeof unit->skipped, "upper vector state: this CPU has no AVX");
    else if (!has_xinuse)
        __builtin_snprintf(unit->skipped, sizeof unit->skipped,
                           "upper vector state judged by contents only: this CPU has no XGETBV with ECX = 1");
}

const struct family family_state = {
    .name = "state",
    .what = "MXCSR, x87 control word and tags, MMX, upper vector state",
    .applies = any_target,
    .generate = generate,
    .run = run,
};
