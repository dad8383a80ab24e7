/* The public functions under plans that are given in words: --plan of measure. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target_internal.h"

static char problem[256];

/* The threshold of this name, or NULL. */
static size_t *field_of(struct wherry_thresholds *thresholds, const char *name, size_t length)
{
#define WHERRY_FIELD(field)                                                                                            \
    if (length == sizeof #field - 1 && strncmp(name, #field, length) == 0)                                             \
        return (size_t *)&thresholds->field;
    WHERRY_THRESHOLDS(WHERRY_FIELD)
#undef WHERRY_FIELD
    return NULL;
}

static bool bytes(const char *text, size_t length, size_t *value)
{
    char digits[24];
    if (length == 3 && strncmp(text, "off", 3) == 0) {
        *value = SIZE_MAX;
        return true;
    }
    if (length == 0 || length >= sizeof digits || strspn(text, "0123456789") < length)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    *value = strtoull(digits, NULL, 10);
    return true;
}

const char *targets_add_plan(struct target_list *list, const char *spec)
{
    struct target named;
    const size_t name_length = strcspn(spec, "=");
    const char *at = spec + name_length;
    if (!*at || name_length == 0 || name_length >= sizeof named.name || strcspn(spec, " ,:+") < name_length) {
        snprintf(problem, sizeof problem, "--plan %.80s: give NAME=CHOICE[,FIELD=BYTES] ...", spec);
        return problem;
    }
    memcpy(named.name, spec, name_length);
    named.name[name_length] = '\0';
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, named.name) == 0) {
            snprintf(problem, sizeof problem, "--plan %.80s: the name is taken; choose another", named.name);
            return problem;
        }
    const size_t choice_length = strcspn(++at, ",");
    int isa = 0;
    while (isa < WHERRY_ISA_COUNT &&
           (strlen(wherry_isa_names[isa]) != choice_length || strncmp(at, wherry_isa_names[isa], choice_length) != 0))
        isa++;
    if (isa == WHERRY_ISA_COUNT) {
        snprintf(problem, sizeof problem,
                 "--plan %.80s: no choice '%.*s'; give sse2, avx2, avx512, avx512_ladder or avx512_together",
                 named.name, (int)choice_length, at);
        return problem;
    }
    struct wherry_thresholds *thresholds = malloc(sizeof *thresholds); /* lives as long as the target: for ever */
    if (!thresholds)
        return "out of memory";
    *thresholds = *target_default_thresholds();
    for (at += choice_length; *at;) {
        const size_t length = strcspn(++at, ","), key = strcspn(at, "=");
        size_t *field = key < length ? field_of(thresholds, at, key) : NULL;
        if (!field || !bytes(at + key + 1, length - key - 1, field)) {
            snprintf(problem, sizeof problem,
                     "--plan %.80s: '%.*s' is no threshold in bytes; write it as copy_rep_from=24576 or "
                     "set_stream_from=off",
                     named.name, (int)length, at);
            free(thresholds);
            return problem;
        }
        at += length;
    }
    for (size_t i = target_add_forced(list, named.name, (enum wherry_isa)isa); i < list->count; i++)
        list->items[i].thresholds = thresholds;
    return NULL;
}
