/* wherry-run sizes: Asami's table of 1996 on today's machine, with no Python. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "commands.h"
#include "heading.h"
#include "options.h"
#include "stats.h"

enum { BUFFER = 4 << 20, LEAST_SIZE = 32, ROUNDS = 21, LONGEST_ROW = 2048 };

static const char *const usual[] = {"libc", "x87_fild64", "rep_movsb", "rep_movsl", "wherry"};
enum { USUAL = sizeof usual / sizeof usual[0] };

/* The table under way. */
struct table {
    struct bench bench;
    const char *names[ROW_ROUTINES];
    bool lost[ROW_ROUTINES]; /* wrong or not for this machine: told once */
    size_t name_count;
    unsigned rounds;
    double floor; /* the noise floor of the whole table, as a share */
    bool wrong, progress, disturbed;
    size_t thrown, rows, row_count; /* rounds; rows done and wanted */
    /* for the sentences */
    size_t sizes[ROW_ROUTINES];
    uint64_t fastest[ROW_ROUTINES];     /* bit i: name i is the fastest or tied with it */
    struct ratio to_libc[ROW_ROUTINES]; /* libc's time over the quickest's */
    size_t quickest[ROW_ROUTINES];
    double wherry_log;
    size_t wherry_rows;
};

static void on_row(void *context, const struct row *row, const struct pool *pool, int handed_by)
{
    (void)context, (void)row, (void)pool, (void)handed_by;
}

static void on_trying(void *context, const struct row *row, const char *routine)
{
    const struct table *table = context;
    if (table->progress)
        fprintf(stderr, "\r\033[K%zu of %zu sizes; now %zu B, %s", table->rows, table->row_count, row->size, routine);
}

static void clear_progress(const struct table *table)
{
    if (table->progress)
        fputs("\r\033[K", stderr);
}

static void lose(struct table *table, const char *routine)
{
    for (size_t i = 0; i < table->name_count; i++)
        table->lost[i] = table->lost[i] || strcmp(table->names[i], routine) == 0;
}

static void on_skip(void *context, const struct row *row, const char *routine, const char *reason)
{
    struct table *table = context;
    clear_progress(table);
    complain("%s, %zu bytes: %s", routine ? routine : "row", row->size, reason);
}

static void on_wrong(void *context, const struct row *row, const char *routine, const char *message)
{
    struct table *table = context;
    (void)row;
    clear_progress(table);
    complain("%s is wrong and has no speed: %s", routine, message);
    table->wrong = true;
    lose(table, routine);
}

static void on_fault(void *context, const struct row *row, const char *routine, struct guarded_result how,
                     const char *doing)
{
    struct table *table = context;
    clear_progress(table);
    fflush(stdout);
    complain("%s, %zu bytes: %s %s; run again without it", routine, row->size,
             how.hung ? "did not return" : strsignal(how.signo), doing);
}

static const struct cell *cell_of(const struct result *result, const char *name, bool aa)
{
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out && result->cells[i].aa == aa && strcmp(result->cells[i].name, name) == 0)
            return &result->cells[i];
    return NULL;
}

/* Measures one size with the routines of `names`; the result is to be freed. */
static int measure_size(struct table *table, size_t size, const char *const *names, size_t count, struct result *result)
{
    char line[LONGEST_ROW * 4];
    size_t buffer = size > BUFFER ? size : BUFFER;
    int at = snprintf(line, sizeof line, "id=0 op=copy walk=stream buffer=%zu size=%zu rounds=%u routines=", buffer,
                      size, table->rounds);
    const char *comma = "";
    for (size_t i = 0; i < count; i++) {
        if (table->lost[i])
            continue;
        at += snprintf(line + at, sizeof line - (size_t)at, "%s%s", comma, names[i]);
        comma = ",";
    }
    struct row row;
    const struct listener listener = {table, on_row, on_trying, on_skip, on_wrong, on_fault};
    memset(result, 0, sizeof *result);
    const char *problem = row_parse(&row, line, 1, 0);
    int status = problem ? misuse("sizes: %s", problem) : bench_row(&table->bench, &row, &listener, result);
    /* Names outlive the row: they are found again by the table's own. */
    for (size_t i = 0; i < result->cell_count; i++)
        for (size_t k = 0; k < table->name_count; k++)
            if (strcmp(result->cells[i].name, table->names[k]) == 0)
                result->cells[i].name = table->names[k];
    row_free(&row);
    return status;
}

