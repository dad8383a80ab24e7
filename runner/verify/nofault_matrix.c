/* The matrix of faults: every small size, every position of the fault in it, every offset of the other side. */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nofault.h"
#include "wherry.h"

enum { MATRIX_SIZES = 512, OFFSETS = 64, AROUND = 64 };

/* From 640 bytes on the copy that sums may go by dot products, as no smaller one does: that size, and some to a page
 * that end differently. */
static const uint16_t summed_sizes[] = {640, 703, 777, 1024, 1448, 2047, PAGE};
enum { SUMMED_SIZES = sizeof summed_sizes / sizeof summed_sizes[0] };

bool is_nofault(const struct target *target) { return target->kind == TARGET_NOFAULT; }

bool zeroes(const struct target *target) { return target->fn == (void (*)(void))wherry_copy_nofault_zero; }

struct zone zone_make(enum missing how, uint64_t seed, int parity)
{
    const size_t length = 2 * ZONE_SIDE + PAGE;
    struct zone z = {.how = how};
    uint8_t *at = map_or_die(length, PROT_READ | PROT_WRITE), *back = map_or_die(length, PROT_READ | PROT_WRITE);
    z.bad = at + ZONE_SIDE;
    z.back = back + ZONE_SIDE;
    pattern_fill(back, length, seed, parity);
    plain_copy(at, back, length);
    bool made;
    if (how == MISSING_TRUNCATED) {
        const int file = memfd_create("truncated", MFD_CLOEXEC);
        made = file >= 0 && ftruncate(file, PAGE) == 0 &&
               mmap(z.bad, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == z.bad;
        if (made) {
            z.bad[0] = 1;
            made = ftruncate(file, 0) == 0;
        }
        close(file);
    } else if (how == MISSING_UNMAPPED) {
        made = munmap(z.bad, PAGE) == 0;
    } else {
        made = mprotect(z.bad, PAGE, how == MISSING_READ_ONLY ? PROT_READ : PROT_NONE) == 0;
    }
    if (!made)
        no_room();
    return z;
}

int zone_signal(const struct zone *zone) { return zone->how == MISSING_TRUNCATED ? SIGBUS : SIGSEGV; }

void nofault_begin(struct unit *unit)
{
    if (wherry_nofault_init() != 0)
        no_room();
    target_prepare(unit->target);
}

static void judge_report(struct unit *unit, const struct vcase *one, const void *dst, const void *src,
                         const struct expectation *e)
{
    const struct wherry_fault *f = &target_fault;
    if ((uintptr_t)f->addr != e->address)
        fail(unit, one, dst, src, "report", "reported address %p, expected %p", f->addr, (void *)e->address);
    else if (f->writing != e->writing)
        fail(unit, one, dst, src, "report", "reported a %s fault, expected a %s fault", f->writing ? "write" : "read",
             e->writing ? "write" : "read");
    else if (e->signo && (f->signo != e->signo || f->code <= 0))
        fail(unit, one, dst, src, "report", "reported signal %d, code %d; expected signal %d with a code of the kernel",
             f->signo, f->code, e->signo);
}

void nofault_call(struct unit *unit, const struct vcase *one, uint8_t *dst, const uint8_t *src, size_t n,
                  const struct expectation *e)
{
    const uint8_t c = (uint8_t)value_of(unit->target, one->c);
    unit->pulse->now = *one;
    unit->pulse->now_dst_off = (unsigned)((uintptr_t)dst % PAGE);
    unit->pulse->now_src_off = (unsigned)((uintptr_t)src % PAGE);
    unit->pulse->now_distance = src ? (int64_t)((uintptr_t)dst - (uintptr_t)src) : 0;
    target_fault = (struct wherry_fault){.signo = -1};
    unit->left = n - e->whole;
    unit->cases++;
    /* By turns with no place for the report, by what the case says: a failure is repeated as it was. */
    const bool told = (n + (uintptr_t)dst % PAGE + (uintptr_t)src % PAGE * 3) % 4 != 0;
    target_report = told ? &target_fault : NULL;
    const struct outcome seen = call_raw(unit, one, dst, src, n);
    target_report = &target_fault;
    if (!call_judge(unit, one, &seen, dst, src, n))
        return;
    if (unit->left && told)
        judge_report(unit, one, dst, src, e);
    else if (unit->left && target_fault.signo != -1)
        fail(unit, one, dst, src, "report", "reported a fault to nowhere");
    else if (target_fault.signo != -1)
        fail(unit, one, dst, src, "report", "reported a fault and copied everything");
    const size_t whole = (size_t)e->whole;
    if (e->model ? !plain_equal(dst, e->model, whole) : !plain_all(dst, c, whole)) {
        const size_t at = e->model ? first_difference(dst, e->model, whole) : first_other(dst, c, whole);
        fail_byte(unit, one, dst, src, "destination", (int64_t)at, e->model ? e->model[at] : c, dst[at]);
    }
    size_t cleared = 0; /* bytes behind these that must be zero */
    if (zeroes(unit->target) && whole < n && dst + whole < e->high) {
        cleared = n - whole < (size_t)(e->high - (dst + whole)) ? n - whole : (size_t)(e->high - (dst + whole));
        if (!plain_all(dst + whole, 0, cleared)) {
            const size_t at = first_other(dst + whole, 0, cleared);
            fail_byte(unit, one, dst, src, "destination", (int64_t)(whole + at), 0, dst[whole + at]);
        }
    }
    uint8_t *from = dst + whole + cleared;
    const uint8_t *kept = e->back + (from - e->low);
    if (!plain_equal(e->low, e->back, (size_t)(dst - e->low))) {
        const size_t at = first_difference(e->low, e->back, (size_t)(dst - e->low));
        fail_byte(unit, one, dst, src, "destination", (int64_t)at - (dst - e->low), e->back[at], e->low[at]);
    } else if (from < e->high && !plain_equal(from, kept, (size_t)(e->high - from))) {
        const size_t at = first_difference(from, kept, (size_t)(e->high - from));
        fail(unit, one, dst, src, "", "changed byte %zu, which lies %zu bytes past the %zu that it copied",
             whole + cleared + at, at, whole);
    }
    plain_copy(dst, e->back + (dst - e->low), whole + cleared);
}

/* The zones of both signals for each side, and a plain arena for the other side. */
static struct zone readable[2], writable[2];
static struct arena source, destination;

static void prepare(struct unit *unit, uint64_t seed)
{
    if (destination.length)
        return;
    nofault_begin(unit);
    source = arena_make(2 * PAGE, seed, 1);
    destination = arena_make(2 * PAGE, seed, 0);
    readable[0] = zone_make(MISSING_NONE, seed, 1);
    readable[1] = zone_make(MISSING_TRUNCATED, seed, 1);
    writable[0] = zone_make(MISSING_READ_ONLY, seed, 0);
    writable[1] = zone_make(MISSING_TRUNCATED, seed, 0);
}

/* dist: bytes before the fault. d, s: offset of the other side. at: 1 for SIGBUS. */
static const char *lacks_room(const struct vcase *one)
{
    if (one->n <= PAGE && one->dist >= 0 && (uint64_t)one->dist < one->n)
        return NULL;
    return "4096 bytes, with the fault (dist) inside them";
}
_Static_assert(PAGE == 4096, "said above");

static void run_read(struct unit *unit, const struct vcase *one)
{
    prepare(unit, one->seed);
    const struct zone *z = &readable[one->at & 1];
    const size_t p = (size_t)one->dist;
    uint8_t *dst = destination.base + AROUND + one->d % OFFSETS;
    const struct expectation expected = {
        .whole = p,
        .low = dst - AROUND,
        .high = dst + one->n + AROUND,
        .back = destination.back + (dst - AROUND - destination.base),
        .model = z->back - p,
        .address = (uintptr_t)z->bad,
        .signo = zone_signal(z),
    };
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++)
        nofault_call(unit, one, dst, z->bad - p, one->n, &expected);
}

