/* Faults beyond the matrix: larger sizes, pages that are there again behind the missing one, both sides at once,
 * overlap, impossible addresses and sizes. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nofault.h"
#include "wherry.h"

enum what { WHAT_SOURCE, WHAT_DESTINATION, WHAT_BOTH, WHAT_OVERLAP, WHAT_ADDRESS, WHAT_FAR, WHAT_RACE, WHAT_COUNT };

static struct zone zones_src[MISSING_COUNT], zones_dst[MISSING_COUNT];
static struct arena source, destination;
static uint8_t *shadow; /* of the zone in which sides overlap */
static uint8_t *sound;  /* and what its source held */

static void prepare(struct unit *unit, uint64_t seed)
{
    if (destination.length)
        return;
    nofault_begin(unit);
    source = arena_make(ZONE_SIDE + 3 * PAGE, seed, 1);
    destination = arena_make(ZONE_SIDE + 3 * PAGE, seed, 0);
    shadow = map_or_die(2 * ZONE_SIDE + PAGE, PROT_READ | PROT_WRITE);
    sound = map_or_die(ZONE_SIDE + PAGE, PROT_READ | PROT_WRITE);
    for (int how = 0; how < MISSING_COUNT; how++) {
        zones_src[how] = zone_make((enum missing)how, seed, 1);
        zones_dst[how] = zone_make((enum missing)how, seed, 0);
    }
}

static bool missing_to(const struct zone *z, bool writing) { return writing || z->how != MISSING_READ_ONLY; }

/* dist bytes of the one side before its missing page; the other side at offset d or s. */
static void run_source(struct unit *unit, const struct vcase *one, const struct zone *z)
{
    const size_t whole = missing_to(z, false) && one->dist < (int64_t)one->n ? (size_t)one->dist : one->n;
    uint8_t *dst = destination.base + PAGE + one->d % PAGE;
    const struct expectation expected = {
        .whole = whole,
        .low = destination.base,
        .high = destination.base + destination.length,
        .back = destination.back,
        .model = z->back - one->dist,
        .address = (uintptr_t)z->bad,
        .signo = zone_signal(z),
    };
    if (whole == one->n && z->how == MISSING_READ_ONLY) /* all of it can be read, the page too */
        return;
    nofault_call(unit, one, dst, z->bad - one->dist, one->n, &expected);
}

static void check_behind(struct unit *unit, const struct vcase *one, const struct zone *z)
{
    if (!plain_equal(z->bad + PAGE, z->back + PAGE, ZONE_SIDE)) {
        fail(unit, one, z->bad, NULL, "", "changed the pages behind the one that could not be written");
        plain_copy(z->bad + PAGE, z->back + PAGE, ZONE_SIDE);
    }
}

static void run_destination(struct unit *unit, const struct vcase *one, const struct zone *z)
{
    const bool set = is_set(unit->target);
    const size_t whole = one->dist < (int64_t)one->n ? (size_t)one->dist : one->n;
    const uint8_t *src = set ? NULL : source.base + PAGE + one->s % PAGE;
    const struct expectation expected = {
        .whole = whole,
        .low = z->bad - ZONE_SIDE,
        .high = z->bad,
        .back = z->back - ZONE_SIDE,
        .model = set ? NULL : source.back + (src - source.base),
        .address = (uintptr_t)z->bad,
        .signo = zone_signal(z),
        .writing = true,
    };
    nofault_call(unit, one, z->bad - one->dist, src, one->n, &expected);
    if (!zeroes(unit->target)) /* which clears what can be written, and stops where it cannot */
        check_behind(unit, one, z);
}

/* The destination has dist bytes, the source s. */
static void run_both(struct unit *unit, const struct vcase *one, const struct zone *d, const struct zone *s)
{
    const size_t room = (size_t)one->dist, there = (size_t)one->s;
    const bool writing = room < there;
    const size_t whole = writing ? room : there;
    if (!missing_to(s, false) || whole >= one->n)
        return;
    const struct expectation expected = {
        .whole = whole,
        .low = d->bad - ZONE_SIDE,
        .high = d->bad,
        .back = d->back - ZONE_SIDE,
        .model = s->back - there,
        .address = (uintptr_t)(writing ? d->bad : s->bad),
        .signo = zone_signal(writing ? d : s),
        .writing = writing,
    };
    nofault_call(unit, one, d->bad - room, s->bad - there, one->n, &expected);
    check_behind(unit, one, d);
}

