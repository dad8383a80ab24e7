/* Places where there is nothing, or not for everybody, and copies beyond 4 GiB. */
#include "scenes.h"

/* A load can read memory that is mapped for writing only, and process_vm_readv will not. Either side, or both in one.
 */
static void writable_only(void)
{
    static unsigned char other[2 * PAGE];
    for (int table = 0; table < 2; table++) {
        if (table)
            begin();
        else if (by_calls() != WHERRY_NOFAULT_BY_VM)
            continue; /* an emulator goes by what the mapping says */
        for (size_t n = 1; n <= PAGE; n += n < 70 ? 1 : 211) {
            unsigned char *end = edge_of(false), *at = end - n;
            struct wherry_fault fault = {0};
            uint32_t sum = 0;
            CHECK(mprotect(end - PAGE, PAGE, PROT_WRITE) == 0);
            CHECK(wherry_csum_copy_nofault(other, at, n, &sum, NULL) == 0 && memcmp(other, at, n) == 0);
            CHECK(wherry_csum_fold(sum) == wherry_csum_fold(wherry_csum_partial(other, n, 0)));
            memset(other, 0, sizeof other);
            CHECK(wherry_copy_nofault(other, at, n + 7, &fault) == 7 && memcmp(other, at, n) == 0);
            CHECK(fault.addr == end && !fault.writing);
            CHECK(wherry_copy_nofault(end - PAGE, at, n / 2, NULL) == 0 && memcmp(end - PAGE, other, n / 2) == 0);
            CHECK(wherry_set_nofault(at, 9, n, NULL) == 0 && *at == 9);
            CHECK(wherry_copy_nofault(at, other, n + 7, &fault) == 7 && memcmp(other, at, n) == 0);
            CHECK(fault.addr == end && fault.writing);
            CHECK(wherry_copy_nofault(at, at - (n < PAGE), n, NULL) == 0); /* up by one, then down again */
            CHECK(n == PAGE || memcmp(at + 1, other, n - 1) == 0);
            CHECK(n == PAGE || wherry_copy_nofault(at - 1, at, n, NULL) == 0);
            CHECK(n == PAGE || memcmp(at, other, n - 1) == 0);
            munmap(end - PAGE, 2 * PAGE);
        }
    }
}

/* Which side is told where there is nothing, and where both are in one page that is not there. */
static void nowhere(void)
{
    static unsigned char other[2 * PAGE];
    static const uintptr_t wild[] = {0, 1, PAGE - 1, (uintptr_t)1 << 47, (uintptr_t)1 << 63, (uintptr_t)-PAGE};
    const size_t sizes[] = {1, 7, 16, 33, 100, 300, 1100, PAGE, (size_t)-PAGE};
    enum { WILD = sizeof wild / sizeof *wild, SIZES = sizeof sizes / sizeof *sizes };
    unsigned char *const end = edge_of(false);
    begin();
    for (int size = 0; size < SIZES; size++) {
        const size_t n = sizes[size];
        struct wherry_fault fault = {0};
        for (int i = 0; i < WILD; i++) {
            unsigned char *const at = (unsigned char *)wild[i];
            CHECK(wherry_copy_nofault(other, at, n, &fault) == n && fault.addr == at && !fault.writing);
            CHECK(wherry_copy_nofault(at, end - PAGE, n, &fault) == n && fault.addr == at && fault.writing);
            for (int k = 0; k < WILD; k++) { /* the source comes first */
                CHECK(wherry_copy_nofault((void *)wild[k], at, n, &fault) == n);
                CHECK(fault.addr == at && !fault.writing);
            }
        }
        for (size_t apart = 1; apart < PAGE; apart += 273) {
            CHECK(wherry_copy_nofault(end, end + apart, n, &fault) == n);
            CHECK(fault.addr == end + apart && !fault.writing);
            CHECK(wherry_copy_nofault(end + apart, end, n, &fault) == n && fault.addr == end && !fault.writing);
        }
    }
    CHECK(mprotect(end, PAGE, PROT_READ) == 0);
    for (size_t n = 1; n < PAGE / 2; n += 61) {
        struct wherry_fault fault = {0};
        CHECK(wherry_copy_nofault(end + 5, end + PAGE / 2, n, &fault) == n && fault.addr == end + 5 && fault.writing);
        CHECK(wherry_copy_nofault(end + PAGE / 2, end + 5, n, &fault) == n && fault.writing);
        CHECK(fault.addr == end + PAGE / 2);
    }
}

