/* The report: JSON lines, or aligned text for people with progress on a terminal's standard error. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "verify.h"

static const char *const level_names[] = {"brief", "quick", "full"};
static bool line_open; /* a progress line stands on the terminal */

static void close_line(void)
{
    if (line_open)
        fputs("\r\033[K", stderr);
    line_open = false;
}

const char *selector(const struct target *target)
{
    static char text[256];
    if (target->kind == TARGET_ROUTINE)
        snprintf(text, sizeof text, "%s", target->name);
    else
        snprintf(text, sizeof text, "%s:%s", target->name, target->function);
    return text;
}

/* Appends text as one word of a shell. */
static void quote(char *to, size_t room, const char *text)
{
    size_t at = strlen(to);
    bool plain = text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")] == '\0';
    if (plain) {
        snprintf(to + at, room - at, "%s", text);
        return;
    }
    if (at + 3 >= room)
        return;
    to[at++] = '\'';
    for (; *text && at + 6 < room; text++) {
        if (*text == '\'') {
            memcpy(to + at, "'\\''", 4);
            at += 4;
        } else {
            to[at++] = *text;
        }
    }
    to[at++] = '\'';
    to[at] = '\0';
}

static void repeat_command(char *text, size_t room, const struct unit *unit)
{
    char one[300];
    case_print(one, sizeof one, unit->family, &unit->failure.at);
    snprintf(text, room, "wherry-run verify ");
    quote(text, room, selector(unit->target));
    if (unit->target->kind == TARGET_PEER) {
        strncat(text, " --peer ", room - strlen(text) - 1);
        quote(text, room, unit->target->peer_path);
    }
    strncat(text, " --case ", room - strlen(text) - 1);
    quote(text, room, one);
}

void print_start(const struct verify_options *o, size_t targets, size_t units)
{
    (void)units;
    char seed[32];
    snprintf(seed, sizeof seed, "0x%" PRIx64, o->seed);
    if (o->json) {
        json_begin("start");
        json_string("seed", seed);
        json_uint("targets", targets);
        json_string("level", level_names[o->level]);
        json_int("jobs", o->jobs);
        json_end();
        return;
    }
    printf("verify: %zu function%s, level %s, seed %s, %d job%s\n", targets, targets == 1 ? "" : "s",
           level_names[o->level], seed, o->jobs, o->jobs == 1 ? "" : "s");
    printf("%-6s %-24s %-24s %-11s %14s %9s\n", "", "target", "function", "op", "cases", "CPU time");
}

void print_progress(const struct verify_options *o, size_t done, size_t total, const struct unit *unit)
{
    if (o->json) {
        json_begin("progress");
        json_uint("done", done);
        json_uint("total", total);
        json_string("target", unit->target->name);
        json_string("family", unit->family->name);
        json_end();
    } else if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%zu of %zu  %s  %s", done, total, selector(unit->target), unit->family->name);
        line_open = true;
    }
}

void print_family(const struct verify_options *o, const struct unit *unit, double seconds)
{
    if (!o->json)
        return;
    json_begin("family");
    json_string("target", unit->target->name);
    json_string("function", unit->target->function);
    json_string("op", wherry_op_names[unit->target->op]);
    json_string("family", unit->family->name);
    json_uint("cases", unit->cases);
    json_uint("longest", unit->longest);
    json_double("seconds", seconds);
    json_uint("failures", unit->failed);
    json_end();
}

void print_skip(const struct verify_options *o, const struct target *target, const struct family *family,
                const char *reason, bool unfinished)
{
    if (o->json) {
        json_begin("skip");
        json_string("target", target->name);
        json_string("function", target->function);
        if (family)
            json_string("family", family->name);
        json_string("reason", reason);
        if (unfinished)
            json_bool("unfinished", true);
        json_end();
        return;
    }
    close_line();
    printf("%-6s %-24s %-24s %-11s %s%s%s\n", "skip", target->name, target->function, wherry_op_names[target->op],
           family ? family->name : "", family ? ": " : "", reason);
}

void print_failure(const struct verify_options *o, const struct unit *unit)
{
    char repeat[2048];
    const struct verify_failure *f = &unit->failure;
    repeat_command(repeat, sizeof repeat, unit);
    if (!o->json) {
        close_line();
        printf("WRONG  %s\n       family %s; repeat just this case with:\n       %s\n", f->message, unit->family->name,
               repeat);
        return;
    }
    json_begin("failure");
    json_string("target", unit->target->name);
    json_string("function", unit->target->function);
    json_string("op", wherry_op_names[unit->target->op]);
    json_string("family", unit->family->name);
    json_uint("size", f->at.n);
    json_uint("src_off", f->src_off);
    json_uint("dst_off", f->dst_off);
    json_int("distance", f->distance);
    if (f->byte == INT64_MIN)
        json_string("byte", NULL);
    else
        json_int("byte", f->byte);
    if (f->expected < 0) {
        json_string("expected", NULL);
        json_string("got", NULL);
    } else {
        json_int("expected", f->expected);
        json_int("got", f->got);
    }
    json_string("state", f->state[0] ? f->state : NULL);
    json_string("message", f->message);
    json_string("repeat", repeat);
    json_end();
}

void print_target(const struct verify_options *o, const struct target *target, const struct verify_counts *counts)
{
    if (o->json)
        return;
    close_line();
    printf("%-6s %-24s %-24s %-11s %14" PRIu64 " %7.2f s\n",
           counts->failures ? "WRONG"
           : counts->cases  ? "right"
                            : "none",
           target->name, target->function, wherry_op_names[target->op], counts->cases, counts->seconds);
}

void print_end(const struct verify_options *o, const struct verify_counts *counts)
{
    if (o->json) {
        json_begin("end");
        json_uint("cases", counts->cases);
        json_uint("longest", counts->longest);
        json_uint("failures", counts->failures);
        json_uint("skipped", counts->skipped);
        json_uint("unfinished", counts->unfinished);
        json_double("seconds", counts->seconds);
        json_end();
        return;
    }
    close_line();
    printf("%s: %" PRIu64 " cases of up to %" PRIu64 " bytes in %.1f s, %" PRIu64 " failure%s, %" PRIu64 " skipped\n",
           counts->failures     ? "wrong"
           : counts->unfinished ? "not proved: cut off"
           : counts->cases      ? "all right"
                                : "nothing verified",
           counts->cases, counts->longest, counts->seconds, counts->failures, counts->failures == 1 ? "" : "s",
           counts->skipped);
}