/* Both sides in one zone: the source ends d bytes before the missing page or reaches into it (s bytes of it are there),
 * the destination dist bytes from the source. */
static void run_overlap(struct unit *unit, const struct vcase *one, const struct zone *z)
{
    const int64_t src_there = (int64_t)one->s, dst_there = src_there - one->dist;
    if (dst_there < 0 || dst_there > ZONE_SIDE || zeroes(unit->target))
        return;
    uint8_t *const low = z->bad - ZONE_SIDE, *const src = z->bad - src_there, *const dst = z->bad - dst_there;
    const int64_t reads = missing_to(z, false) ? src_there : INT64_MAX;
    const bool writing = dst_there < reads;
    int64_t whole = writing ? dst_there : reads;
    whole = whole < (int64_t)one->n ? whole : (int64_t)one->n;
    if (whole > src_there) { /* on in a page that can be read and not written */
        if (missing_to(z, false) || whole - src_there > PAGE)
            return;
        plain_copy(sound, src, (size_t)whole);
    }
    plain_copy(shadow, z->back - ZONE_SIDE, ZONE_SIDE);
    const struct expectation expected = {
        .whole = (uint64_t)whole,
        .low = low,
        .high = z->bad,
        .back = shadow,
        .model = whole > src_there ? sound : z->back - src_there,
        .address = (uintptr_t)z->bad,
        .signo = zone_signal(z),
        .writing = writing,
    };
    nofault_call(unit, one, dst, src, one->n, &expected);
    plain_copy(low, shadow, ZONE_SIDE);
    check_behind(unit, one, z);
}

/* Addresses for which the kernel gives no address, or of its own half, or about the top of everything. */
static const uint64_t addresses[] = {0,
                                     8,
                                     0x7ffffffff000,
                                     0x800000000000,
                                     0x8000000000000000,
                                     0xff00000000000000,
                                     0xffff7fffffffffff,
                                     0xffff800000000000,
                                     0xfffffffffffff000,
                                     0xffffffffffffffff};
enum { ADDRESSES = sizeof addresses / sizeof addresses[0] };

/* at / 16: which address; s: 1 when it is the destination. */
static void run_address(struct unit *unit, const struct vcase *one)
{
    uint8_t *const nowhere = (uint8_t *)(uintptr_t)addresses[one->at / 16 % ADDRESSES];
    const bool set = is_set(unit->target), writing = set || one->s & 1;
    uint8_t *const there = (writing ? source.base : destination.base) + PAGE + one->d % PAGE;
    const struct expectation expected = {
        .low = writing ? nowhere : destination.base,
        .high = writing ? nowhere : destination.base + destination.length,
        .back = destination.back,
        .model = set ? NULL : source.back,
        .address = (uintptr_t)nowhere,
        .signo = SIGSEGV,
        .writing = writing,
    };
    if (writing)
        nofault_call(unit, one, nowhere, set ? NULL : there, one->n, &expected);
    else
        nofault_call(unit, one, there, nowhere, one->n, &expected);
}

/* Sizes beyond what there can be: dist bytes are there, of the destination when s is 1. */
static void run_far(struct unit *unit, const struct vcase *one, const struct zone *d, const struct zone *s)
{
    static const uint64_t sizes[] = {
        UINT64_MAX,        UINT64_MAX - 63,         (uint64_t)1 << 63,    ((uint64_t)1 << 63) - 1,
        (uint64_t)1 << 47, ((uint64_t)1 << 32) + 7, UINT64_MAX / 2 + 4096};
    const size_t n = sizes[one->n % (sizeof sizes / sizeof sizes[0])], whole = (size_t)one->dist;
    const bool set = is_set(unit->target), writing = set || one->s & 1;
    if (!writing && (!missing_to(s, false) || zeroes(unit->target)))
        return;
    /* The other side is the other zone, with more of it there. */
    const size_t more = ZONE_SIDE - one->d % PAGE;
    uint8_t *const dst = d->bad - (writing ? whole : more);
    const uint8_t *const src = set ? NULL : s->bad - (writing ? more : whole);
    const struct expectation expected = {
        .whole = whole,
        .low = d->bad - ZONE_SIDE,
        .high = d->bad,
        .back = d->back - ZONE_SIDE,
        .model = set ? NULL : s->back - (writing ? more : whole),
        .address = (uintptr_t)(writing ? d->bad : s->bad),
        .signo = zone_signal(writing ? d : s),
        .writing = writing,
    };
    const struct wherry_thresholds usual = wherry_thresholds;
    if (one->d & 1) { /* the loops alone, as a plan may say */
        wherry_thresholds.copy_rep_from = wherry_thresholds.copy_stream_from = SIZE_MAX;
        wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
    }
    nofault_call(unit, one, dst, src, n, &expected);
    wherry_thresholds = usual;
    check_behind(unit, one, d);
}

