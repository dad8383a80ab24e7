#include "plan/plan.h"

const char *const wherry_isa_names[WHERRY_ISA_COUNT] = {"sse2", "avx2", "avx512", "avx512_ladder", "avx512_together"};

static bool has_avx2(const struct wherry_cpu *cpu)
{
    return wherry_cpu_has(cpu, WHERRY_CPU_AVX2) && wherry_cpu_has(cpu, WHERRY_CPU_BMI1) &&
           wherry_cpu_has(cpu, WHERRY_CPU_BMI2);
}

static bool has_avx512(const struct wherry_cpu *cpu)
{
    return has_avx2(cpu) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512F) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512BW) &&
           wherry_cpu_has(cpu, WHERRY_CPU_AVX512VL) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512DQ);
}

static bool has_crc32(const struct wherry_cpu *cpu)
{
    return wherry_cpu_has(cpu, WHERRY_CPU_SSE4_2) && wherry_cpu_has(cpu, WHERRY_CPU_PCLMULQDQ);
}

static bool has_vpclmul(const struct wherry_cpu *cpu)
{
    return has_avx512(cpu) && has_crc32(cpu) && wherry_cpu_has(cpu, WHERRY_CPU_VPCLMULQDQ);
}

static bool has_vpclmul_avx2(const struct wherry_cpu *cpu)
{
    return has_avx2(cpu) && has_crc32(cpu) && wherry_cpu_has(cpu, WHERRY_CPU_VPCLMULQDQ);
}

static bool has_vnni(const struct wherry_cpu *cpu)
{
    return has_avx512(cpu) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512_VNNI);
}

bool wherry_plan_can_run(const struct wherry_cpu *cpu, enum wherry_needs needs)
{
    switch (needs) {
    case WHERRY_NEEDS_BASE:
        return true;
    case WHERRY_NEEDS_AVX2:
        return has_avx2(cpu);
    case WHERRY_NEEDS_AVX512:
        return has_avx512(cpu);
    case WHERRY_NEEDS_CRC32:
        return has_crc32(cpu);
    case WHERRY_NEEDS_VPCLMUL:
        return has_vpclmul(cpu);
    case WHERRY_NEEDS_VPCLMUL_AVX2:
        return has_vpclmul_avx2(cpu);
    case WHERRY_NEEDS_VNNI:
        return has_vnni(cpu);
    case WHERRY_NEEDS_CLZERO:
        return wherry_cpu_has(cpu, WHERRY_CPU_CLZERO);
    }
    return false;
}

enum wherry_needs wherry_plan_crc(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    const bool own = isa == wherry_plan_isa(cpu);
    if (has_vpclmul(cpu) && (own || wherry_plan_needs(isa) == WHERRY_NEEDS_AVX512))
        return WHERRY_NEEDS_VPCLMUL;
    if (own && has_vpclmul_avx2(cpu))
        return WHERRY_NEEDS_VPCLMUL_AVX2;
    return has_crc32(cpu) && (own || isa != WHERRY_ISA_SSE2) ? WHERRY_NEEDS_CRC32 : WHERRY_NEEDS_BASE;
}

enum wherry_needs wherry_plan_csum(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    const enum wherry_needs needs = wherry_plan_needs(isa);
    return needs == WHERRY_NEEDS_AVX512 && has_vnni(cpu) ? WHERRY_NEEDS_VNNI : needs;
}

/* Beside a copy dot products save time on Intel; on a Zen 5 they took as long as additions (docs/checksums.md). */
enum wherry_needs wherry_plan_copy_csum(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    return cpu->vendor == WHERRY_CPU_INTEL ? wherry_plan_csum(cpu, isa) : wherry_plan_needs(isa);
}

enum wherry_isa wherry_plan_isa(const struct wherry_cpu *cpu)
{
    if (has_avx512(cpu))
        return WHERRY_ISA_AVX512;
    return has_avx2(cpu) ? WHERRY_ISA_AVX2 : WHERRY_ISA_SSE2;
}

enum wherry_needs wherry_plan_needs(enum wherry_isa isa)
{
    switch (isa) {
    case WHERRY_ISA_AVX512:
    case WHERRY_ISA_AVX512_LADDER:
    case WHERRY_ISA_AVX512_TOGETHER:
        return WHERRY_NEEDS_AVX512;
    case WHERRY_ISA_AVX2:
        return WHERRY_NEEDS_AVX2;
    default:
        return WHERRY_NEEDS_BASE;
    }
}

/* Others share the cache; below this, finding the destination there afterwards is worth more than the saved read of it.
 * Bounded, because hypervisors report what they like. */
enum { STREAM_LEAST = 4 << 20, STREAM_MOST = 64 << 20, LAST_LEVEL_UNKNOWN = 16 << 20 };

/* `sides`: of a call that go through the cache. A loop brings both sides of a copy there, a set has one; string
 * instructions do not read what they overwrite. */