static void run_write(struct unit *unit, const struct vcase *one)
{
    prepare(unit, one->seed);
    const struct zone *z = &writable[one->at & 1];
    const size_t p = (size_t)one->dist, at = one->s % OFFSETS;
    const bool set = is_set(unit->target);
    const struct expectation expected = {
        .whole = p,
        .low = z->bad - p - AROUND,
        .high = z->bad,
        .back = z->back - p - AROUND,
        .model = set ? NULL : source.back + AROUND + at,
        .address = (uintptr_t)z->bad,
        .signo = zone_signal(z),
        .writing = true,
    };
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++)
        nofault_call(unit, one, z->bad - p, set ? NULL : source.base + AROUND + at, one->n, &expected);
}

/* The further ways of a tier's small sizes. */
static bool further_way(const struct target *target)
{
    return target->forced && (target->isa == WHERRY_ISA_AVX512_LADDER || target->isa == WHERRY_ISA_AVX512_TOGETHER);
}

static bool further(const struct target *target)
{
    return is_nofault(target) && (target->method != METHOD_PLANNED || zeroes(target) || further_way(target));
}

/* Each fault takes some microseconds, so everything but the copy itself, which is done whole, gets a sample; so do the
 * further ways of it, of each place a few offsets. The sample leaves nothing to chance but where it begins: the
 * smallest sizes are whole; of each other size every so many places for either signal, and as many sizes in a row have
 * every place between them; and 64 cases in a row have every offset. */
