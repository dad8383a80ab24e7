/* via=stack: a TCP stack in user space carries the stream, both ends in this thread, one after the other: what it
 * takes is the stack's own work, and which functions copy and add up is the row's names' choice. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "network.h"
#include "stack_use.h"
#include "wherry.h"

enum { IP_TCP = 6 };
/* Timing each copy is a pass of its own, over a part of the messages. */
enum { TIMED_PART = 4, EMPTY_PAIRS = 2000 };
/* Ticks of the clock in which no copy or checksum of a packet or a message ends so late, unless it was interrupted. */
enum { INTERRUPTED = 100000 };

const struct stack *stack;
static unsigned char *from, *to;
static struct stack_hooks plain; /* those of the name whose turn it is, without clocks */
static struct {
    uint64_t copy, sum, copied, summed, pairs, sums;
} spent;
static bool bad_sum;
static char problem[320];

static uint16_t wherry_sum(const void *data, int n)
{
    return (uint16_t)~wherry_csum_fold(wherry_csum_partial(data, (size_t)n, 0));
}

static uint16_t wherry_copy_sum(void *dst, const void *src, uint16_t n)
{
    return (uint16_t)~wherry_csum_fold(wherry_csum_partial_copy(dst, src, n, 0));
}

const char *stack_names(const struct system_row *row, const char *name)
{
    const struct target *target = target_for(row->targets, name, WHERRY_OP_copy);
    const bool known = strcmp(name, "dropin") == 0 || strcmp(name, "sums") == 0 ||
                       (target && target->abi == ABI_MEMCPY) || system_peer_without_copy(row, name);
    return known ? NULL : "dropin, sums, and the copies that wherry-run list names";
}

/* Which functions a name means: `wherry` all of them; `dropin` copies only, as the drop-in would; `sums` checksums
 * only; any other copy stands for the copies, with the stack's own checksums. */
const char *stack_choose(const struct system_row *row, const char *name)
{
    plain = stack->own;
    const bool all = strcmp(name, "wherry") == 0;
    const char *copier = strcmp(name, "dropin") == 0 ? "wherry" : strcmp(name, "sums") == 0 ? "libc" : name;
    const struct target *copy = target_for(row->targets, copier, WHERRY_OP_copy);
    const struct target *move = target_for(row->targets, copier, WHERRY_OP_move);
    const char *without = system_peer_without_copy(row, copier),
               *missing = without ? without : target_unavailable(copy);
    if (missing)
        return missing;
    if (copy->routine && copy->routine->quantum > 1)
        return "takes only multiples of some bytes";
    if (!move || target_unavailable(move) || move->abi != ABI_MEMCPY)
        move = target_for(row->targets, "libc", WHERRY_OP_move);
    plain.copy = (wherry_copy_fn *)copy->fn;
    plain.move = (wherry_copy_fn *)move->fn;
    if (all || strcmp(name, "sums") == 0)
        plain.sum = wherry_sum;
    if (all)
        plain.copy_sum = wherry_copy_sum;
    target_prepare(copy);
    stack->hook(&plain);
    return NULL;
}

static uint64_t ticks(void)
{
    __builtin_ia32_lfence();
    const uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
}

static uint64_t since(uint64_t begin)
{
    const uint64_t took = ticks() - begin;
    return took < INTERRUPTED ? took : 0;
}

/* What this thread has used: somebody else's time on the CPU is neither side's. */
static uint64_t own_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *timed_copy(void *dst, const void *src, size_t n)
{
    const uint64_t begin = ticks();
    void *result = plain.copy(dst, src, n);
    spent.copy += since(begin);
    spent.pairs++;
    spent.copied += n;
    return result;
}

/* Of no packet: what the stack moves is not looked at. */
static void *timed_move(void *dst, const void *src, size_t n) { return plain.move(dst, src, n); }

static uint16_t timed_sum(const void *data, int n)
{
    const uint64_t begin = ticks();
    const uint16_t sum = plain.sum(data, n);
    spent.sum += since(begin);
    spent.sums++;
    spent.summed += (uint64_t)n;
    return sum;
}

/* The stack's own calls the other two, which see to their own time. */
static uint16_t timed_copy_sum(void *dst, const void *src, uint16_t n)
{
    if (plain.copy_sum == stack->own.copy_sum)
        return plain.copy_sum(dst, src, n);
    const uint64_t begin = ticks();
    const uint16_t sum = plain.copy_sum(dst, src, n);
    spent.copy += since(begin);
    spent.pairs++;
    spent.copied += n;
    spent.summed += n;
    return sum;
}

static double empty_pair(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < EMPTY_PAIRS; i++) {
        const uint64_t begin = ticks(), end = ticks();
        least = end - begin < least ? end - begin : least;
    }
    return (double)least;
}

/* By the textbook, two bytes at a time: nobody's routine judges itself. */
static bool sums_up(const unsigned char *data, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++)
        sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

void stack_check_packet(const unsigned char *packet, size_t n)
{
    const size_t head = (size_t)(packet[0] & 15) * 4;
    uint32_t pseudo = IP_TCP + (uint32_t)(n - head);
    for (int i = 12; i < 20; i += 2)
        pseudo += (uint32_t)packet[i] << 8 | packet[i + 1];
    bad_sum = bad_sum || !sums_up(packet, head, 0) || !sums_up(packet + head, n - head, pseudo);
}