static size_t stream_from(uint64_t last_level_bytes, unsigned sides)
{
    uint64_t from = (last_level_bytes ? last_level_bytes : LAST_LEVEL_UNKNOWN) / 4 * 3 / sides;
    return from < STREAM_LEAST ? STREAM_LEAST : from > STREAM_MOST ? STREAM_MOST : from;
}

/* Microcode that moves whole lines without reading those of the destination first, and that no misalignment makes slow.
 * Zen 3 and 4 announce ERMS too, and lose a factor of ten at some alignments. */
enum { AMD_ZEN_5 = 0x1a };

static bool fast_strings(const struct wherry_cpu *cpu)
{
    if (!wherry_cpu_has(cpu, WHERRY_CPU_ERMS))
        return false;
    return cpu->vendor == WHERRY_CPU_INTEL || (cpu->vendor == WHERRY_CPU_AMD && cpu->family >= AMD_ZEN_5);
}

/* Where the destination was not written lately (recent.h) they win from 2.5 KiB on. But what few calls do is guessed
 * wrong, which sizes that nobody can predict pay for; pages and packets begin here. */
enum { STRINGS_FROM = 4096 };

/* Where string instructions overtake the loops of 16-byte vectors, even in L1, if short ones are fast (Granite Rapids,
 * docs/performance-intel-large.md; Zen 5, docs/performance-avx2.md): from there on none is worth a question. */
enum { SSE2_COPY_STRINGS_FROM = ALIAS_FROM, SSE2_SET_STRINGS_FROM = 2048 };

static bool sse2_strings(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    return isa == WHERRY_ISA_SSE2 && wherry_cpu_has(cpu, WHERRY_CPU_FSRM);
}

/* The first that announces FSRM is Ice Lake; those before nobody has measured. */
static bool fast_short_strings(const struct wherry_cpu *cpu)
{
    return cpu->vendor == WHERRY_CPU_INTEL && wherry_cpu_has(cpu, WHERRY_CPU_FSRM);
}

/* Where it was, vector loops win as long as both sides lie in L1, and what else the program copies to in turn: with Zen
 * 5 half of its 48 KiB. Intel's rep movsb is within a tenth of 64-byte vectors there from 12 KiB on, and faster where a
 * second destination does not fit (docs/performance-intel-large.md): a quarter, of 48 KiB since Ice Lake; of 32 KiB
 * before. It overtakes 32-byte vectors from 5 KiB on, where both sides begin at lines from 4 KiB on. */
static size_t copy_strings_recent_from(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    if (sse2_strings(cpu, isa))
        return SSE2_COPY_STRINGS_FROM;
    if (cpu->vendor == WHERRY_CPU_AMD)
        return 24 << 10;
    if (isa == WHERRY_ISA_AVX2 && fast_short_strings(cpu))
        return 5 << 10;
    return wherry_cpu_has(cpu, WHERRY_CPU_FSRM) ? 12 << 10 : 8 << 10;
}

/* A set, whose loop only stores: on AMD's as long as it lies in L2, of which something else has a quarter. On Intel's
 * rep stosb is as fast as vectors of 32 and 64 bytes from 8 KiB on wherever the destination lies, and asking takes a
 * twentieth of 8 KiB in L1 and more (Granite Rapids, docs/performance-intel-large.md); below, the loop takes as long or
 * less, but for 4 to 8 KiB beyond L2 at no line's beginning (0.95). Those before Ice Lake as AMD's. */
static size_t set_strings_from(const struct wherry_cpu *cpu, enum wherry_isa isa, size_t otherwise)
{
    if (sse2_strings(cpu, isa))
        return SSE2_SET_STRINGS_FROM;
    return fast_short_strings(cpu) ? 8 << 10 : otherwise;
}
enum { SET_STRINGS_RECENT_FROM = 768 << 10 };

/* In L1 rep movsb takes twice as long with the destination less than a line ahead (mod ALIAS_BYTES), from 4 KiB on no
 * more than loops of 16-byte vectors take; farther out it does not matter. On a Granite Rapids it does not there
 * either, but takes half as long again wherever the two lie in their lines in different places; 64-byte vectors from
 * the end down win by a tenth, narrower ones lose (docs/performance-intel-large.md). */
enum { COPY_STRINGS_SLOW_AHEAD = 63, COPY_STRINGS_ALL_FROM = 32 << 10, SSE2_COPY_STRINGS_ALL_FROM = 4 << 10 };

static size_t copy_strings_slow_ahead(const struct wherry_cpu *cpu, enum wherry_isa isa)
{
    return (isa == WHERRY_ISA_SSE2 || isa == WHERRY_ISA_AVX2) && fast_short_strings(cpu) ? 0 : COPY_STRINGS_SLOW_AHEAD;
}

/* Zen 4 tells a load from a store 4 KiB apart in time, for 15 pairs of pages in 16: backward gains little there in the
 * caches, and with both sides in memory takes a tenth to a fifth longer (docs/performance-avx2.md). Zen 3 is its
 * nearest relative. */
enum { AMD_ZEN_3_AND_4 = 0x19 };

static size_t copy_backward_ahead(const struct wherry_cpu *cpu)
{
    return cpu->vendor == WHERRY_CPU_AMD && cpu->family == AMD_ZEN_3_AND_4 ? 0 : ALIAS_SPAN;
}

