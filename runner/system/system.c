/* wherry-run system: rows in from standard input, events out, as measure has them; docs/runner-systems.md. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "measure/random.h"
#include "measure/stats.h"
#include "system.h"

enum { SLOWEST_FACTOR = 20, VOID_FACTOR = 1, LEAST_ROUNDS = 3, TRIES = 4 };

extern const struct scene switch_scene, network_scene, stripes_scene, chase_scene, loaded_scene;
const struct scene *const scenes[] = {&switch_scene, &network_scene, &stripes_scene, &chase_scene, &loaded_scene, NULL};

struct slot {
    const char *name;
    bool aa, left_out;
    double call_ns;
    uint64_t calls;
    double *ns;                   /* one a round that was kept */
    struct system_figures *parts; /* likewise */
};

struct session {
    struct system_row *row;
    struct slot slots[SYSTEM_NAMES + 1];
    size_t count;
    unsigned kept, voided, reasons[DISTURBANCE_COUNT];
    bool disturbed, wrong;
    const char *failed, *culprit;
};

static void put_event(const char *event, const struct system_row *row, const char *routine)
{
    json_begin(event);
    json_int("id", row->id);
    json_string("routine", routine);
}

static void put_told(const char *event, const struct system_row *row, const char *routine, const char *key,
                     const char *said)
{
    put_event(event, row, routine);
    json_string(key, said);
    json_end();
}

static void one(struct session *session, struct slot *slot, uint64_t calls, struct system_figures *figures)
{
    figures->ns = NAN;
    figures->looked = false;
    for (int i = 0; i < SYSTEM_PARTS; i++)
        figures->parts[i] = NAN;
    session->failed = session->row->scene->sample(session->row, slot->name, calls, figures);
    session->culprit = slot->name;
}

/* A sample, and what has disturbed it as far as that is its own matter. Of steady work it is taken again, a few times:
 * it is so short that most are left alone even where somebody else wants the CPU all the time. */
static enum disturbance take(struct session *session, struct slot *slot, uint64_t calls, struct system_figures *figures)
{
    enum disturbance what = UNDISTURBED;
    for (int try = 0; try < TRIES; try++) {
        struct watch before, after;
        if (session->row->steady)
            watch_read(&before, session->row->host->cpu);
        one(session, slot, calls, figures);
        if (!session->row->steady || session->failed || host_interrupted)
            return UNDISTURBED;
        watch_read(&after, session->row->host->cpu);
        what = figures->looked ? figures->disturbed : watch_compare(&before, &after);
        if (what == UNDISTURBED)
            break;
    }
    return what;
}

/* A sample of few calls, of more, until its time tells how many fill a batch: that of the faster of two, since a few
 * calls amid which another program had its turn seem slow. */
static void calibrate(struct session *session, struct slot *slot)
{
    const double enough = (double)session->row->batch_us * 1000 / 4;
    struct system_figures figures;
    for (uint64_t calls = 1; !session->failed && !host_interrupted;) {
        const bool last = session->row->calls && calls * 2 > session->row->calls;
        double ns = INFINITY;
        for (int i = 0; i < 2 && (i == 0 || ns * (double)calls >= enough) && !session->failed; i++) {
            take(session, slot, calls, &figures);
            ns = fmin(ns, fmax(figures.ns, 0.1));
        }
        slot->call_ns = ns;
        if (ns * (double)calls >= enough || last)
            return;
        calls = (uint64_t)((double)calls * fmin(fmax(enough * 1.2 / (ns * (double)calls), 2), 64));
    }
}

static void choose_calls(struct session *session)
{
    const double batch = (double)session->row->batch_us * 1000;
    double fastest = 0, slowest = 0;
    for (size_t i = 0; i < session->count; i++) {
        const struct slot *slot = &session->slots[i];
        if (slot->left_out)
            continue;
        fastest = fastest == 0 || slot->call_ns < fastest ? slot->call_ns : fastest;
        slowest = slot->call_ns > slowest ? slot->call_ns : slowest;
    }
    double calls = fmax(1, fmin(ceil(batch / fmax(fastest, 0.1)), floor(SLOWEST_FACTOR * batch / fmax(slowest, 0.1))));
    for (size_t i = 0; i < session->count; i++) {
        struct slot *slot = &session->slots[i];
        slot->calls = session->row->calls    ? session->row->calls
                      : session->row->steady ? (uint64_t)ceil(batch / fmax(slot->call_ns, 0.1))
                                             : (uint64_t)calls;
    }
}