/* A path may have blanks, which rows may not: they come as %20. */
static void plain_path(const char *word, char path[4096])
{
    size_t length = 0;
    for (; *word && length < 4095; word++) {
        unsigned value;
        const bool coded = *word == '%' && sscanf(word + 1, "%2x", &value) == 1;
        path[length++] = coded ? (char)value : *word;
        word += coded ? 2 : 0;
    }
    path[length] = '\0';
}

static const char *load(const char *word)
{
    static char loaded[4096];
    char path[4096];
    plain_path(word, path);
    if (stack && strcmp(path, loaded) == 0)
        return NULL;
    if (stack)
        return "another stack has been loaded in this process";
    /* In a link space of its own its definitions of memcpy and the checksum come before those of anybody else, also
     * when a peer has the same library loaded. */
    void *object = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    const struct stack *found = object ? dlsym(object, "wherry_stack") : NULL;
    if (!found) {
        snprintf(problem, sizeof problem, "the TCP stack does not load: %s", dlerror());
        return problem;
    }
    if (found->version != STACK_VERSION) {
        dlclose(object);
        return "the TCP stack was built for another version of Wherry; run make peers";
    }
    stack = found;
    strcpy(loaded, path);
    return NULL;
}

const char *stack_prepare(struct system_row *row)
{
    if (!*system_word(row, "stack"))
        return "needs the TCP stack that make peers builds of lwIP; the Debian package liblwip-dev brings it";
    const char *missing = load(system_word(row, "stack"));
    if (missing)
        return missing;
    from = from ? from : messages_room();
    to = to ? to : messages_room();
    if (!from || !to)
        return "no memory for the messages";
    messages_fill(from + system_number(row, "offset"), messages_span(system_number(row, "size")));
    stack_choose(row, "libc");
    return NULL;
}

static const char *open_stack(struct system_row *row)
{
    const char *missing = stack_prepare(row);
    return missing ? missing : stack->open(STACK_MTU);
}

static void close_stack(struct system_row *row)
{
    (void)row;
    if (stack)
        stack->close();
}

struct stack_work stack_work_of(const struct system_row *row, uint64_t messages)
{
    const size_t size = system_number(row, "size"), offset = system_number(row, "offset");
    return (struct stack_work){.from = from + offset,
                               .to = to + offset,
                               .message = size,
                               .span = messages_span(size),
                               .room = SOCKET_BUFFER,
                               .messages = messages,
                               .clock = own_time};
}

void stack_count(void)
{
    static const struct stack_hooks counted = {timed_copy, timed_move, timed_sum, timed_copy_sum};
    bad_sum = false;
    memset(&spent, 0, sizeof spent);
    stack->hook(&counted);
}

struct stack_counts stack_counted(void) { return (struct stack_counts){spent.copied, spent.summed, bad_sum}; }

const char *stack_verdict(const char *failed, const struct stack_work *work, const struct stack_counts *counts,
                          bool *wrong)
{
    /* Into the stack and out of it, and a sum at each end: less than that, and somebody else's functions do it. */
    const uint64_t total = work->messages * work->message;
    if (!failed && (counts->copied < 2 * total || counts->summed < 2 * total))
        return "the stack does not call the functions that it is given; run make peers";
    *wrong = failed || work->wrong || counts->bad_sum || work->resent;
    return failed            ? failed
           : work->wrong     ? "the bytes received are not those that were sent"
           : counts->bad_sum ? "a packet's checksum is wrong"
           : work->resent    ? "packets were sent again: a checksum was refused"
                             : NULL;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    const char *missing = stack_choose(row, name);
    if (missing)
        return missing;
    struct stack_work work = stack_work_of(row, 5 * SOCKET_BUFFER / system_number(row, "size") + 2);
    work.check = true;
    work.packet = stack_check_packet;
    stack_count();
    const char *failed = stack->carry(&work);
    stack->hook(&plain);
    const struct stack_counts counts = stack_counted();
    return stack_verdict(failed, &work, &counts, wrong);
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    const double empty = empty_pair();
    const char *failed = stack_choose(row, name);
    struct stack_work work = stack_work_of(row, calls);
    double *parts = figures->parts;
    const uint64_t begin = clock_ns();
    failed = failed ? failed : stack->carry(&work);
    const uint64_t end = clock_ns();
    if (failed)
        return failed;
    figures->ns = (double)(end - begin) / (double)calls;
    parts[PART_SENDER] = (double)work.sender_ns / (double)calls;
    parts[PART_RECEIVER] = (double)work.receiver_ns / (double)calls;
    parts[PART_SEGMENT] = SEGMENT;
    parts[PART_RESENT] = (double)work.resent;

    const uint64_t timed = (calls + TIMED_PART - 1) / TIMED_PART;
    work = stack_work_of(row, timed);
    stack_count();
    const uint64_t began = clock_ns(), tick = __builtin_ia32_rdtsc();
    failed = stack->carry(&work);
    const double ns_a_tick = (double)(clock_ns() - began) / (double)(__builtin_ia32_rdtsc() - tick);
    stack->hook(&plain);
    const double a_message = ns_a_tick / (double)timed;
    parts[PART_COPY] = fmax(0, (double)spent.copy - empty * (double)spent.pairs) * a_message;
    parts[PART_SUM] = fmax(0, (double)spent.sum - empty * (double)spent.sums) * a_message;
    parts[PART_COPIED] = (double)spent.copied / (double)timed;
    parts[PART_SUMMED] = (double)spent.summed / (double)timed;
    return failed;
}

const struct way way_stack = {stack_names, open_stack, ready, sample, close_stack};
