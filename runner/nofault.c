/* The fault-tolerant functions as targets: by tier, and with each method from the smallest size on, as the others are.
 */
#include <stdio.h>
#include <string.h>

#include "dispatch/nofault.h"
#include "target.h"
#include "target_internal.h"

struct wherry_fault target_fault, *target_report = &target_fault;
__thread uint32_t target_sum;

/* Four arguments, as the others have. */
static size_t csum_copy_nofault(void *dst, const void *src, size_t n, uint32_t sum)
{
    const size_t left = wherry_csum_copy_nofault(dst, src, n, &sum, target_report);
    target_sum = sum;
    return left;
}

/* As it is measured, beside those that return their sum. */
static uint32_t csum_copy(void *dst, const void *src, size_t n, uint32_t sum)
{
    wherry_csum_copy_nofault(dst, src, n, &sum, NULL);
    return sum;
}

static const struct {
    const char *name;
    enum target_abi abi;
    enum wherry_op op; /* what it does while nothing faults */
    void (*fn)(void);
} functions[] = {
    {"wherry_copy_nofault", ABI_NOFAULT, WHERRY_OP_move, (void (*)(void))wherry_copy_nofault},
    {"wherry_set_nofault", ABI_SET_NOFAULT, WHERRY_OP_set, (void (*)(void))wherry_set_nofault},
    {"wherry_csum_copy_nofault", ABI_CSUM_NOFAULT, WHERRY_OP_move, (void (*)(void))csum_copy_nofault},
    {"wherry_copy_nofault_zero", ABI_NOFAULT, WHERRY_OP_move, (void (*)(void))wherry_copy_nofault_zero},
};
enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    BY_METHOD = 3 /* the last is the first and the second */
};

static void add_function(struct target_list *list, const char *name, int function, bool forced, enum wherry_isa isa,
                         enum target_method method)
{
    struct target *t = target_append(list);
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->function, sizeof t->function, "%s", functions[function].name);
    t->kind = TARGET_NOFAULT;
    t->abi = functions[function].abi;
    t->op = functions[function].op;
    t->forced = forced;
    t->isa = isa;
    t->method = method;
    t->fn = functions[function].fn;
}

static void add(struct target_list *list, const char *name, bool forced, enum wherry_isa isa, enum target_method method)
{
    for (int i = 0; i < (method == METHOD_PLANNED ? FUNCTIONS : BY_METHOD); i++) {
        if (functions[i].abi == ABI_CSUM_NOFAULT && method == METHOD_REP)
            continue; /* it has no such method */
        add_function(list, name, i, forced, isa, method);
    }
}

/* The copy that sums once more, as one of those that return their sum: to be measured beside them. */
static void add_summing(struct target_list *list, const char *name, bool forced, enum wherry_isa isa)
{
    struct target *t = target_append(list);
    *t = (struct target){.function = "wherry_csum_copy_nofault",
                         .kind = TARGET_NOFAULT,
                         .abi = ABI_COPY_CSUM,
                         .op = WHERRY_OP_copy_csum,
                         .forced = forced,
                         .isa = isa,
                         .fn = (void (*)(void))csum_copy};
    snprintf(t->name, sizeof t->name, "%s", name);
}

void targets_add_nofault(struct target_list *list, bool planned)
{
    static const enum wherry_isa tiers[] = {WHERRY_ISA_SSE2, WHERRY_ISA_AVX2, WHERRY_ISA_AVX512};
    if (planned) {
        add(list, "nofault", false, WHERRY_ISA_SSE2, METHOD_PLANNED);
        add_summing(list, "nofault", false, WHERRY_ISA_SSE2);
    }
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        static const char *const suffixes[] = {"", "+stream", "+rep"}; /* by method */
        for (int method = METHOD_PLANNED; method <= METHOD_REP; method++) {
            char name[64];
            snprintf(name, sizeof name, "nofault@%s%s", wherry_isa_names[tiers[i]], suffixes[method]);
            add(list, name, true, tiers[i], (enum target_method)method);
            if (planned && method == METHOD_PLANNED)
                add_summing(list, name, true, tiers[i]);
        }
    }
    /* Here only small copies and sets go other ways than with avx512, and those have one method; and the copy that
     * sums, which shows here that it can go without dot products and with them. */
    for (int function = 0; function < BY_METHOD; function++) {
        add_function(list, "nofault@avx512_ladder", function, true, WHERRY_ISA_AVX512_LADDER, METHOD_PLANNED);
        add_function(list, "nofault@avx512_together", function, true, WHERRY_ISA_AVX512_TOGETHER, METHOD_PLANNED);
    }
}

bool target_is_nofault(void (*fn)(void))
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (functions[i].fn == fn)
            return true;
    return false;
}
