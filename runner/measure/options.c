#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "entry.h"
#include "inlined.h"
#include "yardsticks.h"

static char problem[256];

static bool known(const void *context, const char *name)
{
    const struct target_list *targets = context;
    if (is_yardstick(name))
        return true;
    for (size_t i = 0; i < targets->count; i++)
        if (strcmp(targets->items[i].name, name) == 0)
            return true;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) /* a tier that this CPU lacks is skipped, not unknown */
        if (strncmp(name, "wherry@", 7) == 0 && strcmp(name + 7, wherry_isa_names[isa]) == 0)
            return true;
    return false;
}

const char *options_unknown_name(const struct target_list *targets, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool twice = false;
        for (size_t k = 0; k < i; k++)
            twice = twice || strcmp(names[i], names[k]) == 0;
        if (twice) {
            snprintf(problem, sizeof problem, "'%.80s' is named twice", names[i]);
            return problem;
        }
        if (!entry_known(names[i], known, targets)) {
            snprintf(problem, sizeof problem,
                     "no routine '%.80s'; wherry-run list names them, and libc, wherry, wherry@TIER, call_floor, "
                     "read_bandwidth, write_bandwidth, write_nt_bandwidth, copy_bandwidth, copy_nt_bandwidth, "
                     "copy_nt_parts_bandwidth and the peers given by --peer are allowed too",
                     names[i]);
            return problem;
        }
    }
    return NULL;
}

static bool number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && !*end && !errno && *value >= low && *value <= high;
}

/* "4096", "4K", "4M", "1G" */
static bool bytes(const char *text, size_t *value)
{
    char digits[32];
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    unsigned shift = 0;
    if (text[length]) {
        const char *letters = "KMG", *letter = strchr(letters, text[length]);
        if (!letter || text[length + 1])
            return false;
        shift = 10 * (unsigned)(letter - letters + 1);
    }
    uint64_t n;
    if (!number(digits, 1, (uint64_t)1 << 40, &n) || n << shift > (uint64_t)1 << 40)
        return false;
    *value = (size_t)(n << shift);
    return true;
}

/* The value of the option at argv[*at]: after "=", or the next argument. NULL when there is none. */
static const char *value_of(const char *option, int argc, char **argv, int *at)
{
    size_t length = strlen(option);
    if (argv[*at][length] == '=')
        return argv[*at] + length + 1;
    return *at + 1 < argc ? argv[++*at] : NULL;
}

static const char *const option_names[] = {"--peer",     "--pin",    "--seed",    "--pace", "--plan",
                                           "--counters", "--rounds", "--routine", "--size"};
enum { PEER, PIN, SEED, PACE, PLAN, COUNTERS_OF, ROUNDS, ROUTINE, SIZE, OPTION_COUNT };

static int take(struct options *o, int option, const char *value)
{
    uint64_t n;
    switch (option) {
    case PEER:
        if (o->peer_count == ROW_ROUTINES / 2)
            return misuse("--peer: at most %d", ROW_ROUTINES / 2);
        o->peers[o->peer_count++] = value;
        return -1;
    case PLAN:
        if (o->plan_count == ROW_ROUTINES / 2)
            return misuse("--plan: at most %d", ROW_ROUTINES / 2);
        o->plans[o->plan_count++] = value;
        return -1;
    case SEED:
        return number(value, 0, UINT64_MAX, &o->seed)
                   ? -1
                   : misuse("--seed %s: give a number from 0 to 18446744073709551615", value);
    case PACE: {
        int end = 0;
        if (sscanf(value, "%lf,%lf%n", &o->pace.core, &o->pace.memory, &end) == 2 && !value[end] && o->pace.core >= 0 &&
            o->pace.memory >= 0)
            return -1;
        return misuse("--pace %s: give the two figures of a `pace`, as in 0.83,16.5", value);
    }
    case COUNTERS_OF:
        o->counters = counters_find(value);
        return o->counters ? -1 : misuse("--counters %s: give hardware, software or none", value);
    case ROUNDS:
        if (!number(value, 1, ROW_ROUNDS, &n))
            return misuse("--rounds %s: give a number from 1 to %d", value, ROW_ROUNDS);
        o->rounds = (unsigned)n;
        return -1;
    case ROUTINE:
        if (o->routine_count == ROW_ROUTINES / 2)
            return misuse("--routine: at most %d", ROW_ROUTINES / 2);
        o->routines[o->routine_count++] = value;
        return -1;
    default:
        if (o->size_count == ROW_ROUTINES || !bytes(value, &o->sizes[o->size_count]))
            return misuse("--size %s: give bytes, 1 or more, as in 4096, 4K or 1M (at most %d times)", value,
                          ROW_ROUTINES);
        o->size_count++;
        return -1;
    }
}

int options_parse(struct options *o, int argc, char **argv, struct target_list *targets, struct host *host,
                  const char *help, int command)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *o = (struct options){.seed = ((uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec) & 0xffffffffu,
                          .counters = counters_find("hardware")};
    const char *pin = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return EXIT_OK;
        }
        if (command == OPTIONS_MEASURE && strcmp(argv[i], "--raw") == 0) {
            o->raw = true;
            continue;
        }
        int option = 0;
        size_t length = strcspn(argv[i], "=");
        while (option < OPTION_COUNT &&
               (strlen(option_names[option]) != length || strncmp(argv[i], option_names[option], length) != 0))
            option++;
        if (option == OPTION_COUNT || (command == OPTIONS_MEASURE ? option >= ROUNDS : option == COUNTERS_OF))
            return misuse("%s: unknown argument '%s'; wherry-run %s --help", argv[0], argv[i], argv[0]);
        const char *value = value_of(option_names[option], argc, argv, &i);
        if (!value)
            return misuse("%s: give it a value; wherry-run %s --help", option_names[option], argv[0]);
        if (option == PIN) {
            pin = value;
            continue;
        }
        int status = take(o, option, value);
        if (status >= 0)
            return status;
    }
    targets_add_routines(targets);
    targets_add_public(targets, true);
    targets_add_nofault(targets, true);
    targets_add_inlined(targets);
    targets_add_libc(targets);
    for (size_t i = 0; i < o->plan_count; i++) {
        const char *wrong = targets_add_plan(targets, o->plans[i]);
        if (wrong)
            return misuse("%s", wrong);
    }
    for (size_t i = 0; i < o->peer_count; i++) {
        const char *wrong = targets_add_peer(targets, o->peers[i]);
        if (wrong)
            return misuse("%s", wrong);
    }
    if (clock_step_ns() == 0) { /* each of our loops that waits for a time to pass would go on for ever */
        complain("%s", clock_unfit());
        return EXIT_FAILED;
    }
    const char *refused = host_pin(host, pin);
    return refused ? misuse("%s", refused) : -1;
}
