#include "ways.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "content.h"
#include "measure/host.h"
#include "wherry.h"

/* One buffer for all sizes of blocks, walked round: it lies in the caches to the same degree for each. */
enum { BUFFER = 1 << 20, PAGE = 4096 };

static _Alignas(PAGE) unsigned char buffer[BUFFER], expected[BUFFER];
static sigjmp_buf after_fault;
static volatile sig_atomic_t armed;
static void *volatile faulted;
static volatile unsigned touched; /* the sum of what was touched: nobody may leave that out */

typedef size_t nofault_copy(void *dst, const void *src, size_t n, struct wherry_fault *fault);

static void on_fault(int signo, siginfo_t *info, void *context)
{
    if (wherry_nofault_handle(signo, info, context))
        return;
    if (!armed) {
        signal(signo, SIG_DFL); /* returning executes the instruction again */
        return;
    }
    faulted = info->si_addr;
    siglongjmp(after_fault, 1);
}

void ways_catch_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

struct way way_find(const struct target_list *targets, const char *name)
{
    if (strcmp(name, "read") == 0)
        return (struct way){WAY_READ, NULL};
    if (strcmp(name, "direct") == 0)
        return (struct way){WAY_DIRECT, NULL};
    if (strcmp(name, "touch") == 0)
        return (struct way){WAY_TOUCH, NULL};
    const struct target *target = target_for(targets, name, WHERRY_OP_copy);
    if (!target)
        for (size_t i = 0; i < targets->count && !target; i++)
            if (targets->items[i].abi == ABI_NOFAULT && strcmp(targets->items[i].name, name) == 0)
                target = &targets->items[i];
    if (!target || (target->abi != ABI_MEMCPY && target->abi != ABI_NOFAULT))
        return (struct way){WAY_UNKNOWN, NULL};
    return (struct way){WAY_COPY, target};
}

static const char *map_one(struct members *members, struct member *member)
{
    void *map = mmap(NULL, member->bytes, PROT_READ, MAP_SHARED, member->fd, 0);
    if (map == MAP_FAILED)
        return members_read_failed(members, member, 0, member->bytes, -1);
    member->map = map;
    return NULL;
}

static void unmap_all(struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        if (members->own[i].map) {
            munmap(members->own[i].map, members->own[i].bytes);
            members->own[i].map = NULL;
        }
}

const char *way_keep_mapped(struct members *members)
{
    unmap_all(members);
    for (size_t i = 0; i < members->count; i++) {
        const char *why = map_one(members, &members->own[i]);
        if (why)
            return why;
    }
    const struct way touch = {WAY_TOUCH, NULL};
    return way_go(&touch, members, 0, members_blocks(members), true);
}

static void touch(const unsigned char *from, size_t n)
{
    unsigned sum = 0;
    for (size_t at = 0; at < n; at += PAGE)
        sum += *(const volatile unsigned char *)(from + at);
    touched += sum;
}

/* One block to `to`. */
static const char *take(const struct way *way, struct members *members, uint64_t block, unsigned char *to)
{
    struct member *member = members_of(members, block);
    const uint64_t offset = members_offset(members, block);
    const size_t n = members->block;
    if (way->kind == WAY_READ || way->kind == WAY_DIRECT) {
        const long got = pread(way->kind == WAY_READ ? member->fd : member->direct, to, n, (off_t)offset);
        if (got == (long)n)
            return NULL;
        return got < 0 && errno == EINTR ? take(way, members, block, to)
                                         : members_read_failed(members, member, offset, n, got);
    }
    if (!member->map) {
        const char *why = map_one(members, member);
        if (why)
            return why;
    }
    const unsigned char *from = member->map + offset;
    if (way->kind == WAY_TOUCH) {
        touch(from, n);
    } else if (way->target->abi == ABI_NOFAULT) {
        struct wherry_fault fault;
        if (((nofault_copy *)way->target->fn)(to, from, n, &fault))
            return members_fault(members, fault.addr);
    } else {
        ((wherry_copy_fn *)way->target->fn)(to, from, n);
    }
    return NULL;
}

static const char *go(const struct way *way, struct members *members, uint64_t first, uint64_t count)
{
    enum { BLOCKS_BETWEEN_LOOKS = 64 };
    if (sigsetjmp(after_fault, 1)) {
        armed = 0;
        return members_fault(members, faulted);
    }
    armed = 1;
    const char *why = NULL;
    size_t at = 0;
    for (uint64_t i = 0; i < count && !why; i++) {
        why = take(way, members, first + i, buffer + at);
        at = at + 2 * members->block <= BUFFER ? at + members->block : 0;
        if (i % BLOCKS_BETWEEN_LOOKS == 0 && host_interrupted)
            break;
    }
    armed = 0;
    return why;
}

const char *way_go(const struct way *way, struct members *members, uint64_t first, uint64_t count, bool kept)
{
    if (way->target)
        target_prepare(way->target);
    const char *why = go(way, members, first, count);
    if (!kept)
        unmap_all(members);
    return why;
}

static const char *fill_expected(struct members *members, uint64_t block, uint64_t seed, unsigned file)
{
    const struct way by_read = {WAY_READ, NULL};
    if (!seed)
        return take(&by_read, members, block, expected);
    const unsigned own = file ? file : (unsigned)(block % members->count);
    content_fill(seed, own, members_offset(members, block), expected, members->block);
    return NULL;
}

/* Where both buffers differ first, or n. The touched bytes alone for whoever copies none. */
static size_t differ(const struct way *way, const struct member *member, uint64_t offset, size_t n)
{
    const bool sparse = way->kind == WAY_TOUCH;
    const unsigned char *got = sparse ? member->map + offset : buffer;
    if (!sparse && memcmp(got, expected, n) == 0)
        return n;
    for (size_t i = 0; i < n; i += sparse ? PAGE : 1)
        if (got[i] != expected[i])
            return i;
    return n;
}

/* Where a fault comes back to is a function of its own: its caller's variables keep their values. */
static const char *check_one(const struct way *way, struct members *members, uint64_t block, uint64_t seed,
                             unsigned file, size_t *at)
{
    if (sigsetjmp(after_fault, 1)) {
        armed = 0;
        return members_fault(members, faulted);
    }
    armed = 1;
    const char *why = fill_expected(members, block, seed, file);
    if (!why)
        why = take(way, members, block, buffer);
    if (!why)
        *at = differ(way, members_of(members, block), members_offset(members, block), members->block);
    armed = 0;
    return why;
}

static const char *check(const struct way *way, struct members *members, uint64_t seed, unsigned file, bool *wrong)
{
    static char said[MEMBER_PATH + 256];
    const uint64_t blocks = members_blocks(members);
    for (uint64_t block = 0; block < blocks && !host_interrupted; block++) {
        size_t at = 0;
        memset(buffer, 0xa5, members->block);
        const char *why = check_one(way, members, block, seed, file, &at);
        if (why)
            return why;
        if (at == members->block)
            continue;
        const struct member *member = members_of(members, block);
        const uint64_t place = members_offset(members, block) + at;
        *wrong = true;
        snprintf(said, sizeof said, "byte %llu of %s is %02x, and should be %02x", (unsigned long long)place,
                 member->path, way->kind == WAY_TOUCH ? member->map[place] : buffer[at], expected[at]);
        return said;
    }
    return NULL;
}

const char *way_check(const struct way *way, struct members *members, uint64_t seed, unsigned file, bool *wrong)
{
    if (way->target)
        target_prepare(way->target);
    const char *why = check(way, members, seed, file, wrong);
    unmap_all(members);
    return why;
}
