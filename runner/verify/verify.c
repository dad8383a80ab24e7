/* wherry-run verify: options, and which functions and families are meant. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "commands.h"
#include "verify.h"

extern const struct family family_sweep, family_sizes, family_zeros, family_delta, family_guard, family_overlap,
    family_empty, family_values, family_state, family_huge, family_neighbour, family_race, family_threads,
    family_reentry, family_ordering, family_contents, family_sums, family_nofault, family_nofault_read,
    family_nofault_write, family_places;

static const struct family *const families[] = {
    &family_sweep,   &family_guard,        &family_overlap,       &family_empty,     &family_values, &family_state,
    &family_delta,   &family_huge,         &family_places,        &family_neighbour, &family_race,   &family_reentry,
    &family_threads, &family_ordering,     &family_sizes,         &family_contents,  &family_sums,   &family_zeros,
    &family_nofault, &family_nofault_read, &family_nofault_write,
};
enum { FAMILY_COUNT = sizeof families / sizeof families[0], MOST_JOBS = 64 };

const struct family *verify_family(size_t index) { return index < FAMILY_COUNT ? families[index] : NULL; }

static void help(void)
{
    puts("usage: wherry-run verify [TARGET ...] [OPTION ...]\n\n"
         "Proves routines, public functions and peers right against a byte-by-byte model. A TARGET is a routine, "
         "wherry,\n"
         "wherry@TIER, libc, a peer, or one function of those (wherry_mempcpy, libc:memmove). Default: everything but\n"
         "libc.\n\n"
         "  --peer NAME=PATH[:PREFIX]  load a shared object and verify its functions too\n"
         "  --only-peers               nothing but the peers\n"
         "  --brief                    what make bench runs (under a minute on 2 cores for everything)\n"
         "  --quick                    the default (two to five minutes); with 12 functions or fewer, more of each\n"
         "  --full                     every case (20 minutes for everything; 10 for nofault)\n"
         "  --family NAME,...          only these families\n"
         "  --isa TIER                 public functions under this tier only (sse2, avx2, avx512 ...)\n"
         "  --seed N                   of contents and samples (default: new each time, printed)\n"
         "  --jobs N                   children at once (default: one for each CPU)\n"
         "  --pin CPU                  on this CPU alone\n"
         "  --case CASE                one case, as a failure prints it\n"
         "  --json                     events for programs\n\nfamilies:");
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        printf("  %-10s %s\n", families[i]->name, families[i]->what);
    puts("\nExit status: 0 all right, 1 something wrong or cut off, 2 misuse. Example: wherry-run verify rep_movsb "
         "--full");
}

struct request {
    struct verify_options options;
    struct target_list list;
    const char *names[256];
    size_t name_count;
    const char *peers[32];
    size_t peer_count;
    bool only_peers;
    const char *isa;
    const struct family *wanted[FAMILY_COUNT];
    size_t wanted_count;
};

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[130], width = strlen(b);
    if (width > 128)
        return 999;
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= width; j++) {
            size_t best = corner + (a[i] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[width];
}

static bool named(const struct target *t, const char *name)
{
    if (t->kind == TARGET_NOFAULT && strcmp(name, "nofault") == 0) /* every tier and method of theirs */
        return true;
    return strcmp(t->name, name) == 0 || strcmp(t->function, name) == 0 || strcmp(selector(t), name) == 0;
}

static int unknown_target(const struct target_list *list, const char *name)
{
    const char *nearest = NULL;
    static char kept[256];
    size_t least = 999;
    for (size_t i = 0; i < list->count; i++) {
        const struct target *t = &list->items[i];
        const char *const candidates[] = {t->name, t->function, selector(t)};
        for (int k = 0; k < 3; k++) {
            size_t distance = edit_distance(name, candidates[k]);
            if (distance < least) {
                least = distance;
                snprintf(kept, sizeof kept, "%s", candidates[k]);
                nearest = kept;
            }
        }
    }
    if (nearest && least <= strlen(name) / 2 + 1)
        return misuse("verify: no target '%s'; did you mean %s? (wherry-run list shows the routines)", name, nearest);
    return misuse("verify: no target '%s'; wherry-run list shows the routines, and wherry, libc and peers' names are "
                  "targets too",
                  name);
}

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    if (errno || end == text || *end || text[0] == '-' || *value < least || *value > most)
        return misuse("verify: %s '%s': give an integer from %llu to %llu", option, text, (unsigned long long)least,
                      (unsigned long long)most);
    return 0;
}

/* "nofault" also names nofault-read. */
static bool word_names(const char *word, const char *name)
{
    const size_t length = strlen(word);
    return length > 0 && strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == '-');
}