/* A page that goes away while the copy runs: taken by instruction, so that it may be any. */
struct taking {
    uint8_t *page;
    uint64_t after; /* instructions */
};

static bool take(void *context, uintptr_t rip)
{
    struct taking *taking = context;
    (void)rip;
    if (taking->after-- > 0)
        return true;
    mprotect(taking->page, PAGE, PROT_NONE);
    return false;
}

/* s: how many instructions later; d: where the destination begins; dist: dst - src; c: which page of which side. */
static void run_race(struct unit *unit, const struct vcase *one)
{
    enum { PAGES = 16, FROM = 6 * PAGE };
    static uint8_t *at;
    const bool set = is_set(unit->target);
    const size_t n = one->n < 3 * PAGE ? one->n : one->n % (3 * PAGE) + 1;
    const int64_t distance = one->dist % (3 * PAGE);
    if (zeroes(unit->target))
        return;
    if (!at)
        at = map_or_die(PAGES * PAGE, PROT_READ | PROT_WRITE);
    const uint8_t *kept = source.back;
    plain_copy(at, kept, PAGES * PAGE);
    uint8_t *const src = at + FROM + one->d % PAGE, *const dst = src + distance;
    uint8_t *const side = one->c & 1 || set ? dst : src;
    struct taking taking = {.after = one->s};
    taking.page = (uint8_t *)((uintptr_t)(side + (uint64_t)(unsigned)one->c / 2 * 977 % n) & ~(uintptr_t)(PAGE - 1));
    unit->pulse->now = *one;
    unit->cases++;
    target_fault = (struct wherry_fault){.signo = -1};
    call_on_step = take;
    call_hook_context = &taking;
    const struct outcome seen = call_raw(unit, one, dst, set ? NULL : src, n);
    call_on_step = NULL;
    mprotect(at, PAGES * PAGE, PROT_READ | PROT_WRITE);
    const size_t left = (size_t)seen.returned;
    unit->left = left <= n ? left : 0; /* any of these may be right */
    if (!call_judge(unit, one, &seen, dst, src, n))
        return;
    const size_t whole = n - left;
    const uint8_t *model = kept + (src - at), c = (uint8_t)value_of(unit->target, one->c);
    if (set ? !plain_all(dst, c, whole) : !plain_equal(dst, model, whole)) {
        const size_t byte = set ? first_other(dst, c, whole) : first_difference(dst, model, whole);
        fail_byte(unit, one, dst, src, "destination", (int64_t)byte, set ? c : model[byte], dst[byte]);
    } else if (!plain_equal(at, kept, (size_t)(dst - at)) ||
               !plain_equal(dst + n, kept + (dst + n - at), (size_t)(at + PAGES * PAGE - (dst + n)))) {
        fail(unit, one, dst, src, "", "wrote outside the destination when a page went away");
    } else if (left && target_fault.signo != SIGSEGV) {
        fail(unit, one, dst, src, "report", "a page went away, and there is no report of it");
    } else if (left && !set && !target_fault.writing && (taking.page + PAGE <= src || taking.page >= src + n)) {
        /* Also where what was written is read again for its sum. */
        fail(unit, one, dst, src, "report",
             "a page of the destination alone went away, and the report has the source's");
    } else if (left && set == false && (uintptr_t)dst - (uintptr_t)src >= n &&
               (uintptr_t)target_fault.addr != (uintptr_t)(target_fault.writing ? dst : src) + whole) {
        fail(unit, one, dst, src, "report", "a page went away, and the report has another address than the count");
    }
}

/* at: what, and how the page is missing, 16 * at of the address. c: the value, and how the other side's page is
 * missing. */
static void run(struct unit *unit, const struct vcase *one)
{
    prepare(unit, one->seed);
    const struct zone *d = &zones_dst[one->at / 16 % MISSING_COUNT], *s = &zones_src[(unsigned)one->c % MISSING_COUNT];
    const enum what what = (enum what)(one->at % 16);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++)
        switch (what) {
        case WHAT_SOURCE:
            run_source(unit, one, s);
            break;
        case WHAT_DESTINATION:
            run_destination(unit, one, d);
            break;
        case WHAT_BOTH:
            run_both(unit, one, d, s);
            break;
        case WHAT_OVERLAP:
            run_overlap(unit, one, d);
            break;
        case WHAT_ADDRESS:
            run_address(unit, one);
            break;
        case WHAT_RACE:
            run_race(unit, one);
            break;
        default:
            run_far(unit, one, d, s);
            break;
        }
}

