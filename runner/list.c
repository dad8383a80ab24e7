#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "target.h"

static const struct {
    unsigned bit;
    const char *name;
} traits[] = {
    {TRAIT_REP, "rep"},
    {TRAIT_X87, "x87-saved"},
    {TRAIT_X87_CLOBBER, "x87-clobbered"},
    {TRAIT_MMX_CLOBBER, "mmx-clobbered"},
    {TRAIT_NT, "non-temporal"},
    {TRAIT_READS_FIRST, "reads-first"},
    {TRAIT_PREFETCH, "prefetch"},
    {TRAIT_CALLS_LIBC, "calls-libc"},
};
static const char *const needs_names[] = {
    "any x86-64", "AVX2", "AVX-512", "SSE4.2", "VPCLMULQDQ", "AVX512_VNNI", "VPCLMULQDQ with AVX2", "CLZERO"};

int command_list(int argc, char **argv)
{
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--help") == 0)
            return puts(
                       "usage: wherry-run list [--json]\n\nThe routines there are, one a line: op, what it needs, size "
                       "quantum, era, idea."),
                   EXIT_OK;
        else
            return misuse("list: unknown argument '%s'; wherry-run list --help", argv[i]);
    }
    struct target_list list = {0};
    targets_add_routines(&list);
    for (size_t i = 0; i < list.count; i++) {
        const struct wherry_routine *r = list.items[i].routine;
        const char *unavailable = target_unavailable(&list.items[i]);
        if (!json) {
            printf("%-20s %-11s %-11s %3zu B  %d  %s%s\n", r->name, wherry_op_names[r->op], needs_names[r->needs],
                   r->quantum, r->era, r->idea, unavailable ? "  [not on this machine]" : "");
            continue;
        }
        json_begin("routine");
        json_string("name", r->name);
        json_string("op", wherry_op_names[r->op]);
        json_string("needs", needs_names[r->needs]);
        json_string("unavailable", unavailable);
        json_open_array("traits");
        for (size_t k = 0; k < sizeof traits / sizeof traits[0]; k++)
            if (r->traits & traits[k].bit)
                json_string(NULL, traits[k].name);
        json_close_array();
        json_uint("quantum", r->quantum);
        json_int("era", r->era);
        json_string("file", r->file);
        json_string("source", r->source);
        json_string("idea", r->idea);
        json_end();
    }
    return EXIT_OK;
}
