/* The scene op=network: what its words mean, and which way measures it. */
#include "network.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "measure/random.h"

enum { RING_MOST = 2048 };

static const struct scene_word words[] = {
    {"via", "loopback veth stack rings", "loopback", 0, 0, false},
    {"size", NULL, "4096", 1, MESSAGE_MOST, false},
    {"offset", NULL, "0", 0, OFFSET_MOST, false},
    {"offload", "on off", "on", 0, 0, false},
    {"stack", NULL, "", 0, 0, true},
    {"ends", "together apart", "together", 0, 0, false},
    {NULL, NULL, NULL, 0, 0, false},
};
static const char *const parts[] = {"sender_ns",
                                    "receiver_ns",
                                    "sender_system_ns",
                                    "receiver_system_ns",
                                    "copy_ns",
                                    "sum_ns",
                                    "copied",
                                    "summed",
                                    "segment",
                                    "resent",
                                    NULL};

static char problem[256];

size_t messages_span(size_t size) { return (SOCKET_BUFFER / size + 1) * size; }

unsigned char *messages_room(void)
{
    enum { ROOM = SOCKET_BUFFER + MESSAGE_MOST + 2 * 4096 };
    void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return room == MAP_FAILED ? NULL : room;
}

void messages_fill(unsigned char *base, size_t span)
{
    uint64_t state = 0x6e6574776f726bu;
    for (size_t i = 0; i < span; i++)
        base[i] = (unsigned char)random_below(&state, 256);
}

static const struct way *way_of(const struct system_row *row)
{
    if (system_is(row, "via", "stack"))
        return system_is(row, "ends", "apart") ? &way_apart : &way_stack;
    return system_is(row, "via", "rings") ? &way_rings : &way_kernel;
}

static const char *accept(struct system_row *row)
{
    if (system_is(row, "offload", "off") && !system_is(row, "via", "veth"))
        return "offload=off goes with via=veth";
    if (*system_word(row, "stack") && !system_is(row, "via", "stack"))
        return "stack= goes with via=stack";
    if (system_is(row, "ends", "apart") && !system_is(row, "via", "stack"))
        return "ends=apart goes with via=stack; loopback and veth always have two processes";
    if (system_is(row, "via", "rings") && system_number(row, "size") > RING_MOST - OFFSET_MOST)
        return "via=rings: frames are 1 to 1985 bytes";
    for (size_t i = 0; i < row->name_count; i++) {
        const char *names = way_of(row)->names(row, row->names[i]);
        if (names) {
            snprintf(problem, sizeof problem, "'%.80s' is none of %s", row->names[i], names);
            return problem;
        }
    }
    return NULL;
}

static const char *open_row(struct system_row *row) { return way_of(row)->open(row); }

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    return way_of(row)->ready(row, name, wrong);
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    return way_of(row)->sample(row, name, calls, figures);
}

static void close_row(struct system_row *row) { way_of(row)->close(row); }

extern const struct scene network_scene;
const struct scene network_scene = {"network", words, parts, accept, open_row, ready, sample, close_row};