static int read_families(struct request *r, const char *text)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        const struct family *found = NULL;
        for (size_t i = 0; i < FAMILY_COUNT; i++)
            if (word_names(word, families[i]->name)) {
                found = families[i];
                if (r->wanted_count < FAMILY_COUNT)
                    r->wanted[r->wanted_count++] = found;
            }
        if (!found)
            return misuse("verify: no family '%s'; wherry-run verify --help lists them", word);
    }
    return 0;
}

static int read_case(struct request *r, const char *text)
{
    const char *wrong = case_parse(text, &r->options.only_case_family, &r->options.only_case);
    return wrong ? misuse("verify: %s", wrong) : 0;
}

/* 0, or the exit status + 1 of misuse or help. */
static int read_arguments(struct request *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        uint64_t number;
        int wrong = 0;
        if (word[0] != '-') {
            if (r->name_count == sizeof r->names / sizeof r->names[0])
                return 1 + misuse("verify: too many targets");
            r->names[r->name_count++] = word;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help();
            return 1 + EXIT_OK;
        } else if (strcmp(word, "--json") == 0) {
            r->options.json = true;
        } else if (strcmp(word, "--only-peers") == 0) {
            r->only_peers = true;
        } else if (strcmp(word, "--brief") == 0) {
            r->options.level = LEVEL_BRIEF;
        } else if (strcmp(word, "--thin") == 0) {
            r->options.level = LEVEL_BRIEF;
            r->options.thin = true;
        } else if (strcmp(word, "--quick") == 0) {
            r->options.level = LEVEL_QUICK;
        } else if (strcmp(word, "--full") == 0) {
            r->options.level = LEVEL_FULL;
        } else {
            static const char *const with_value[] = {"--peer", "--family", "--isa", "--seed",
                                                     "--jobs", "--case",   "--pin"};
            const char *value = NULL;
            for (size_t k = 0; k < sizeof with_value / sizeof with_value[0]; k++) {
                size_t length = strlen(with_value[k]);
                if (strncmp(word, with_value[k], length) != 0 || (word[length] && word[length] != '='))
                    continue;
                value = word[length] ? word + length + 1 : i + 1 < argc ? argv[++i] : NULL;
                if (!value)
                    return 1 + misuse("verify: %s needs a value", with_value[k]);
                word = with_value[k];
                break;
            }
            if (!value)
                return 1 + misuse("verify: unknown option '%s'; wherry-run verify --help", word);
            if (strcmp(word, "--peer") == 0) {
                if (r->peer_count == sizeof r->peers / sizeof r->peers[0])
                    return 1 + misuse("verify: --peer: at most %zu", sizeof r->peers / sizeof r->peers[0]);
                r->peers[r->peer_count++] = value;
            } else if (strcmp(word, "--family") == 0) {
                wrong = read_families(r, value);
            } else if (strcmp(word, "--isa") == 0) {
                r->isa = value;
            } else if (strcmp(word, "--seed") == 0) {
                wrong = read_number(word, value, 0, UINT64_MAX, &r->options.seed);
            } else if (strcmp(word, "--case") == 0) {
                wrong = read_case(r, value);
            } else if (strcmp(word, "--jobs") == 0) {
                wrong = read_number(word, value, 1, MOST_JOBS, &number);
                r->options.jobs = wrong ? 1 : (int)number;
            } else {
                wrong = read_number(word, value, 0, CPU_SETSIZE - 1, &number);
                cpu_set_t set;
                CPU_ZERO(&set);
                if (!wrong)
                    CPU_SET(number, &set);
                if (!wrong && sched_setaffinity(0, sizeof set, &set) != 0)
                    wrong = misuse("verify: --pin %s: no such CPU, or not allowed to run there", value);
            }
            if (wrong)
                return 1 + wrong;
        }
    }
    return 0;
}

static int load_peers(struct request *r)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        const char *wrong = targets_add_peer(&r->list, r->peers[i]);
        if (wrong)
            return misuse("verify: %s", wrong);
    }
    return 0;
}

/* With --isa `wherry` means what it says there: `wherry@TIER`. */
static bool meant(const struct request *r, const struct target *t, const char *name)
{
    const size_t length = strcspn(name, ":");
    const bool of_a_tier = r->isa && t->forced && t->kind == TARGET_PUBLIC && length == strlen("wherry") &&
                           strncmp(name, "wherry", length) == 0;
    return named(t, name) || (of_a_tier && (!name[length] || strcmp(t->function, name + length + 1) == 0));
}

static bool any_name(const struct request *r, const struct target *t)
{
    for (size_t i = 0; i < r->name_count; i++)
        if (meant(r, t, r->names[i]))
            return true;
    return false;
}

/* Who gives a peer wants it verified, also beside names of others; a name of the peer itself narrows it down. */
static bool peer_by_itself(const struct request *r, const struct target *t)
{
    if (t->kind != TARGET_PEER)
        return false;
    for (size_t i = 0; i < r->list.count; i++)
        if (strcmp(r->list.items[i].name, t->name) == 0 && any_name(r, &r->list.items[i]))
            return false;
    return true;
}