/* What a protection key denies to loads no way may read. Three pages: before, locked, behind. */
static void keys(void)
{
    enum { DENY_ALL = 1, DENY_STORES = 2, BYTES = 3 * PAGE };
    const int closed = key_that_denies(DENY_ALL), constant = key_that_denies(DENY_STORES);
    if (closed < 0 || constant < 0)
        exit(77);
    static unsigned char kept[BYTES], to[BYTES + 1];
    unsigned char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *const locked = at + PAGE;
    CHECK(at != MAP_FAILED);
    for (size_t i = 0; i < BYTES; i++)
        kept[i] = at[i] = (unsigned char)(i * 7 + i / 256 + 1);
    for (int table = 0; table < 2; table++) {
        if (table)
            begin();
        CHECK(status_now().path == (table ? WHERRY_NOFAULT_BY_TABLE : by_calls()));
        struct wherry_fault fault;
        for (size_t there = 0; there <= PAGE; there += there < 70 ? 1 : 671) {
            const size_t n = there + 1 + there % 5 * 1000;
            uint32_t sum = 0;
            lock_page(locked, closed);
            memset(to, 0, sizeof to);
            CHECK(wherry_copy_nofault(to, locked - there, n, &fault) == n - there);
            CHECK(fault.addr == locked && !fault.writing && (table ? fault.signo == SIGSEGV : fault.code == EFAULT));
            CHECK(memcmp(to, locked - there, there) == 0 && to[there] == 0 && to[n - 1] == 0);
            CHECK(wherry_csum_copy_nofault(to + 1, locked - there, n, &sum, &fault) == n - there);
            CHECK(memcmp(to + 1, locked - there, there) == 0 && to[there + 1] == 0 && fault.addr == locked);
            CHECK(wherry_csum_fold(sum) == wherry_csum_fold(wherry_csum_partial(to + 1, there, 0)));
            if (there > 0) /* up by one: the destination is denied first */
                CHECK(wherry_copy_nofault(locked - there + 1, locked - there, n, &fault) == n - there + 1 &&
                      fault.writing);
            lock_page(locked, constant);
            memcpy(at, kept, PAGE);
            CHECK(wherry_copy_nofault(to, locked - there, n, NULL) == 0 && memcmp(to, locked - there, n) == 0);
            CHECK(wherry_copy_nofault(locked - there, to, n, &fault) == n - there);
            CHECK(fault.addr == locked && fault.writing && memcmp(at, kept, BYTES) == 0);
            CHECK(wherry_set_nofault(locked - there, kept[PAGE - there], n, &fault) == n - there);
            CHECK(fault.addr == locked && fault.writing && memcmp(locked, kept + PAGE, BYTES - PAGE) == 0);
            memcpy(at, kept, PAGE);
        }
        CHECK(wherry_copy_nofault(to, at, BYTES, NULL) == 0 && memcmp(to, kept, BYTES) == 0);
    }
}

