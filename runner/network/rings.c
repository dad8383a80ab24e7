/* via=rings: frames forwarded in memory, after netmap: from the slots of a ring into those of another, 2048 bytes each,
 * with the length beside them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "network.h"
#include "wherry.h"

enum { SLOTS = 512, SLOT = 2048, LINE = 64 };

struct descriptor {
    uint32_t buffer;
    uint16_t length;
    uint16_t flags;
};

struct ring {
    struct descriptor slots[SLOTS];
    unsigned char *buffers; /* SLOTS of them, SLOT bytes each */
    uint32_t head;
};

static struct ring rings[2];
static size_t offset, length;

/* The copy of which Rizzo's is a special case: whole blocks, within the capacities of both buffers. */
__attribute__((noinline)) static void *padded(void *dst, const void *src, size_t n)
{
    return wherry_copy_padded(dst, SLOT - OFFSET_MOST, src, SLOT - OFFSET_MOST, n);
}

static bool is_swap(const char *name) { return strcmp(name, "swap") == 0; }

static const struct target *copy_of(const struct system_row *row, const char *name)
{
    const struct target *target = target_for(row->targets, name, WHERRY_OP_copy);
    return target && target->abi == ABI_MEMCPY ? target : NULL;
}

static const char *names(const struct system_row *row, const char *name)
{
    const bool known =
        is_swap(name) || strcmp(name, "padded") == 0 || copy_of(row, name) || system_peer_without_copy(row, name);
    return known ? NULL : "swap, padded, and the copies that wherry-run list names";
}

/* Bytes copied of a frame: a routine that takes only multiples gets the next one, as netmap does it. */
static size_t bytes_of(const struct target *target, size_t n)
{
    const size_t quantum = target && target->routine && target->routine->quantum ? target->routine->quantum : 1;
    return (n + quantum - 1) / quantum * quantum;
}

static void fill(const struct system_row *row)
{
    for (int side = 0; side < 2; side++) {
        rings[side].head = 0;
        for (uint32_t i = 0; i < SLOTS; i++)
            rings[side].slots[i] = (struct descriptor){.buffer = i, .length = (uint16_t)(side ? 0 : length)};
    }
    messages_fill(rings[0].buffers, (size_t)SLOTS * SLOT);
    memset(rings[1].buffers, 0xa5, (size_t)SLOTS * SLOT);
    (void)row;
}

static const char *open_rings(struct system_row *row)
{
    static unsigned char *memory;
    const size_t bytes = (size_t)SLOTS * SLOT;
    offset = system_number(row, "offset");
    length = system_number(row, "size");
    if (!memory) {
        void *got =
            mmap(NULL, 2 * bytes + SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (got == MAP_FAILED)
            return "no memory for the rings";
        memory = got;
    }
    rings[0].buffers = memory;
    rings[1].buffers = memory + bytes;
    fill(row);
    return NULL;
}

/* The one loop that serves every copy. `whole`: what is copied of a frame. */
__attribute__((noinline)) static void forward(wherry_copy_fn *copy, uint64_t frames, size_t add, size_t mask)
{
    struct ring *in = &rings[0], *out = &rings[1];
    uint32_t at = in->head, to = out->head;
    for (; frames; frames--) {
        struct descriptor *slot = &in->slots[at], *free_slot = &out->slots[to];
        const size_t n = slot->length;
        copy(out->buffers + (size_t)free_slot->buffer * SLOT + offset,
             in->buffers + (size_t)slot->buffer * SLOT + offset, (n + add) & mask);
        free_slot->length = (uint16_t)n;
        at = (at + 1) % SLOTS;
        to = (to + 1) % SLOTS;
    }
    in->head = at;
    out->head = to;
}

/* What netmap does where both rings share their buffers: no copy at all. */
__attribute__((noinline)) static void swap(uint64_t frames)
{
    struct ring *in = &rings[0], *out = &rings[1];
    uint32_t at = in->head, to = out->head;
    for (; frames; frames--) {
        struct descriptor *slot = &in->slots[at], *free_slot = &out->slots[to];
        const uint32_t buffer = slot->buffer;
        free_slot->length = slot->length;
        slot->buffer = free_slot->buffer;
        free_slot->buffer = buffer;
        slot->flags = free_slot->flags = 1;
        at = (at + 1) % SLOTS;
        to = (to + 1) % SLOTS;
    }
    in->head = at;
    out->head = to;
}

static wherry_copy_fn *function_of(const struct target *target)
{
    return target ? (wherry_copy_fn *)target->fn : padded;
}

static void go(const struct system_row *row, const char *name, uint64_t frames)
{
    const struct target *target = copy_of(row, name);
    const size_t quantum = bytes_of(target, 1);
    if (is_swap(name)) {
        swap(frames);
        return;
    }
    if (target)
        target_prepare(target);
    forward(function_of(target), frames, quantum - 1, ~(quantum - 1));
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    const struct target *target = copy_of(row, name);
    const char *missing = target && !is_swap(name) ? target_unavailable(target) : NULL;
    if (!target && !is_swap(name))
        missing = system_peer_without_copy(row, name);
    if (missing)
        return missing;
    const size_t quantum = bytes_of(target, 1);
    if (quantum & (quantum - 1) || offset + bytes_of(target, length) > SLOT)
        return "takes only multiples of some bytes, which do not fit a slot";
    fill(row);
    go(row, name, SLOTS);
    for (size_t i = 0; i < SLOTS && !*wrong; i++) {
        const unsigned char *in = rings[0].buffers + i * SLOT + offset, *out = rings[1].buffers + i * SLOT + offset;
        const bool swapped = is_swap(name);
        *wrong = rings[1].slots[i].length != length || (!swapped && memcmp(in, out, length) != 0);
    }
    fill(row);
    return *wrong ? "a frame differs from what was received" : NULL;
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    go(row, name, SLOTS); /* the slots, and the routine, as the last name left them no more */
    const uint64_t begin = clock_ns();
    go(row, name, calls);
    figures->ns = (double)(clock_ns() - begin) / (double)calls;
    return NULL;
}

static void close_rings(struct system_row *row) { (void)row; }

const struct way way_rings = {names, open_rings, ready, sample, close_rings};