static void begin(struct session *session)
{
    struct system_row *row = session->row;
    for (size_t i = 0; i < row->name_count && !session->failed && !host_interrupted; i++) {
        struct slot *slot = &session->slots[session->count++];
        *slot = (struct slot){.name = row->names[i]};
        put_event("trying", row, slot->name);
        json_end();
        bool wrong = false;
        const char *said = row->scene->ready ? row->scene->ready(row, slot->name, &wrong) : NULL;
        if (said) {
            slot->left_out = true;
            if (row->broken)
                return;
            session->wrong = session->wrong || wrong;
            put_told(wrong ? "wrong" : "skip", row, slot->name, wrong ? "message" : "reason", said);
            continue;
        }
        calibrate(session, slot);
    }
    if (session->failed || host_interrupted)
        return;
    choose_calls(session);
    for (size_t i = 0; i < session->count; i++)
        if (!session->slots[i].left_out) { /* the first that can be had, once more: the noise floor */
            session->slots[session->count] = session->slots[i];
            session->slots[session->count++].aa = true;
            break;
        }
    for (size_t i = 0; i < session->count; i++) {
        session->slots[i].ns = calloc(row->rounds, sizeof(double));
        session->slots[i].parts = calloc(row->rounds, sizeof(struct system_figures));
        if (!session->slots[i].ns || !session->slots[i].parts)
            session->failed = "no memory for the samples";
    }
}

static void shuffle(unsigned *order, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(random, i);
        unsigned held = order[i - 1];
        order[i - 1] = order[other];
        order[other] = held;
    }
}

/* Half the 95 % interval of the mean (Student's), in per cent of it. */
static double half_interval(const struct slot *slot, unsigned rounds)
{
    static const double quantiles[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    const unsigned known = sizeof quantiles / sizeof quantiles[0];
    if (rounds < 2)
        return NAN;
    double mean = 0, square = 0;
    for (unsigned i = 0; i < rounds; i++)
        mean += slot->ns[i] / rounds;
    for (unsigned i = 0; i < rounds; i++)
        square += (slot->ns[i] - mean) * (slot->ns[i] - mean);
    const double quantile = rounds - 2 < known ? quantiles[rounds - 2] : 2.2;
    return 100 * quantile * sqrt(square / (rounds - 1) / rounds) / mean;
}

/* Has every name the certainty that was asked for? */
static bool are_within(const struct session *session)
{
    for (size_t i = 0; i < session->count; i++)
        if (!session->slots[i].left_out && half_interval(&session->slots[i], session->kept) > session->row->within)
            return false;
    return true;
}

/* Every second round in an order of its own, the next in its reverse. A round during which the hypervisor took time
 * away, or in which a sample of steady work was disturbed, is repeated, as often again as rounds were asked for; when
 * too few are left, the disturbed ones count and it is said. */
static void go_round(struct session *session)
{
    struct system_row *row = session->row;
    unsigned order[SYSTEM_NAMES + 1];
    size_t taking_part = 0;
    for (unsigned i = 0; i < session->count; i++)
        if (!session->slots[i].left_out)
            order[taking_part++] = i;
    const unsigned most = row->rounds * (1 + VOID_FACTOR);
    for (unsigned round = 0; taking_part && round < most && session->kept < row->rounds; round++) {
        if (round % 2 == 0)
            shuffle(order, taking_part, row->random);
        enum disturbance what = UNDISTURBED;
        struct watch before, after;
        watch_read(&before, row->host->cpu);
        for (size_t k = 0; k < taking_part; k++) {
            struct slot *slot = &session->slots[order[round % 2 ? taking_part - 1 - k : k]];
            struct system_figures figures;
            const enum disturbance own = take(session, slot, slot->calls, &figures);
            if (session->failed || host_interrupted)
                return;
            what = own > what ? own : what;
            slot->ns[session->kept] = figures.ns;
            slot->parts[session->kept] = figures;
        }
        watch_read(&after, row->host->cpu);
        if (!row->steady && after.steal > before.steal)
            what = STOLEN;
        /* Rounds that are left would not suffice any more: the disturbed ones count from here on. */
        const bool must_count = most - round - 1 < row->rounds - session->kept;
        if (what != UNDISTURBED) {
            session->reasons[what]++;
            session->voided++;
            session->disturbed = session->disturbed || must_count;
        }
        if (what == UNDISTURBED || must_count)
            session->kept++;
        if (row->within && session->kept >= LEAST_ROUNDS && are_within(session))
            return;
    }
}

static double median_part(const struct slot *slot, unsigned rounds, int part)
{
    double values[SYSTEM_ROUNDS];
    size_t count = 0;
    for (unsigned i = 0; i < rounds; i++)
        if (isfinite(slot->parts[i].parts[part]))
            values[count++] = slot->parts[i].parts[part];
    return count ? stats_median(values, count, 0, 1) : NAN;
}

/* The kernel accounts a process's time in ticks: over all rounds together it is right, in one it may be nothing. */
static double mean_part(const struct slot *slot, unsigned rounds, int part)
{
    double sum = 0;
    for (unsigned i = 0; i < rounds; i++)
        sum += slot->parts[i].parts[part];
    return rounds ? sum / rounds : NAN;
}

static bool is_time(const char *name)
{
    const size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, "_ns") == 0;
}

