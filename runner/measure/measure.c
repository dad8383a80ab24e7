/* wherry-run measure: rows in from standard input, events out; docs/runner-protocol.md. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "commands.h"
#include "json.h"
#include "known.h"
#include "last_words.h"
#include "options.h"
#include "stats.h"

static void put_event(const char *event, const struct row *row, const char *routine)
{
    json_begin(event);
    json_int("id", row->id);
    json_string("routine", routine);
}

static void on_row(void *context, const struct row *row, const struct pool *pool, int handed_by)
{
    (void)context;
    json_begin("row");
    json_int("id", row->id);
    json_uint("pool_bytes_src", pool ? pool->src_side.bytes : 0);
    json_uint("pool_bytes_dst", pool ? (row->overlaps ? pool->src_side.bytes : pool->dst_side.bytes) : 0);
    json_bool("huge", pool && row->huge && pool_is_huge(pool));
    if (handed_by >= 0)
        json_int("handed_by", handed_by);
    json_end();
}

static void on_trying(void *context, const struct row *row, const char *routine)
{
    (void)context;
    put_event("trying", row, routine);
    json_end();
}

static void on_skip(void *context, const struct row *row, const char *routine, const char *reason)
{
    (void)context;
    put_event("skip", row, routine);
    json_string("reason", reason);
    json_end();
}

static void on_wrong(void *context, const struct row *row, const char *routine, const char *message)
{
    *(bool *)context = true;
    put_event("wrong", row, routine);
    json_string("message", message);
    json_end();
}

static void on_fault(void *context, const struct row *row, const char *routine, struct guarded_result how,
                     const char *doing)
{
    (void)context;
    char message[256];
    put_event(how.hung ? "hang" : "crash", row, routine);
    if (how.hung) {
        snprintf(message, sizeof message, "did not return %s", doing);
    } else {
        const char *name = sigabbrev_np(how.signo);
        json_int("signal", how.signo);
        snprintf(message, sizeof message, "SIG%s %s", name ? name : "?", doing);
    }
    json_string("message", message);
    json_end();
}

/* The median, over the rounds that count, of one number of each; NAN when none has it. */
static double median_of(const struct result *result, const struct cell *cell, size_t offset)
{
    double values[result->rounds + 1];
    size_t count = 0;
    for (unsigned i = 0; i < result->rounds; i++) {
        double value;
        memcpy(&value, (const char *)&cell->tried[result->kept[i]] + offset, sizeof value);
        if (isfinite(value))
            values[count++] = value;
    }
    return count ? stats_median(values, count, 0, 1) : NAN;
}

static void put_counts(const struct result *result, const struct cell *cell, const struct counters *counters)
{
    json_open("counters");
    for (int i = 0; i < COUNTERS && counters->set->events[i].name; i++)
        json_double(counters->set->events[i].name,
                    median_of(result, cell, offsetof(struct figures, counts) + (size_t)i * sizeof(double)));
    json_close();
}

static void put_tried(const struct result *result, const struct cell *cell)
{
    double ns[result->tried_count + 1];
    for (unsigned i = 0; i < result->tried_count; i++)
        ns[i] = cell->tried[i].ns;
    json_doubles("tried", ns, result->tried_count);
}

static void put_cells(const struct row *row, const struct result *result, const struct bench *bench, bool raw)
{
    for (size_t i = 0; i < result->cell_count; i++) {
        const struct cell *cell = &result->cells[i];
        if (cell->left_out)
            continue;
        put_event("cell", row, cell->name);
        json_bool("aa", cell->aa);
        json_uint("calls", cell->calls);
        json_double("bytes", result->bytes);
        json_doubles("ns", cell->ns, result->rounds);
        json_uint("rounds", result->valid);
        json_uint("voided", result->voided);
        json_bool("disturbed", result->rounds != result->valid);
        json_bool("verified", true);
        if (cell->upper_in_use)
            json_bool("upper_in_use", true);
        if (row->threads > 1)
            json_double("share", median_of(result, cell, offsetof(struct figures, share)));
        if (row->percentile > 0) {
            json_open("parts");
            json_double("step_ns", bench->single.step_ticks * bench->single.tick_ns);
            json_close();
        }
        if (bench->counters.thread)
            put_counts(result, cell, &bench->counters);
        if (raw)
            put_tried(result, cell);
        json_end();
    }
}

/* The course of the pace, and with `raw` what became of each round. */
static void put_rounds(const struct result *result, bool raw)
{
    double cores[result->tried_count + 1], memories[result->tried_count + 1];
    for (unsigned i = 0; i < result->tried_count; i++) {
        cores[i] = result->tried[i].pace.core;
        memories[i] = result->tried[i].pace.memory;
    }
    json_doubles("cores", cores, result->tried_count);
    json_doubles("memories", memories, result->tried_count);
    if (!raw)
        return;
    json_open_array("outcomes");
    for (unsigned i = 0; i < result->tried_count; i++)
        json_string(NULL, result->tried[i].disturbance ? disturbance_names[result->tried[i].disturbance] : NULL);
    json_close_array();
}

static void put_rowend(const struct row *row, const struct result *result, const double *link_ns, bool raw)
{
    json_begin("rowend");
    json_int("id", row->id);
    json_uint("voided", result->voided);
    json_doubles("pace", (const double[]){result->pace.core, result->pace.memory}, 2);
    json_open("reasons");
    for (int reason = MIGRATED; reason < DISTURBANCE_COUNT; reason++)
        json_uint(disturbance_names[reason], result->reasons[reason]);
    json_close();
    put_rounds(result, raw);
    if (link_ns)
        json_doubles("link_ns", link_ns, 2);
    json_end();
}