/* Small sizes as often as large ones, and often about the places where the method changes. */
static uint64_t any_size(struct unit *unit)
{
    static const uint16_t about[] = {16,   32,   64,   128,   256,   512,   600,  1024,
                                     2048, 4096, 8192, 12288, 16384, 24576, 49152};
    const uint64_t room = ZONE_SIDE - 2 * PAGE;
    uint64_t n = below(unit, 2) ? about[below(unit, sizeof about / sizeof about[0])] + below(unit, 130) - 65
                                : (below(unit, 256) + 1) << below(unit, 9) | below(unit, 64);
    return n == 0 || n > room ? 1 : n;
}

/* A place in n bytes, often near its ends. */
static uint64_t any_place(struct unit *unit, uint64_t n)
{
    uint64_t near = below(unit, n < 300 ? n : 300);
    switch (below(unit, 4)) {
    case 0:
        return near;
    case 1:
        return n - 1 - near;
    default:
        return below(unit, n);
    }
}

static void generate(struct unit *unit)
{
    const bool set = is_set(unit->target);
    const uint64_t cases = unit->level == LEVEL_FULL    ? 300000
                           : unit->level == LEVEL_BRIEF ? 4000
                           : unit->few                  ? 50000
                                                        : 25000;
    for (uint64_t i = 0; i < cases && !unit->failed; i++) {
        enum what what = (enum what)below(unit, WHAT_COUNT);
        if (what == WHAT_RACE && below(unit, 8)) /* stepping takes its time */
            what = WHAT_BOTH;
        if (set && what != WHAT_ADDRESS && what != WHAT_FAR && what != WHAT_RACE)
            what = WHAT_DESTINATION;
        struct vcase one = {.calls = 1, .seed = unit->seed, .n = any_size(unit), .c = (int)below(unit, 256)};
        one.d = below(unit, PAGE);
        one.s = below(unit, PAGE);
        one.dist = (int64_t)any_place(unit, one.n);
        if (what == WHAT_BOTH) {
            one.s = any_place(unit, one.n);
            if (below(unit, 3) == 0) /* both at about the same byte */
                one.dist = (int64_t)one.s + (int64_t)below(unit, 5) - 2;
            one.dist = one.dist < 0 ? 0 : one.dist;
        } else if (what == WHAT_OVERLAP) {
            one.s = below(unit, 2) ? any_place(unit, one.n) : below(unit, one.n * 5 / 4 + 64);
            const int64_t reach = (int64_t)(below(unit, 2) ? one.n : 200);
            one.dist = (int64_t)below(unit, 2 * (uint64_t)reach + 1) - reach;
        }
        if (what == WHAT_RACE) {
            one.s = below(unit, below(unit, 3) ? 150 : 600);
            one.dist = (int64_t)below(unit, 6 * PAGE) - 3 * PAGE;
            if (below(unit, 2)) /* at which the copy goes backward */
                one.dist = (int64_t)below(unit, 1500) + (below(unit, 2) ? 2 * PAGE : 1);
        }
        one.at = (unsigned)what + 16 * (unsigned)below(unit, what == WHAT_ADDRESS ? ADDRESSES : MISSING_COUNT);
        run(unit, &one);
    }
}

static const char *lacks_room(const struct vcase *one)
{
    const enum what what = (enum what)(one->at % 16);
    const uint64_t most = ZONE_SIDE - PAGE, n = what == WHAT_FAR ? 0 : one->n; /* there one of a few sizes */
    if (what >= WHAT_COUNT)
        return "at of 0 to 6, and 16 times more";
    const uint64_t reach = what == WHAT_OVERLAP ? reach_of(one) : (uint64_t)one->dist;
    if (what == WHAT_RACE || (n <= most && reach <= most && one->s <= most))
        return NULL;
    static char words[48];
    snprintf(words, sizeof words, "n, s and dist of 0 to %" PRIu64 " bytes", most);
    return words;
}

const struct family family_nofault = {
    .name = "nofault",
    .what = "faults in large sizes, on both sides, overlapping, at impossible addresses",
    .applies = is_nofault,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
};
