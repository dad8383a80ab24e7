#include "states.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/cpu.h"

/* states.S */
void live_clear_x87_sse(void);
void live_clear_all(const void *area, uint64_t mask);
#define LIVE_FUNCTIONS(name)                                                                                           \
    void live_begin_##name(float value);                                                                               \
    void live_turn_##name(void);                                                                                       \
    uint64_t live_read_##name(void);
LIVE_FUNCTIONS(x87)
LIVE_FUNCTIONS(sse)
LIVE_FUNCTIONS(avx)
LIVE_FUNCTIONS(avx512)
LIVE_FUNCTIONS(opmask)
LIVE_FUNCTIONS(amx)

static void nothing(void) {}
static void nothing_of(float value) { (void)value; }
static uint64_t zero(void) { return 0; }

static const struct {
    const char *name;
    void (*begin)(float value);
    void (*turn)(void);
    uint64_t (*read)(void);
} states[LIVE_COUNT] = {
    {"none", nothing_of, nothing, zero},
    {"x87", live_begin_x87, live_turn_x87, live_read_x87},
    {"sse", live_begin_sse, live_turn_sse, live_read_sse},
    {"avx", live_begin_avx, live_turn_avx, live_read_avx},
    {"avx512", live_begin_avx512, live_turn_avx512, live_read_avx512},
    {"opmask", live_begin_opmask, live_turn_opmask, live_read_opmask},
    {"amx", live_begin_amx, live_turn_amx, live_read_amx},
};

static const struct wherry_cpu *cpu(void)
{
    static struct wherry_cpu own;
    static bool known;
    if (!known)
        wherry_cpu_detect(&own);
    known = true;
    return &own;
}

static bool has(enum wherry_cpu_feature feature) { return cpu()->features >> feature & 1; }

enum live live_find(const char *name)
{
    int live = 0;
    while (live < LIVE_COUNT && strcmp(states[live].name, name) != 0)
        live++;
    return (enum live)live;
}

/* Tile data is given to a process that asks for it, and to those it forks. */
static bool may_use_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM_ = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_, TILE_DATA) == 0;
}

const char *live_unavailable(enum live live)
{
    switch (live) {
    case LIVE_AVX:
        return has(WHERRY_CPU_AVX) ? NULL : "needs AVX, which this CPU or its operating system lacks";
    case LIVE_AVX512:
    case LIVE_OPMASK:
        return has(WHERRY_CPU_AVX512BW) && has(WHERRY_CPU_AVX512DQ)
                   ? NULL
                   : "needs AVX-512 (F, BW, DQ), which this CPU or its operating system lacks";
    case LIVE_AMX:
        if (!has(WHERRY_CPU_AMX_TILE))
            return "needs AMX, which this CPU or its operating system lacks";
        return may_use_tiles() ? NULL : "the kernel does not give this process the AMX tiles";
    default:
        return NULL;
    }
}

void live_clear(void)
{
    enum { MXCSR_AT = 24, AREA_BYTES = 16 << 10 };
    static _Alignas(64) unsigned char area[AREA_BYTES];
    const uint32_t usual = 0x1f80;
    if (!xsave_bytes()) {
        __builtin_ia32_ldmxcsr(usual);
        live_clear_x87_sse();
        return;
    }
    memcpy(area + MXCSR_AT, &usual, sizeof usual);
    live_clear_all(area, cpu()->xcr0);
}

void live_begin(enum live live, float value) { states[live].begin(value); }
void live_turn(enum live live) { states[live].turn(); }
uint64_t live_read(enum live live) { return states[live].read(); }

bool live_told(void) { return has(WHERRY_CPU_XGETBV1); }

uint64_t live_in_use(void)
{
    if (!live_told())
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (uint64_t)high << 32 | low;
}

static struct wherry_cpuid leaf_d(uint32_t subleaf)
{
    struct wherry_cpuid own = {0};
    __get_cpuid_count(0xd, subleaf, &own.eax, &own.ebx, &own.ecx, &own.edx);
    return own;
}

size_t xsave_bytes(void)
{
    static size_t bytes; /* CPUID may trap */
    if (bytes)
        return bytes;
    if (!has(WHERRY_CPU_OSXSAVE))
        return 0;
    const struct wherry_cpuid standard = leaf_d(0), compacted = leaf_d(1);
    const size_t larger = standard.ebx > compacted.ebx ? standard.ebx : compacted.ebx;
    return bytes = (larger + 63) & ~(size_t)63;
}

bool xsave_has_compacted(void) { return has(WHERRY_CPU_XSAVEC); }
bool xsave_has_optimised(void) { return has(WHERRY_CPU_OSXSAVE) && leaf_d(1).eax & 1; }
