/* Checksums against known answers, in every tier that this CPU has. `checksum --wrong` expects one that is not right.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "wherry.h"

static int failures;

static void expect(const char *what, uint32_t got, uint32_t expected)
{
    if (got == expected)
        return;
    printf("%s (%s): 0x%08x, expected 0x%08x\n", what, wherry_isa(), got, expected);
    failures++;
}

/* The complement of the checksum, in network order: as people write it. */
static uint32_t sum_of(const void *p, size_t n, uint32_t before)
{
    uint8_t copy[5000];
    const uint16_t plain = (uint16_t)~wherry_csum_fold(wherry_csum_partial(p, n, before));
    const uint16_t fused = (uint16_t)~wherry_csum_fold(wherry_csum_partial_copy(copy, p, n, before));
    expect("copy and sum", fused, plain);
    expect("copied bytes", (uint32_t)memcmp(copy, p, n), 0);
    return (uint16_t)(plain << 8 | plain >> 8);
}

static uint32_t crc_of(const void *p, size_t n)
{
    uint8_t copy[5000];
    const uint32_t plain = wherry_crc32c(0, p, n);
    expect("copy and CRC", wherry_crc32c_copy(0, copy, p, n), plain);
    expect("copied bytes", (uint32_t)memcmp(copy, p, n), 0);
    return plain;
}

static void known_sums(bool wrong)
{
    /* RFC 1071, section 3. */
    static const uint8_t rfc[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    expect("RFC 1071", sum_of(rfc, sizeof rfc, 0), wrong ? 0xddf3 : 0xddf2);
    /* An IPv4 header whose checksum, 0xb861, is in place; without it the sum is its complement. */
    uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                        0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    expect("IPv4 header", sum_of(header, sizeof header, 0), 0xffff);
    expect("checksum of it", wherry_csum_fold(wherry_csum_partial(header, sizeof header, 0)), 0);
    header[10] = header[11] = 0;
    expect("IPv4 header without", sum_of(header, sizeof header, 0), 0x479e);
    static const uint8_t odd[] = {0x01, 0x02, 0x03};
    expect("three bytes", sum_of(odd, 3, 0), 0x0402);
    expect("nothing", sum_of(odd, 0, 0), 0);
    expect("nothing after ones", sum_of(odd, 0, 0xffffffff), 0xffff);

    static uint8_t ones[4096], zeros[4096];
    memset(ones, 0xff, sizeof ones);
    for (size_t n = 0; n <= sizeof ones; n++) {
        expect("zeros", sum_of(zeros, n, 0), 0);
        expect("ones", sum_of(ones, n, 0), n == 0 ? 0 : n % 2 ? 0xff00 : 0xffff);
        expect("ones after ones", sum_of(ones, n, 0xffffffff), n % 2 ? 0xff00 : 0xffff);
        expect("zeros after 0xfffe", sum_of(zeros, n, 0xfffe), 0xfeff);
    }
    /* A carry that wraps, and wraps again: 0xffff + 1 = 1. */
    static const uint8_t wraps[] = {0xff, 0xff, 0x00, 0x01};
    expect("a carry", sum_of(wraps, 4, 0), 0x0001);
    static const uint8_t twice[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00, 0, 0, 0, 0, 0, 0};
    expect("carries of 64 bits", sum_of(twice, 16, 0), 0x0100);
    expect("fold of ones", wherry_csum_fold(0xffffffff), 0);
    expect("fold of 0xffff0000", wherry_csum_fold(0xffff0000), 0);
    expect("fold of 0x0001ffff", wherry_csum_fold(0x0001ffff), 0xfffe);
    expect("fold of 0", wherry_csum_fold(0), 0xffff);
}

/* UDP over IPv6, from scapy: an odd payload; and one whose checksum would be 0, which UDP sends as ones. The
 * pseudo-header is the addresses of the IPv6 header, the length and the protocol. */
static void datagrams(void)
{
    static const uint8_t addresses[32] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1, 0x20, 0x01, 0x0d, 0xb8, [31] = 2};
    static const struct {
        uint8_t length, bytes[15];
        uint16_t check; /* as it lies in memory */
    } each[] = {{15, {0x12, 0x34, 0, 0x35, 0, 0x0f, 0x21, 0x9e, 'w', 'h', 'e', 'r', 'r', 'y', '!'}, 0x9e21},
                {10, {0x12, 0x34, 0, 0x35, 0, 0x0a, 0xff, 0xff, 0x91, 0xfc}, 0}};
    for (size_t i = 0; i < 2; i++) {
        const uint8_t behind[8] = {0, 0, 0, each[i].length, 0, 0, 0, 17};
        const uint32_t pseudo = wherry_csum_partial(behind, sizeof behind, wherry_csum_partial(addresses, 32, 0));
        uint8_t bytes[15];
        memcpy(bytes, each[i].bytes, sizeof bytes);
        expect("a received datagram", wherry_csum_fold(wherry_csum_partial(bytes, each[i].length, pseudo)), 0);
        bytes[6] = bytes[7] = 0;
        expect("one to send", wherry_csum_fold(wherry_csum_partial(bytes, each[i].length, pseudo)), each[i].check);
    }
}