static void put_cells(const struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        const struct slot *slot = &session->slots[i];
        if (slot->left_out)
            continue;
        put_event("cell", session->row, slot->name);
        json_bool("aa", slot->aa);
        json_uint("calls", slot->calls);
        json_double("bytes",
                    session->row->call_bytes ? session->row->call_bytes : (double)system_number(session->row, "size"));
        json_doubles("ns", slot->ns, session->kept);
        json_uint("rounds", session->kept);
        json_uint("voided", session->voided);
        json_bool("disturbed", session->disturbed);
        json_bool("verified", true);
        json_open("parts");
        for (int k = 0; session->row->scene->parts[k]; k++) {
            const char *name = session->row->scene->parts[k];
            json_double(name, is_time(name) ? mean_part(slot, session->kept, k) : median_part(slot, session->kept, k));
        }
        if (session->row->within)
            json_double("within", half_interval(slot, session->kept));
        json_close();
        json_end();
    }
}

static void put_row_end(const struct session *session)
{
    json_begin("rowend");
    json_int("id", session->row->id);
    json_uint("voided", session->voided);
    json_open("reasons");
    for (int reason = MIGRATED; reason < DISTURBANCE_COUNT; reason++)
        json_uint(disturbance_names[reason], session->reasons[reason]);
    json_close();
    json_end();
}

static void free_samples(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        free(session->slots[i].ns);
        free(session->slots[i].parts);
    }
}

static int put_broken(struct system_row *row)
{
    json_begin("broken");
    json_int("id", row->id);
    json_string("message", row->broken);
    json_end();
    row->scene->close(row);
    return EXIT_FAILED;
}

static void put_row(const struct system_row *row)
{
    json_begin("row");
    json_int("id", row->id);
    json_uint("pool_bytes_src", row->pool_bytes);
    json_uint("pool_bytes_dst", 0);
    json_bool("huge", row->huge);
    json_end();
}

static int run_row(struct system_row *row, bool *wrong)
{
    static struct session session;
    session = (struct session){.row = row};
    const char *missing = clock_unfit();
    const bool opened = !missing;
    if (opened)
        missing = row->scene->open(row);
    put_row(row);
    if (row->broken)
        return put_broken(row);
    if (opened && missing && host_interrupted) {
        row->scene->close(row);
        return EXIT_OK;
    }
    if (missing) {
        put_told("skip", row, NULL, "reason", missing);
        json_begin("rowend");
        json_int("id", row->id);
        json_uint("voided", 0);
        json_end();
        if (opened)
            row->scene->close(row);
        return EXIT_OK;
    }
    begin(&session);
    if (!session.failed && !row->broken && !host_interrupted)
        go_round(&session);
    if (row->broken && !host_interrupted) {
        if (session.kept) /* rounds that ended before it happened are as good as ever */
            put_cells(&session);
        free_samples(&session);
        return put_broken(row);
    }
    row->scene->close(row);
    *wrong = *wrong || session.wrong;
    if (session.failed && !host_interrupted) {
        put_event("crash", row, session.culprit);
        json_int("signal", 0);
        json_string("message", session.failed);
        json_end();
    } else if (!host_interrupted) {
        put_cells(&session);
        put_row_end(&session);
    }
    free_samples(&session);
    return session.failed ? EXIT_FAILED : EXIT_OK;
}

