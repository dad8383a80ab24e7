/* wherry-run measure: rows in from standard input, events out; docs/runner-protocol.md. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "commands.h"
#include "json.h"
#include "options.h"
#include "wherry.h"

static void put_event(const char *event, const struct row *row, const char *routine)
{
    json_begin(event);
    json_int("id", row->id);
    json_string("routine", routine);
}

static void on_row(void *context, const struct row *row, const struct pool *pool)
{
    (void)context;
    json_begin("row");
    json_int("id", row->id);
    json_uint("pool_bytes_src", pool ? pool->src_side.bytes : 0);
    json_uint("pool_bytes_dst", pool ? (row->overlaps ? pool->src_side.bytes : pool->dst_side.bytes) : 0);
    json_bool("huge", pool && row->huge && pool_is_huge(pool));
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

static void put_cells(const struct row *row, const struct result *result)
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
        json_end();
    }
}

static void put_rowend(const struct row *row, const struct result *result)
{
    json_begin("rowend");
    json_int("id", row->id);
    json_uint("voided", result->voided);
    json_doubles("pace", (const double[]){result->pace.core, result->pace.memory}, 2);
    json_open("reasons");
    for (int reason = MIGRATED; reason < DISTURBANCE_COUNT; reason++)
        json_uint(disturbance_names[reason], result->reasons[reason]);
    json_close();
    json_end();
}

/* One line of input. */
static int run_line(struct bench *bench, const char *line, unsigned long number, unsigned long *rows, bool *wrong)
{
    const struct listener listener = {wrong, on_row, on_trying, on_skip, on_wrong, on_fault};
    struct row row;
    const char *problem = row_parse(&row, line, bench->host.cpu_count, bench->random);
    if (!problem)
        problem = options_unknown_name(bench->targets, (const char *const *)row.routines, row.routine_count);
    int status = EXIT_OK;
    if (problem) {
        status = misuse("measure: row on line %lu: %s", number, problem);
    } else {
        static struct result result;
        status = bench_row(bench, &row, &listener, &result);
        if (status == EXIT_OK && !host_interrupted) {
            put_cells(&row, &result);
            put_rowend(&row, &result);
            ++*rows;
        }
        result_free(&result);
    }
    row_free(&row);
    return status;
}

static void put_start(const struct host *host, uint64_t seed)
{
    json_begin("start");
    json_string("version", wherry_version());
    json_int("pid", getpid());
    json_uint("cpu", host->cpu);
    json_uint("cpus", host->cpu_count);
    json_string("clock", "CLOCK_MONOTONIC");
    json_double("clock_ns", clock_cost_ns());
    json_uint("seed", seed);
    json_end();
}

static const char help[] =
    "usage: wherry-run measure [--peer NAME=PATH[:PREFIX]] ... [--pin CPU] [--seed N] [--pace CORE,MEMORY]\n\n"
    "Reads rows from standard input, one a line, measures each and writes one JSON object a line.\n\n"
    "  --peer NAME=PATH[:PREFIX]  also measure a shared object with memcpy, memmove or memset\n"
    "  --pin CPU                  the CPU to measure on (default: the one it starts on)\n"
    "  --seed N                   of contents, places and order (default: from the clock)\n"
    "  --pace CORE,MEMORY         the best `pace` that an earlier process told, to know a slow phase by\n\n"
    "Keys of a row: id op routines size mix table src_off dst_off delta walk buffer src_state dst_state content code\n"
    "overlap mode threads huge rounds batch_us calls aa; docs/runner-protocol.md tells them.\n\n"
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
    put_start(&host, options.seed);
    bench_init(&bench, &targets, &host, options.seed, options.pace);
    char *line = NULL;
    size_t room = 0;
    unsigned long number = 0, rows = 0;
    bool wrong = false;
    status = EXIT_OK;
    while (status == EXIT_OK && !host_interrupted && getline(&line, &room, stdin) >= 0) {
        number++;
        size_t blank = strspn(line, " \t\r\n");
        if (line[blank] && line[blank] != '#')
            status = run_line(&bench, line, number, &rows, &wrong);
    }
    free(line);
    if (host_interrupted)
        host_die_of_signal();
    if (status != EXIT_OK)
        return status;
    json_begin("end");
    json_uint("rows", rows);
    json_end();
    return wrong ? EXIT_FAILED : EXIT_OK;
}