/* Cut anywhere, odd places too, and put together. */
static void combined(void)
{
    static uint8_t bytes[700];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i * 31 + i * 7 + 3);
    const uint16_t whole = wherry_csum_fold(wherry_csum_partial(bytes, sizeof bytes, 0));
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        const uint32_t first = wherry_csum_partial(bytes, cut, 0);
        const uint32_t rest = wherry_csum_partial(bytes + cut, sizeof bytes - cut, 0);
        expect("two parts", wherry_csum_fold(wherry_csum_block_add(first, rest, cut)), whole);
        if (cut % 2 == 0)
            expect("in turn", wherry_csum_fold(wherry_csum_partial(bytes + cut, sizeof bytes - cut, first)), whole);
    }
    expect("block of ones", wherry_csum_fold(wherry_csum_block_add(0xffffffff, 0xffffffff, 1)), 0);
    const uint32_t crc = wherry_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        expect("CRC in turn", wherry_crc32c(wherry_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), crc);
}

/* Long sums of what a sum by approximate carries finds hardest: in each 64-bit lane of four or sixteen vectors, 16 or
 * 32 bytes each, top words that a mean rounds up by the most, or by nothing above lower words that are all ones. */
static void long_sums(void)
{
    enum { LENGTH = 4 << 20 };
    static const struct {
        unsigned count;
        uint16_t words[16];
    } tops[] = {{4, {1, 0, 2, 1}},
                {4, {1, 1, 0, 2}}, /* the same behind one vector, where copies begin their steps */
                {4, {1, 0, 0, 0}},
                {4, {0, 1, 1, 1}},
                {4, {0xffff, 0, 0, 0xfffe}},
                {4, {4, 4, 4, 4}},
                {4, {0xffff, 1, 0xffff, 0}},
                {4, {0xffff, 0xffff, 0xffff, 0xffff}},
                {16, {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4}},
                {16, {0xfff0, 0xffff, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3}},
                {16, {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 0xffff}}};
    static const size_t sizes[] = {(512 << 10) - 2, 512 << 10, (512 << 10) + 33, 1 << 20, (1 << 20) + 100, LENGTH};
    static _Alignas(64) uint16_t words[LENGTH / 2], copy[LENGTH / 2];
    for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
        for (unsigned vector = 8; vector <= 16; vector += 8)
            for (unsigned lower = 0; lower <= 0xffff; lower += 0xffff) {
                for (size_t i = 0; i < LENGTH / 2; i++)
                    words[i] = i % 4 == 3 ? tops[t].words[i / vector % tops[t].count] : (uint16_t)lower;
                uint64_t sum = 0;
                size_t at = 0;
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                    for (; at < sizes[s] / 2; at++)
                        sum += words[at];
                    const uint64_t all = sum + (sizes[s] % 2 ? words[at] & 0xff : 0);
                    const uint32_t wanted = wherry_csum_fold((uint32_t)(all % 65535 + (all ? 65535 : 0)));
                    expect("a long sum", wherry_csum_fold(wherry_csum_partial(words, sizes[s], 0)), wanted);
                    expect("a long copy", wherry_csum_fold(wherry_csum_partial_copy(copy, words, sizes[s], 0)), wanted);
                    expect("as long", (uint32_t)memcmp(copy, words, sizes[s]), 0);
                    uint32_t survived = 0;
                    expect("none left", (uint32_t)wherry_csum_copy_nofault(copy, words, sizes[s], &survived, NULL), 0);
                    expect("a long copy that survives", wherry_csum_fold(survived), wanted);
                }
            }
}

/* Numbers of 64 bits that are small: nothing in their upper halves makes up for what is taken from the lower ones, as
 * where a last vector counts whole and what it overwrites no longer. The same number throughout, so its words tell the
 * sum. */