enum { SMALLEST = 32 };

static bool sampled(uint64_t n, int64_t place, unsigned signal, uint64_t one_of, uint64_t first)
{
    return n <= SMALLEST || (n * 5 + (uint64_t)place + signal * one_of / 2 + first) % one_of == 0;
}

static void generate(struct unit *unit, void (*run)(struct unit *, const struct vcase *))
{
    const struct target *t = unit->target;
    const bool whole = t->abi == ABI_NOFAULT && t->method == METHOD_PLANNED && !zeroes(t);
    const bool full = unit->level == LEVEL_FULL;
    const unsigned offsets = !full ? 1 : !whole ? 2 : further_way(t) ? OFFSETS / 16 : OFFSETS;
    const unsigned one_of = full ? 1 : unit->level == LEVEL_BRIEF ? 64 : whole ? 4 : 16;
    struct vcase one = {.calls = 1, .seed = unit->seed, .c = 0x1a5};
    const uint64_t first = below(unit, OFFSETS);
    uint64_t turn = 0;
    const unsigned sizes = MATRIX_SIZES + (sums_as_well(t) ? SUMMED_SIZES : 0);
    for (unsigned i = 0; i < sizes; i++) {
        one.n = i < MATRIX_SIZES ? i + 1 : summed_sizes[i - MATRIX_SIZES];
        for (one.dist = 0; one.dist < (int64_t)one.n; one.dist++)
            for (one.at = 0; one.at < 2; one.at++)
                for (unsigned k = 0; k < offsets; k++) {
                    if (!sampled(one.n, one.dist, one.at, one_of, first))
                        continue;
                    one.d = one.s = offsets == OFFSETS ? k : (first + 37 * turn++) % OFFSETS;
                    run(unit, &one);
                    if (unit->failed)
                        return;
                }
    }
    const uint8_t *behind[2] = {writable[0].bad + PAGE, writable[1].bad + PAGE};
    for (unsigned i = 0; i < 2; i++)
        if (!plain_equal(behind[i], writable[i].back + PAGE, ZONE_SIDE))
            fail(unit, &one, behind[i], NULL, "", "changed the pages behind the one that could not be written");
}

static void generate_read(struct unit *unit) { generate(unit, run_read); }
static void generate_write(struct unit *unit) { generate(unit, run_write); }

static bool copies_nofault(const struct target *target) { return is_nofault(target) && !is_set(target); }

const struct family family_nofault_read = {
    .name = "nofault-read",
    .what = "every size to 512 (sums: some to 4096), every place in it where the source ends, two signals",
    .applies = copies_nofault,
    .generate = generate_read,
    .run = run_read,
    .lacks_room = lacks_room,
};
const struct family family_nofault_write = {
    .name = "nofault-write",
    .what = "the same where the destination ends",
    .applies = is_nofault,
    .generate = generate_write,
    .run = run_write,
    .lacks_room = lacks_room,
};

bool sampled_in_full(const struct target *target, const struct family *family)
{
    return further(target) && family != &family_nofault_read && family != &family_nofault_write;
}