static const char help[] =
    "usage: wherry-run system [--pin CPU] [--seed N] [--peer NAME=PATH[:PREFIX]] ...\n\n"
    "Reads rows of experiments on whole systems from standard input, one a line, measures each and writes one JSON\n"
    "object a line.\n\n"
    "  --pin CPU                  the CPU to measure on (default: the one it starts on)\n"
    "  --seed N                   of the order (default: from the clock)\n"
    "  --peer NAME=PATH[:PREFIX]  copies of a shared object may be named, too\n\n"
    "Keys of every row: id op routines rounds within batch_us calls. docs/runner-systems.md tells those of each op:\n";

static int put_help(void)
{
    fputs(help, stdout);
    for (size_t i = 0; scenes[i]; i++) {
        printf("  op=%s", scenes[i]->op);
        for (const struct scene_word *word = scenes[i]->words; word->key; word++)
            printf(" %s", word->key);
        puts("");
    }
    puts("\nExample: echo 'id=1 op=switch routines=no,child,parent,both live=avx512' | wherry-run system");
    return EXIT_OK;
}

int command_system(int argc, char **argv)
{
    static struct target_list targets;
    static struct host host;
    static struct system_row row;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = ((uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec) & 0xffffffffu;
    const char *pin = NULL, *peers[SYSTEM_NAMES];
    size_t peer_count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return put_help();
        const bool known =
            strcmp(argv[i], "--pin") == 0 || strcmp(argv[i], "--seed") == 0 || strcmp(argv[i], "--peer") == 0;
        if (!known)
            return misuse("system: unknown argument '%s'; wherry-run system --help", argv[i]);
        if (i + 1 == argc)
            return misuse("%s: give it a value; wherry-run system --help", argv[i]);
        const char *option = argv[i], *value = argv[++i];
        if (strcmp(option, "--pin") == 0) {
            pin = value;
        } else if (strcmp(option, "--peer") == 0) {
            if (peer_count == SYSTEM_NAMES / 2)
                return misuse("--peer: at most %d", SYSTEM_NAMES / 2);
            peers[peer_count++] = value;
        } else {
            char *end;
            errno = 0;
            seed = strtoull(value, &end, 0);
            if (!(*value >= '0' && *value <= '9') || *end || errno)
                return misuse("--seed %s: give a number from 0 to 18446744073709551615", value);
        }
    }
    targets_add_routines(&targets);
    targets_add_public(&targets, false);
    targets_add_nofault(&targets, true);
    targets_add_libc(&targets);
    for (size_t i = 0; i < peer_count; i++) {
        const char *refused = targets_add_peer(&targets, peers[i]);
        if (refused)
            return misuse("%s", refused);
    }
    const char *refused = host_pin(&host, pin);
    if (refused)
        return misuse("%s", refused);
    if (clock_step_ns() == 0) {
        complain("%s", clock_unfit());
        return EXIT_FAILED;
    }
    host_catch_signals();
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone away is an error of writing, told in a line */
    json_apart();
    host_put_start(&host, seed);
    json_end();

    const char *line;
    bool endless = false;
    unsigned long number = 0, rows = 0;
    bool wrong = false;
    int status = EXIT_OK;
    while (status == EXIT_OK && !host_interrupted && (line = host_row(&endless))) {
        number++;
        if (line[strspn(line, " \t\r\n")] == '\0' || line[strspn(line, " \t")] == '#')
            continue;
        row = (struct system_row){.host = &host, .targets = &targets, .random = &seed};
        const char *problem = system_parse(&row, line);
        status = problem ? misuse("system: row on line %lu: %s", number, problem) : run_row(&row, &wrong);
        rows += status == EXIT_OK;
    }
    if (endless)
        status = misuse("system: line %lu is longer than any row; give rows of key=value words", number + 1);
    if (host_interrupted)
        host_die_of_signal();
    if (status != EXIT_OK)
        return status;
    json_begin("end");
    json_uint("rows", rows);
    json_end();
    return wrong ? EXIT_FAILED : EXIT_OK;
}