static void small_numbers(void)
{
    enum { LENGTH = 1 << 18 };
    static const size_t sizes[] = {2042, 2054, 2085, 4095, 4097, 9004, 70003, LENGTH - 2, LENGTH};
    static uint64_t numbers[LENGTH / 8], copy[LENGTH / 8 + 8];
    for (unsigned bit = 0; bit < 64; bit++) {
        for (size_t i = 0; i < LENGTH / 8; i++)
            numbers[i] = (uint64_t)1 << bit;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t at = 0; at < 64; at += sizes[s] < 9000 ? 1 : 7) {
                const uint64_t all = (sizes[s] / 8 + (bit / 8 < sizes[s] % 8)) << bit % 16;
                const uint32_t wanted = wherry_csum_fold((uint32_t)(all % 65535 + 65535));
                uint8_t *dst = (uint8_t *)copy + at;
                expect("small numbers", wherry_csum_fold(wherry_csum_partial(numbers, sizes[s], 0)), wanted);
                expect("copied", wherry_csum_fold(wherry_csum_partial_copy(dst, numbers, sizes[s], 0)), wanted);
                uint32_t survived = 0;
                expect("none left", (uint32_t)wherry_csum_copy_nofault(dst, numbers, sizes[s], &survived, NULL), 0);
                expect("a copy of them that survives", wherry_csum_fold(survived), wanted);
            }
    }
}

static void known_crcs(void)
{
    uint8_t bytes[32];
    expect("CRC of 123456789", crc_of("123456789", 9), 0xe3069283);
    memset(bytes, 0, 32);
    expect("CRC of 32 zeros", crc_of(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    expect("CRC of 32 ones", crc_of(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    expect("CRC of 0 to 31", crc_of(bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    expect("CRC of 31 to 0", crc_of(bytes, 32), 0x113fdb5c);
    expect("CRC of nothing", crc_of(bytes, 0), 0);
    /* As dumpe2fs tells it of a file system with this UUID: Linux crc32c of it, from ones. */
    static const uint8_t uuid[] = {0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    expect("ext4's seed", ~wherry_crc32c(~0xffffffffu, uuid, sizeof uuid), 0xb720167d);
}

/* A destination that is not there ends the program, as with every other copy; it is not a wish for the sum alone. */
static void to_nowhere(void)
{
    static const uint8_t bytes[300];
    static const size_t sizes[] = {1, 2, 4, 7, 8, 16, 100, 256, 300};
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        const size_t n = sizes[i / 2];
        int status = 0;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            (void)(i % 2 ? wherry_crc32c_copy(0, NULL, bytes, n) : wherry_csum_partial_copy(NULL, bytes, n, 0));
            _exit(0);
        }
        expect("a child", waitpid(child, &status, 0) == child, 1);
        expect(i % 2 ? "signal of a CRC to nowhere" : "signal of a sum to nowhere",
               WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0, SIGSEGV);
    }
}

/* Up to a page that cannot be read, from and to odd places, in one part and in several. */
static void until_a_fault(void)
{
    enum { LENGTH = 65536, CLOSED = 40960 };
    uint8_t *src = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *dst = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < LENGTH; i++)
        src[i] = (uint8_t)(i * 31 + 7);
    mprotect(src + CLOSED, 4096, PROT_NONE);
    for (size_t at = 0; at < 64; at++)
        for (size_t n = 0; n < 60000; n += 997) {
            struct wherry_fault fault = {0};
            uint32_t sum = 5;
            const size_t missing = at + n > CLOSED ? at + n - CLOSED : 0;
            expect("not copied", (uint32_t)wherry_csum_copy_nofault(dst + at * 7 % 64, src + at, n, &sum, &fault),
                   (uint32_t)missing);
            expect("sum of the rest", wherry_csum_fold(sum),
                   wherry_csum_fold(wherry_csum_partial(src + at, n - missing, 5)));
            expect("place of the fault", !missing || fault.addr == src + CLOSED, 1);
        }
    munmap(src, LENGTH);
    munmap(dst, LENGTH);
}

int main(int count, char **words)
{
    const bool wrong = count == 2 && strcmp(words[1], "--wrong") == 0;
    int tiers = 0;
    expect("nofault", (uint32_t)wherry_nofault_init(), 0);
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (!wherry_dispatch_force((enum wherry_isa)isa))
            continue;
        wherry_nofault_force((enum wherry_isa)isa);
        tiers++;
        known_sums(wrong);
        datagrams();
        combined();
        long_sums();
        small_numbers();
        known_crcs();
        to_nowhere();
        until_a_fault();
    }
    printf("%d tiers, %d failures\n", tiers, failures);
    return failures != 0;
}