/* libc against a second libc at another address, at a few sizes: the widest of the intervals. */
static int measure_floor(struct table *table)
{
    static const size_t sizes[] = {64, 4096, 262144};
    const char *name = table->names[0];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !host_interrupted; i++) {
        struct result result;
        int status = measure_size(table, sizes[i], &name, 1, &result);
        const struct cell *one = cell_of(&result, name, false), *second = cell_of(&result, name, true);
        if (status == EXIT_OK && one && second && result.rounds)
            table->floor = fmax(table->floor, stats_floor(stats_ratio(one->ns, second->ns, result.rounds, 0, 1)));
        result_free(&result);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

static int column(const char *name)
{
    int width = (int)strlen(name) + 3;
    return width < 13 ? 13 : width;
}

static void print_row(struct table *table, size_t size, const struct result *result)
{
    /* The quickest is picked on every other round and compared on the rest, so that luck in the picking does not count.
     */
    size_t best = table->name_count;
    double least = INFINITY;
    for (size_t i = 0; i < table->name_count; i++) {
        const struct cell *cell = cell_of(result, table->names[i], false);
        double ns = cell ? stats_median(cell->ns, result->rounds, 0, result->rounds > 1 ? 2 : 1) : NAN;
        if (ns < least) {
            least = ns;
            best = i;
        }
    }
    const struct cell *quickest = best < table->name_count ? cell_of(result, table->names[best], false) : NULL;
    /* Who may be as fast by chance alone is a tie only within the noise floor; `near`: whether anybody is. */
    bool ties[ROW_ROUTINES] = {false}, unsure[ROW_ROUTINES] = {false}, alone = true, near = false;
    for (size_t i = 0; quickest && i < table->name_count; i++) {
        const struct cell *cell = cell_of(result, table->names[i], false);
        if (!cell || i == best)
            continue;
        size_t first = result->rounds > 1;
        struct ratio lead = stats_ratio(cell->ns, quickest->ns, result->rounds, first, first + 1);
        ties[i] = lead.median - 1 <= table->floor;
        unsure[i] = !ties[i] && lead.low <= 1;
        near = near || ties[i];
        alone = alone && !ties[i] && !unsure[i];
        if (i == 0 && strcmp(table->names[0], "libc") == 0)
            table->to_libc[table->rows] = lead;
    }
    printf("%8zu", size);
    for (size_t i = 0; i < table->name_count; i++) {
        const struct cell *cell = cell_of(result, table->names[i], false);
        int width = column(table->names[i]);
        if (!cell || !result->rounds) {
            printf("%*s  ", width - 2, "-");
            continue;
        }
        double ns = stats_median(cell->ns, result->rounds, 0, 1);
        printf("%*.1f %c", width - 2, (double)size / ns * 1e9 / 1048576,
               i == best && alone               ? '*'
               : ties[i] || (i == best && near) ? '='
               : unsure[i] || i == best         ? '?'
                                                : ' ');
    }
    printf("%s\n", result->rounds != result->valid ? "  (disturbed)" : "");
    table->disturbed = table->disturbed || result->rounds != result->valid;
    if (!result->rounds) /* told why already; nothing to say about it below */
        return;
    table->sizes[table->rows] = size;
    table->quickest[table->rows] = best;
    for (size_t i = 0; i < table->name_count; i++)
        if (ties[i] || (quickest && i == best && (alone || near)))
            table->fastest[table->rows] |= (uint64_t)1 << i;
    const struct cell *libc = cell_of(result, "libc", false), *wherry = cell_of(result, "wherry", false);
    if (libc && wherry && result->rounds) {
        table->wherry_log += log(stats_ratio(libc->ns, wherry->ns, result->rounds, 0, 1).median);
        table->wherry_rows++;
    }
    table->thrown += result->voided;
    table->rows++;
}

static void print_size(size_t size)
{
    if (size >= 1 << 20 && size % (1 << 20) == 0)
        printf("%zu MiB", size >> 20);
    else if (size >= 1024 && size % 1024 == 0)
        printf("%zu KiB", size >> 10);
    else
        printf("%zu B", size);
}

/* What a reader would say of the table. */
static void print_words(const struct table *table)
{
    printf("\nMB/s, 2^20 bytes. * the fastest, by more than the noise floor; = tied with the fastest; ? undecided: "
           "apart by more\nthan the noise floor, but perhaps by chance; - not measured.\n\n");
    printf("Fastest:");
    for (size_t i = 0; i < table->rows;) {
        size_t end = i;
        while (end + 1 < table->rows && table->fastest[end + 1] == table->fastest[i])
            end++;
        const char *before = i ? "; " : " ";
        for (size_t k = 0; k < table->name_count; k++)
            if (table->fastest[i] >> k & 1) {
                printf("%s%s", before, table->names[k]);
                before = " = ";
            }
        if (!table->fastest[i])
            printf("%s%s", i ? "; " : " ", table->quickest[i] < table->name_count ? "undecided" : "nobody");
        printf(" at ");
        print_size(table->sizes[i]);
        if (end > i) {
            printf(" to ");
            print_size(table->sizes[end]);
        }
        i = end + 1;
    }
    printf(".\n");
    size_t worst = table->rows;
    for (size_t i = 0; i < table->rows; i++)
        if (table->to_libc[i].median - 1 > table->floor && table->to_libc[i].low > 1 &&
            (worst == table->rows || table->to_libc[i].median > table->to_libc[worst].median))
            worst = i;
    if (worst < table->rows) {
        const struct ratio *lead = &table->to_libc[worst];
        printf("libc loses most at ");
        print_size(table->sizes[worst]);
        printf(", where %s is %.2f times as fast (%.2f to %.2f, 95 %% interval).\n",
               table->names[table->quickest[worst]], lead->median, lead->low, lead->high);
    } else if (table->rows && strcmp(table->names[0], "libc") == 0) {
        printf("Nothing here surely beats libc by more than the noise floor.\n");
    }
    if (table->wherry_rows > 1) {
        double ratio = exp(table->wherry_log / (double)table->wherry_rows);
        printf("Over these %zu sizes wherry takes %.2f of libc's time (geometric mean).\n", table->wherry_rows,
               1 / ratio);
    }
    if (table->thrown)
        printf("%zu rounds were thrown away because something else ran or the hypervisor took the CPU%s.\n",
               table->thrown,
               table->disturbed ? "; rows marked (disturbed)\nhad fewer than three good ones: do not trust them" : "");
}

static void choose_names(struct table *table, const struct options *options)
{
    const char *const *from = options->routine_count ? options->routines : usual;
    size_t count = options->routine_count ? options->routine_count : USUAL;
    for (size_t i = 0; i < count; i++) {
        bool historic = from == usual && strcmp(from[i], "libc") != 0 && strcmp(from[i], "wherry") != 0;
        if (!historic || wherry_routine_find(from[i])) /* the usual columns are those that this build has */
            table->names[table->name_count++] = from[i];
    }
    static char peers[ROW_ROUTINES][80];
    for (size_t i = 0; i < options->peer_count; i++) {
        snprintf(peers[i], sizeof peers[i], "%.*s", (int)strcspn(options->peers[i], "="), options->peers[i]);
        table->names[table->name_count++] = peers[i];
    }
}

static const char help[] =
    "usage: wherry-run sizes [--routine NAME] ... [--size BYTES] ... [--peer NAME=PATH[:PREFIX]] ...\n"
    "                        [--rounds N] [--pin CPU] [--seed N]\n\n"
    "Verifies and measures copies by size: two 4 MiB buffers walked in steps of the size, 32 B to 4 MiB.\n\n"
    "  --routine NAME   a column: a registry name, libc, wherry, wherry@avx2 ...\n"
    "                   (default: libc, x87_fild64, rep_movsb, rep_movsl, wherry)\n"
    "  --size BYTES     a row, as 4096 or 4K (default: 32 B to 4 MiB, doubling)\n"
    "  --peer NAME=PATH[:PREFIX]  one more column: a shared object with memcpy or memmove\n"
    "  --rounds N       interleaved rounds a row (default 21)\n"
    "  --pin CPU        the CPU to measure on (default: the one it starts on)\n"
    "  --seed N         of contents, places and order\n\n"
    "Example: wherry-run sizes --size 1K --size 64K --peer musl=./libc-musl.so\n";

static bool written(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    perror("wherry-run: cannot write to standard output");
    return false;
}

static int print_table(struct table *table, const struct options *options, const struct host *host)
{
    size_t standard[ROW_ROUTINES], count = 0;
    for (size_t size = LEAST_SIZE; size <= BUFFER; size *= 2)
        standard[count++] = size;
    const size_t *sizes = options->size_count ? options->sizes : standard;
    count = options->size_count ? options->size_count : count;
    table->row_count = count;
    heading_print("Copy through two 4 MiB buffers in steps of the size (after Asami, 1996)", host,
                  &table->bench.caches);
    int status = measure_floor(table);
    if (status != EXIT_OK)
        return status;
    clear_progress(table);
    printf("Noise floor: %.1f %% (%s against itself%s). A smaller difference is a tie.\n\n", table->floor * 100,
           table->names[0], strcmp(table->names[0], "libc") == 0 ? ", loaded twice" : "");
    printf("%8s", "size, B");
    for (size_t i = 0; i < table->name_count; i++)
        printf("%*s  ", column(table->names[i]) - 2, table->names[i]);
    putchar('\n');
    for (size_t i = 0; i < count && !host_interrupted; i++) {
        static struct result result;
        status = measure_size(table, sizes[i], table->names, table->name_count, &result);
        clear_progress(table);
        if (status == EXIT_OK && !host_interrupted)
            print_row(table, sizes[i], &result);
        result_free(&result);
        if (status != EXIT_OK)
            return status;
        if (!written())
            return EXIT_FAILED;
    }
    if (table->rows)
        print_words(table);
    else if (!host_interrupted)
        status = EXIT_FAILED;
    if (host_interrupted)
        printf("Interrupted: %zu of %zu sizes were measured.\n", table->rows, count);
    return written() ? status : EXIT_FAILED;
}

int command_sizes(int argc, char **argv)
{
    static struct target_list targets;
    static struct host host;
    static struct table table;
    struct options options;
    int status = options_parse(&options, argc, argv, &targets, &host, help, OPTIONS_SIZES);
    if (status >= 0)
        return status;
    bench_init(&table.bench, &targets, &host, options.seed, (struct reading){0});
    table.rounds = options.rounds ? options.rounds : ROUNDS;
    table.progress = isatty(STDERR_FILENO);
    choose_names(&table, &options);
    const char *unknown = options_unknown_name(&targets, table.names, table.name_count);
    if (unknown)
        return misuse("--routine: %s", unknown);
    host_catch_signals();
    status = print_table(&table, &options, &host);
    if (host_interrupted)
        host_die_of_signal();
    return status == EXIT_OK && table.wrong ? EXIT_FAILED : status;
}