/* What the options leave, whoever is named. */
static bool allowed(const struct request *r, const struct target *t)
{
    if (r->only_peers && t->kind != TARGET_PEER)
        return false;
    const bool of_a_tier = t->kind == TARGET_PUBLIC || t->kind == TARGET_NOFAULT;
    return !r->isa || !of_a_tier || (t->forced && strcmp(wherry_isa_names[t->isa], r->isa) == 0);
}

/* The first name of which the options leave nothing. */
static const char *name_left_out(const struct request *r)
{
    for (size_t i = 0; i < r->name_count; i++) {
        bool any = false;
        for (size_t k = 0; k < r->list.count; k++)
            any |= allowed(r, &r->list.items[k]) && meant(r, &r->list.items[k], r->names[i]);
        if (!any)
            return r->names[i];
    }
    return NULL;
}

static bool chosen(const struct request *r, const struct target *t)
{
    if (!allowed(r, t))
        return false;
    if (r->name_count == 0)
        return t->kind != TARGET_LIBC;
    return any_name(r, t) || peer_by_itself(r, t);
}

int command_verify(int argc, char **argv)
{
    struct request r = {.options = {.level = LEVEL_QUICK}};
    cpu_set_t cpus;
    if (getrandom(&r.options.seed, sizeof r.options.seed, 0) != sizeof r.options.seed)
        r.options.seed = (uint64_t)getpid();
    int wrong = read_arguments(&r, argc, argv);
    if (wrong)
        return wrong - 1;
    if (!r.options.jobs)
        r.options.jobs = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    if (r.options.jobs > MOST_JOBS)
        r.options.jobs = MOST_JOBS;
    if (r.isa) {
        bool known = false;
        for (int i = 0; i < WHERRY_ISA_COUNT; i++)
            known |= strcmp(wherry_isa_names[i], r.isa) == 0;
        if (!known)
            return misuse("verify: --isa '%s': give sse2, avx2, avx512, avx512_ladder or avx512_together", r.isa);
    }
    memory_init();
    targets_add_routines(&r.list);
    targets_add_public(&r.list, true);
    targets_add_nofault(&r.list, false);
    targets_add_libc(&r.list);
    wrong = load_peers(&r);
    if (wrong)
        return wrong;
    if (r.only_peers && r.peer_count == 0)
        return misuse("verify: --only-peers without a --peer NAME=PATH");
    for (size_t i = 0; i < r.name_count; i++) {
        bool known = false;
        for (size_t k = 0; k < r.list.count; k++)
            known |= named(&r.list.items[k], r.names[i]);
        if (!known)
            return unknown_target(&r.list, r.names[i]);
    }
    const char *left_out = name_left_out(&r);
    if (left_out && r.only_peers)
        return misuse("verify: %s is no peer, and --only-peers leaves nothing else; leave out one of the two",
                      left_out);
    if (left_out)
        return misuse("verify: no function of %s is of --isa %s; leave out one of the two, or give wherry@%s", left_out,
                      r.isa, r.isa);
    const struct target **targets = calloc(r.list.count + 1, sizeof *targets);
    size_t count = 0;
    for (size_t i = 0; i < r.list.count; i++)
        if (chosen(&r, &r.list.items[i]))
            targets[count++] = &r.list.items[i];
    if (count == 0)
        return misuse("verify: nothing to verify: no function is meant by these targets and options together");
    r.options.few = count <= 12 && r.options.level == LEVEL_QUICK;
    if (r.options.only_case_family) {
        r.wanted[0] = r.options.only_case_family;
        r.wanted_count = 1;
        r.options.seed = r.options.only_case.seed;
        for (size_t i = 0; i < count; i++)
            if (!r.wanted[0]->applies(targets[i]))
                return misuse("verify: --case: family %s does not apply to %s", r.wanted[0]->name,
                              selector(targets[i]));
        const size_t n = r.options.only_case.n;
        size_t fitting = 0;
        for (size_t i = 0; i < count; i++)
            fitting += size_fits(targets[i], n);
        if (!fitting)
            return misuse("verify: --case: %s takes multiples of %zu bytes only; give n=%zu or n=%zu, not n=%zu",
                          selector(targets[0]), (size_t)targets[0]->routine->quantum, fit(targets[0], n),
                          fit(targets[0], n) + targets[0]->routine->quantum, n);
    }
    size_t applying = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t f = 0; f < r.wanted_count; f++)
            applying += r.wanted[f]->applies(targets[i]);
    if (r.wanted_count && !applying)
        return misuse(
            "verify: nothing was verified: family %s does not apply to %s; leave out --family, or name others",
            r.wanted[0]->name, selector(targets[0]));
    return verify_drive(targets, count, r.wanted_count ? r.wanted : families,
                        r.wanted_count ? r.wanted_count : FAMILY_COUNT, &r.options);
}