/* Zen 4 stores 32 bytes a cycle. With 64-byte vectors its loops are no faster where both sides begin at lines, and take
 * 1.2 to 1.3 times as long elsewhere (docs/performance-zen4.md). */
static size_t copy_ymm_from(const struct wherry_cpu *cpu)
{
    return has_avx512(cpu) && cpu->vendor == WHERRY_CPU_AMD && cpu->family == AMD_ZEN_3_AND_4 ? YMM_LEAST : SIZE_MAX;
}

/* Where a store across lines costs more than a load across them: 1448 misaligned bytes take 0.67 of the time by lines
 * of the destination (Granite Rapids, docs/performance-intel-large.md), on a Zen 5 more than by lines of the source. */
static size_t copy_source_lines_to(const struct wherry_cpu *cpu)
{
    return cpu->vendor == WHERRY_CPU_INTEL ? 0 : SIZE_MAX;
}

/* Models 0 to 15 of the family are Zen 3 for servers. */
static bool is_milan(const struct wherry_cpu *cpu)
{
    return cpu->vendor == WHERRY_CPU_AMD && cpu->family == AMD_ZEN_3_AND_4 && cpu->model < 16;
}

enum { PARTS_FROM = 32 << 10, MILAN_PARTS_FROM = 1 << 20 };

/* Past the caches five parts side by side take 0.83 to 0.90 of the time of a copy from both ends on a Granite Rapids
 * from 1 MiB on (docs/performance-intel-large.md), 0.8 to 0.94 on a Zen 3 for servers (docs/performance-zen3.md), where
 * smaller ones do not go past the caches; on a Zen 5 more streams than two took longer. */
static size_t copy_parts_from(const struct wherry_cpu *cpu)
{
    if (is_milan(cpu))
        return MILAN_PARTS_FROM;
    return cpu->vendor == WHERRY_CPU_INTEL ? PARTS_FROM : SIZE_MAX;
}

/* What goes past the caches where the destination was not touched lately (touched.h). On a Zen 3 copies and sets to
 * memory take 0.3 to 0.7 of the time from 64 KiB on, and with a read of it behind them up to 1.2. What the program has
 * just written by itself is not known to be near, and takes three times as long where it lies in the second-level
 * cache: so from what that has on a Zen 4, twice as much as on a Zen 3 (docs/performance-zen3.md). Others whose loops
 * read what they overwrite nobody has measured. */
enum { FAR_STREAM_FROM = 1 << 20 };

static struct wherry_thresholds past_the_caches(const struct wherry_cpu *cpu, struct wherry_thresholds t,
                                                size_t copy_from, size_t set_from)
{
    const bool far = cpu->vendor == WHERRY_CPU_AMD && cpu->family == AMD_ZEN_3_AND_4;
    t.copy_stream_from = far ? FAR_STREAM_FROM : copy_from;
    t.set_stream_from = far ? FAR_STREAM_FROM : set_from;
    t.copy_stream_recent_from = copy_from;
    t.set_stream_recent_from = set_from;
    return t;
}

struct wherry_thresholds wherry_plan_thresholds(const struct wherry_cpu *cpu, enum wherry_isa isa,
                                                uint64_t last_level_bytes)
{
    const size_t stream = stream_from(last_level_bytes, 1);
    if (!fast_strings(cpu))
        return past_the_caches(cpu,
                               (struct wherry_thresholds){
                                   .copy_rep_from = SIZE_MAX,
                                   .set_rep_from = SIZE_MAX,
                                   .copy_backward_ahead = copy_backward_ahead(cpu),
                                   .copy_ymm_from = copy_ymm_from(cpu),
                                   .copy_source_lines_to = copy_source_lines_to(cpu),
                                   .copy_parts_from = copy_parts_from(cpu),
                               },
                               stream_from(last_level_bytes, 2), stream);
    const struct wherry_thresholds strings = {
        .copy_rep_from = sse2_strings(cpu, isa) ? SSE2_COPY_STRINGS_FROM : STRINGS_FROM,
        .copy_rep_to = stream,
        .set_rep_from = set_strings_from(cpu, isa, STRINGS_FROM),
        .set_rep_to = stream,
        .copy_rep_slow_ahead = copy_strings_slow_ahead(cpu, isa),
        .copy_rep_all_from = sse2_strings(cpu, isa) ? SSE2_COPY_STRINGS_ALL_FROM : COPY_STRINGS_ALL_FROM,
        .copy_rep_recent_from = copy_strings_recent_from(cpu, isa),
        .set_rep_recent_from = set_strings_from(cpu, isa, SET_STRINGS_RECENT_FROM),
        .copy_backward_ahead = copy_backward_ahead(cpu),
        .copy_ymm_from = copy_ymm_from(cpu),
        .copy_source_lines_to = copy_source_lines_to(cpu),
        .copy_parts_from = copy_parts_from(cpu),
    };
    return past_the_caches(cpu, strings, stream, stream);
}