/* One line of input. */
static int run_line(struct bench *bench, struct target_list *targets, const char *line, unsigned long number,
                    unsigned long *rows, bool *wrong, bool raw)
{
    const struct listener listener = {wrong, on_row, on_trying, on_skip, on_wrong, on_fault};
    struct row row;
    const char *problem = row_parse(&row, line, bench->host.cpu_count, bench->random);
    bool chain = !problem && known_add(targets, &row);
    if (!problem)
        problem = options_unknown_name(bench->targets, (const char *const *)row.routines, row.routine_count);
    int status = EXIT_OK;
    if (problem) {
        status = misuse("measure: row on line %lu: %s", number, problem);
    } else {
        static struct result result;
        double link_ns[2] = {chain ? known_link_ns() : 0};
        status = bench_row(bench, &row, &listener, &result);
        if (status == EXIT_OK && !host_interrupted) {
            link_ns[1] = chain ? known_link_ns() : 0;
            put_cells(&row, &result, bench, raw);
            put_rowend(&row, &result, chain ? link_ns : NULL, raw);
            ++*rows;
        }
        result_free(&result);
    }
    row_free(&row);
    return status;
}

/* Whether this process lies at random addresses, and where it does: two that lie alike were not shuffled. */
static void put_layout(void)
{
    unsigned long persona = (unsigned long)personality(0xffffffff);
    int level = 0;
    FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "re");
    if (file && fscanf(file, "%d", &level) != 1)
        level = 0;
    if (file)
        fclose(file);
    json_bool("randomised", level > 0 && !(persona & ADDR_NO_RANDOMIZE));
    char text[80]; /* not the stack, which also moves with the arguments and the environment */
    snprintf(text, sizeof text, "%p %p", (void *)(uintptr_t)put_layout, (void *)(uintptr_t)stdout);
    json_string("layout", text);
    json_bool("apart", loops_apart());
}

static void put_start(const struct host *host, uint64_t seed, const struct counters *counters)
{
    host_put_start(host, seed);
    put_layout();
    json_open("counters");
    json_string("set", counters->set->name);
    json_open_array("events");
    for (int i = 0; i < COUNTERS && counters->thread; i++)
        if (counters->files[i] >= 0)
            json_string(NULL, counters->set->events[i].name);
    json_close_array();
    json_string("reason", counters->reason[0] ? counters->reason : NULL);
    json_close();
    json_end();
}

static const char help[] =
    "usage: wherry-run measure [--peer NAME=PATH[:PREFIX]] ... [--plan NAME=CHOICE[,FIELD=BYTES] ...] ...\n"
    "                           [--pin CPU] [--seed N] [--pace CORE,MEMORY] [--counters hardware|software|none]\n"
    "                           [--raw]\n\n"
    "Reads rows from standard input, one a line, measures each and writes one JSON object a line.\n\n"
    "  --peer NAME=PATH[:PREFIX]  also measure a shared object with memcpy, memmove or memset\n"
    "  --plan NAME=CHOICE[,FIELD=BYTES] ...\n"
    "                             rows may name the public functions under this plan: CHOICE is a tier, FIELD a\n"
    "                             threshold as `wherry-run cpu` names them, BYTES a number or off\n"
    "  --pin CPU                  the CPU to measure on (default: the one it starts on)\n"
    "  --seed N                   of contents, places and order (default: from the clock)\n"
    "  --counters SET             count also hardware events (the default), software ones, or none\n"
    "  --raw                      tell every round, with those that were thrown away\n"
    "  --pace CORE,MEMORY         the best `pace` that an earlier process told, to know a slow phase by\n\n"
    "Keys of a row: id op routines size mix table src_off dst_off delta walk buffer src_state dst_state content\n"
    "places ascending handed handed_by code overlap mode threads huge rounds batch_us calls aa;\n"
    "docs/runner-protocol.md tells them.\n\n"
    "Example: echo 'id=1 op=copy routines=libc,wherry size=1024' | wherry-run measure\n";

int command_measure(int argc, char **argv)
{
    static struct target_list targets;
    static struct host host;
    static struct bench bench;
    struct options options;
    int status = options_parse(&options, argc, argv, &targets, &host, help, OPTIONS_MEASURE);
    if (status >= 0)
        return status;
    host_catch_signals();
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone away is an error of writing, told in a line */
    json_apart();
    bench_init(&bench, &targets, &host, options.seed, options.pace);
    counters_open(&bench.counters, options.counters);
    put_start(&host, options.seed, &bench.counters);
    if (options.peer_count)
        last_words_begin();
    const char *line;
    bool endless = false;
    unsigned long number = 0, rows = 0;
    bool wrong = false;
    status = EXIT_OK;
    while (status == EXIT_OK && !host_interrupted && (line = host_row(&endless))) {
        number++;
        size_t blank = strspn(line, " \t\r\n");
        if (line[blank] && line[blank] != '#')
            status = run_line(&bench, &targets, line, number, &rows, &wrong, options.raw);
    }
    if (endless)
        status = misuse("measure: line %lu is longer than any row; give rows of key=value words", number + 1);
    last_words_over();
    if (host_interrupted)
        host_die_of_signal();
    if (status != EXIT_OK)
        return status;
    json_begin("end");
    json_uint("rows", rows);
    json_end();
    return wrong ? EXIT_FAILED : EXIT_OK;
}
