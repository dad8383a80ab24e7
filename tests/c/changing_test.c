/* Copies that sum, of a source that somebody changes meanwhile: after each instruction all its bytes are others. What
 * the call returns is the sum of what lies in the destination then, in every tier, whatever was read how often. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "wherry.h"

enum { TRAP_FLAG = 0x100, MOST = 21000, AROUND = 128 };

static uint8_t source[MOST + 2 * AROUND], destination[MOST + 2 * AROUND];
static uint8_t *changing;
static size_t changing_length;
static unsigned failures, changes;

static void change(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    memset(changing, (int)(++changes * 37), changing_length);
}

static void watched(bool on)
{
    if (on)
        __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "cc", "memory");
    else
        __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~TRAP_FLAG) : "cc", "memory");
}

static uint32_t sum_copy(void *dst, const void *src, size_t n) { return wherry_csum_partial_copy(dst, src, n, 0); }

static uint32_t sum_copy_nofault(void *dst, const void *src, size_t n)
{
    uint32_t sum = 0;
    wherry_csum_copy_nofault(dst, src, n, &sum, NULL);
    return sum;
}

static uint32_t crc_copy(void *dst, const void *src, size_t n) { return wherry_crc32c_copy(0, dst, src, n); }

static uint32_t sum_of(const void *p, size_t n) { return wherry_csum_partial(p, n, 0); }
static uint32_t crc_of(const void *p, size_t n) { return wherry_crc32c(0, p, n); }

static const struct {
    const char *name;
    uint32_t (*copy)(void *, const void *, size_t);
    uint32_t (*of)(const void *, size_t);
    bool folds;
} calls[] = {
    {"csum_partial_copy", sum_copy, sum_of, true},
    {"csum_copy_nofault", sum_copy_nofault, sum_of, true},
    {"crc32c_copy", crc_copy, crc_of, false},
};

static void try(const char *tier, size_t call, size_t n, size_t d, size_t s)
{
    uint8_t *const dst = destination + AROUND + d, *const src = source + AROUND + s;
    memset(destination, 0x55, sizeof destination);
    changing = src;
    changing_length = n;
    watched(true);
    const uint32_t told = calls[call].copy(dst, src, n);
    watched(false);
    const uint32_t is = calls[call].of(dst, n);
    bool right = calls[call].folds ? wherry_csum_fold(told) == wherry_csum_fold(is) : told == is;
    for (size_t i = 0; i < AROUND; i++)
        right = right && destination[AROUND + d - 1 - i] == 0x55 && destination[AROUND + d + n + i] == 0x55;
    if (!right && failures++ < 20)
        printf("%s of %s: %zu bytes, destination + %zu, source + %zu: not the sum of what it has copied\n",
               calls[call].name, tier, n, d, s);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = change, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    if (wherry_nofault_init() < 0)
        return 2;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        /* The variants of AVX-512 differ in plain copies only. */
        if (isa > WHERRY_ISA_AVX512 || !wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        wherry_nofault_force((enum wherry_isa)isa);
        const char *const tier = wherry_isa_names[isa];
        for (size_t call = 0; call < sizeof calls / sizeof *calls; call++) {
            for (size_t n = 0; n <= 150; n++)
                for (size_t d = n % 32; d < 64; d += 31)
                    try(tier, call, n, d, n * 7 % 37);
            for (size_t n = 151; n <= 1200; n += 61)
                for (size_t d = n % 29; d < 64; d += 27)
                    try(tier, call, n, d, n % 41);
            for (size_t n = 2047; n <= MOST - 64; n += n * 2 / 3 + 11)
                try(tier, call, n, n % 64, n % 41);
        }
        printf("%s looked at\n", tier);
    }
    if (changes < 1000)
        printf("the source was changed %u times only\n", changes);
    return failures != 0 || changes < 1000;
}
