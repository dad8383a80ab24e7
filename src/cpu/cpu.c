#include "cpu/cpu.h"

enum { EAX, EBX, ECX, EDX };
enum { STATE_NONE = 0, STATE_YMM = 0x6, STATE_ZMM = 0xe6, STATE_AMX = 0x60000 };

static struct wherry_cpuid native_cpuid(const void *context, uint32_t leaf, uint32_t subleaf)
{
    (void)context;
    struct wherry_cpuid r;
    __asm__ volatile("cpuid" : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx) : "0"(leaf), "2"(subleaf));
    return r;
}

static uint64_t native_xcr0(const void *context)
{
    (void)context;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

struct wherry_cpu_source wherry_cpu_native(void)
{
    return (struct wherry_cpu_source){.cpuid = native_cpuid, .xcr0 = native_xcr0};
}

/* Byte by byte: memcpy would be a call into the very library that is being set up. */
static void put_text(char *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(word >> 8 * i);
}

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static enum wherry_cpu_vendor vendor_of(const char *name)
{
    if (same(name, "GenuineIntel"))
        return WHERRY_CPU_INTEL;
    if (same(name, "AuthenticAMD"))
        return WHERRY_CPU_AMD;
    if (same(name, "HygonGenuine"))
        return WHERRY_CPU_HYGON;
    if (same(name, "  Shanghai  "))
        return WHERRY_CPU_ZHAOXIN;
    return same(name, "CentaurHauls") ? WHERRY_CPU_CENTAUR : WHERRY_CPU_OTHER;
}

static uint32_t pick(const struct wherry_cpuid *r, int reg)
{
    return reg == EAX ? r->eax : reg == EBX ? r->ebx : reg == ECX ? r->ecx : r->edx;
}

static void note(struct wherry_cpu *cpu, enum wherry_cpu_feature feature, uint64_t state)
{
    const uint64_t bit = (uint64_t)1 << feature;
    cpu->reported |= bit;
    *((cpu->xcr0 & state) == state ? &cpu->features : &cpu->unsaved) |= bit;
}

void wherry_cpu_decode(const struct wherry_cpu_source *source, struct wherry_cpu *cpu)
{
    const void *context = source->context;
    const struct wherry_cpuid none = {0, 0, 0, 0};
    struct wherry_cpuid base = source->cpuid(context, 0, 0);
    struct wherry_cpuid one = base.eax >= 1 ? source->cpuid(context, 1, 0) : none;
    struct wherry_cpuid seven = base.eax >= 7 ? source->cpuid(context, 7, 0) : none;
    struct wherry_cpuid seven1 = seven.eax >= 1 ? source->cpuid(context, 7, 1) : none;
    bool osxsave = one.ecx >> 27 & 1;
    struct wherry_cpuid xsave1 = base.eax >= 0xd && one.ecx >> 26 & 1 ? source->cpuid(context, 0xd, 1) : none;
    /* A CPU without extended leaves answers with those of another leaf; only 0x8000xxxx can be believed. */
    uint32_t extended = source->cpuid(context, 0x80000000, 0).eax;
    cpu->last_leaf = base.eax;
    cpu->last_extended = extended >> 16 == 0x8000 ? extended : 0;
    struct wherry_cpuid ext1 = cpu->last_extended >= 0x80000001 ? source->cpuid(context, 0x80000001, 0) : none;
    cpu->topology_extensions = ext1.ecx >> 22 & 1;

    put_text(cpu->vendor_name, base.ebx);
    put_text(cpu->vendor_name + 4, base.edx);
    put_text(cpu->vendor_name + 8, base.ecx);
    cpu->vendor_name[12] = 0;
    cpu->vendor = vendor_of(cpu->vendor_name);
    uint32_t family = one.eax >> 8 & 15, model = one.eax >> 4 & 15;
    cpu->family = family == 15 ? family + (one.eax >> 20 & 255) : family;
    cpu->model = family == 15 || family == 6 || family == 7 ? model | (one.eax >> 16 & 15) << 4 : model;
    cpu->stepping = one.eax & 15;
    cpu->hypervisor = one.ecx >> 31;
    cpu->xcr0 = osxsave ? source->xcr0(context) : 0;

    cpu->features = cpu->reported = cpu->unsaved = 0;
    const struct wherry_cpuid *r;
#define X(id, name, leaf, subleaf, reg, bit, state)                                                                    \
    r = (leaf) == 1            ? &one                                                                                  \
        : (leaf) == 0xd        ? &xsave1                                                                               \
        : (leaf) == 0x80000001 ? &ext1                                                                                 \
        : (leaf) == 0x80000008 ? &none                                                                                 \
        : (subleaf)            ? &seven1                                                                               \
                               : &seven;                                                                               \
    if (pick(r, reg) >> (bit) & 1)                                                                                     \
        note(cpu, WHERRY_CPU_##id, STATE_##state);
    WHERRY_CPU_FEATURES(X)
#undef X
    /* The wider sets build on the narrower; a hypervisor that masks one and forgets the other must not be believed. */
    if (!wherry_cpu_has(cpu, WHERRY_CPU_AVX))
        cpu->features &= ~((uint64_t)1 << WHERRY_CPU_AVX2 | (uint64_t)1 << WHERRY_CPU_AVX512F);
    if (!wherry_cpu_has(cpu, WHERRY_CPU_AVX512F))
        cpu->features &= ~((uint64_t)1 << WHERRY_CPU_AVX512BW | (uint64_t)1 << WHERRY_CPU_AVX512VL |
                           (uint64_t)1 << WHERRY_CPU_AVX512DQ | (uint64_t)1 << WHERRY_CPU_AVX10);
}

void wherry_cpu_detect(struct wherry_cpu *cpu)
{
    struct wherry_cpu_source source = wherry_cpu_native();
    wherry_cpu_decode(&source, cpu);
}

void wherry_cpu_read_more(const struct wherry_cpu_source *source, struct wherry_cpu *cpu)
{
    if (cpu->last_extended < 0x80000008)
        return;
    const struct wherry_cpuid ext8 = source->cpuid(source->context, 0x80000008, 0);
#define X(id, name, leaf, subleaf, reg, bit, state)                                                                    \
    if ((leaf) == 0x80000008 && pick(&ext8, reg) >> (bit) & 1)                                                         \
        note(cpu, WHERRY_CPU_##id, STATE_##state);
    WHERRY_CPU_FEATURES(X)
#undef X
}

void wherry_cpu_detect_all(struct wherry_cpu *cpu)
{
    struct wherry_cpu_source source = wherry_cpu_native();
    wherry_cpu_decode(&source, cpu);
    wherry_cpu_read_more(&source, cpu);
}

void wherry_cpu_read_names(const struct wherry_cpu_source *source, const struct wherry_cpu *cpu,
                           struct wherry_cpu_names *names)
{
    names->brand[0] = names->hypervisor[0] = names->hypervisor[12] = names->brand[48] = 0;
    if (cpu->hypervisor) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x40000000, 0);
        put_text(names->hypervisor, r.ebx);
        put_text(names->hypervisor + 4, r.ecx);
        put_text(names->hypervisor + 8, r.edx);
    }
    if (cpu->last_extended < 0x80000004)
        return;
    for (uint32_t i = 0; i < 3; i++) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x80000002 + i, 0);
        put_text(names->brand + 16 * i, r.eax);
        put_text(names->brand + 16 * i + 4, r.ebx);
        put_text(names->brand + 16 * i + 8, r.ecx);
        put_text(names->brand + 16 * i + 12, r.edx);
    }
}