static void huge(void)
{
    const size_t piece = (size_t)64 << 20, whole = (size_t)66 * piece, more = 12345; /* 4.125 GiB */
    /* The source above the destination: what overlaps if all of it were there is then copied upwards. */
    unsigned char *to =
        mmap(NULL, 2 * whole + 2 * piece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *from = to + whole + piece;
    CHECK(to != MAP_FAILED && mprotect(from, whole, PROT_READ | PROT_WRITE) == 0);
    int fd = memfd_create("piece", 0); /* the destination is one piece of memory, over and over */
    CHECK(fd >= 0 && ftruncate(fd, (off_t)piece) == 0);
    for (size_t i = 0; i < whole + piece; i += piece)
        CHECK(mmap(to + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == to + i);
    from[whole - 1] = 77;
    struct wherry_fault fault;
    for (int table = 0; table < 2; table++) {
        to[0] = 0;
        if (table)
            begin();
        CHECK(wherry_copy_nofault(to, from, whole + more, &fault) == more);
        CHECK(fault.addr == from + whole && to[whole - 1] == 77);
        if (table || !briefly)
            CHECK(wherry_copy_nofault(to, from, (size_t)1 << 40, &fault) == ((size_t)1 << 40) - whole);
    }
    CHECK(mprotect(to + whole, PAGE, PROT_READ) == 0);
    CHECK(wherry_set_nofault(to, 77, whole + more, &fault) == more);
    CHECK(fault.addr == to + whole && fault.writing && to[0] == 77);
    CHECK(wherry_copy_nofault(to, from, whole + more, &fault) == more && fault.addr == from + whole && !fault.writing);
}

/* A plan for another tier comes into force between two instructions of a call: it goes by one tier or the other, and
 * makes no system call, for which a sandbox may kill. */
enum { TRAP_FLAG = 0x100, STEPS = 30 };
extern volatile signed char wherry_nofault_choice; /* of the library: -1 is SSE2, 1 AVX2, above it AVX-512 */
static signed char tier_after;
static volatile int steps, change_at;
static void on_step(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    if (steps == change_at)
        wherry_nofault_choice = tier_after;
    if (++steps > STEPS)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}
static inline void step(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp"
                     :
                     : "i"(TRAP_FLAG)
                     : "cc", "memory");
}
static bool one_changes_tier(int which)
{
    unsigned char other[100];
    struct wherry_fault fault = {0};
    uint32_t sum = 0;
    steps = 0;
    step();
    const size_t left = which == 0   ? wherry_copy_nofault(other, edge, sizeof other, &fault)
                        : which == 1 ? wherry_set_nofault(edge, 1, sizeof other, &fault)
                                     : wherry_csum_copy_nofault(other, edge, sizeof other, &sum, &fault);
    return left == sizeof other && fault.signo == SIGSEGV && fault.addr == edge;
}
static void tier_meanwhile(void)
{
    begin();
    if (briefly) /* an emulator knows no steps */
        return;
    own(SIGTRAP, on_step, 0);
    const signed char here = wherry_nofault_choice, tiers[] = {-1, here < 1 ? here : 1, here};
    CHECK(here != 0);
    for (int pair = 0; pair < 9; pair++)
        for (change_at = 0; change_at < STEPS; change_at++)
            for (int which = 0; which < 3; which++) {
                wherry_nofault_choice = tiers[pair / 3];
                tier_after = tiers[pair % 3];
                CHECK(one_changes_tier(which));
            }
}

/* The destination goes away in the very moment in which all of it has been written: nothing has to read it again. */
static unsigned char *filling, at_source[PAGE];
static size_t filled;
static void on_step_filled(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    if (memcmp(filling, at_source, filled) != 0)
        return;
    CHECK(mprotect((void *)((uintptr_t)filling & -(uintptr_t)PAGE), PAGE, PROT_NONE) == 0);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}
/* dst: of a page of its own. Returns how many bytes are counted. */
static size_t summed_before_it_goes(unsigned char *dst, const unsigned char *src, size_t there, size_t n)
{
    uint32_t sum = 0;
    struct wherry_fault fault = {0};
    filling = dst;
    filled = there;
    memcpy(at_source, src, there);
    CHECK(there > 0 && memcmp(dst, src, there) != 0);
    step();
    const size_t copied = n - wherry_csum_copy_nofault(dst, src, n, &sum, &fault);
    CHECK(copied <= there && mprotect((void *)((uintptr_t)dst & -(uintptr_t)PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(wherry_csum_fold(sum) == wherry_csum_fold(wherry_csum_partial(at_source, copied, 0)));
    CHECK(copied == n || fault.addr == (fault.writing ? (const unsigned char *)dst : src) + copied || copied == 0);
    return copied;
}
static void destination_gone(void)
{
    static const size_t sizes[] = {1, 5, 7, 20, 64, 100, 700, 1448, 2500, PAGE - 1};
    if (briefly) /* an emulator knows no steps */
        return;
    own(SIGTRAP, on_step_filled, 0);
    for (int table = 0; table < 2; table++) {
        if (table)
            begin();
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const size_t n = sizes[i];
            unsigned char *const to = edge_of(false) - PAGE, *const end = edge_of(false);
            memset(to, 0, PAGE);
            CHECK(summed_before_it_goes(to, end - n, n, n + 1) > 0 || table);
            memset(to, 0, PAGE);
            summed_before_it_goes(to, end - n, n, n);
            /* the two overlap, down and up */
            summed_before_it_goes(end - n - 1, end - n, n, n);
            CHECK(memcmp(end - n - 1, at_source, n) == 0);
            end[-1] ^= 1;
            summed_before_it_goes(end - n, end - n - 1, n, n);
            munmap(to, 2 * PAGE);
            munmap(end - PAGE, 2 * PAGE);
        }
    }
}

/* A page of either side that is missing, or that cannot be written, in copies whose destination nobody has written
 * lately: those may go by a string instruction, and whatever comes before it. At the ends of pages, where the next line
 * is the next page's. */
static void far(void)
{
    enum { PAGES = 6, BYTES = PAGES * PAGE, SIDES = 32 };
    static const size_t offsets[] = {0,         1,         31,        64,        100,     PAGE - 65,
                                     PAGE - 64, PAGE - 63, PAGE - 33, PAGE - 32, PAGE - 1};
    enum { OFFSETS = sizeof offsets / sizeof *offsets };
    static unsigned char model[BYTES];
    unsigned char *const source = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *const sides = mmap(NULL, SIDES * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(source != MAP_FAILED && sides != MAP_FAILED);
    for (size_t i = 0; i < BYTES; i++)
        source[i] = (unsigned char)(i * 7 + i / 256);
    begin();
    unsigned turn = 0;
    for (size_t n = PAGE; n <= 4 * PAGE + 100; n += 2731)
        for (int d = 0; d < OFFSETS; d++)
            for (int s = 0; s < OFFSETS; s += 2)
                for (int gone = 0; gone < 2 * PAGES; gone++) {
                    const bool writing = gone >= PAGES;
                    const size_t to = offsets[d], from = offsets[s], hole = gone % PAGES * PAGE;
                    unsigned char *const side = sides + turn++ % SIDES * BYTES;
                    unsigned char *const page = (writing ? side : source) + hole;
                    const size_t begins = writing ? to : from;
                    const size_t there = hole + PAGE <= begins || hole >= begins + n ? n
                                         : hole > begins                             ? hole - begins
                                                                                     : 0;
                    struct wherry_fault fault = {0};
                    memset(side, 0, BYTES);
                    memset(model, 0, BYTES);
                    memcpy(model + to, source + from, there);
                    CHECK(mprotect(page, PAGE, writing && turn % 2 ? PROT_READ : PROT_NONE) == 0);
                    CHECK(wherry_copy_nofault(side + to, source + from, n, &fault) == n - there);
                    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
                    CHECK(memcmp(side, model, BYTES) == 0);
                    CHECK(there == n ||
                          (fault.writing == writing && fault.addr == (writing ? side + to : source + from) + there));
                }
    munmap(source, BYTES);
    munmap(sides, SIDES * BYTES);
}

const struct named_scene scenes_of_places[] = {
    SCENE(tier_meanwhile), SCENE(writable_only),    SCENE(nowhere), SCENE(keys),
    SCENE(huge),           SCENE(destination_gone), SCENE(far),     {0}};
