/* Which plan is in force: the default, or one from a file, checked before any of it counts.
 *
 * A loaded plan sets the words that the default sets, so a call takes no other way because of it. They are set one by
 * one while others may copy; any value of each of them is right with any of the others. */
#include "dispatch/load.h"

#include <errno.h>
#include <stdatomic.h>

#include "cpu/caches.h"
#include "dispatch/dispatch.h"
#include "guard/holder.h"
#include "planfile/planfile.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

/* Of two, so that what a caller reads stays as it is until the load after the next. */
enum { LONGEST_PATH = 4096 }; /* the kernel takes none that is longer */
static char statuses[2][2 * LONGEST_PATH + 512];
static _Atomic(const char *) status;

/* The first part of the status. Of two as well: the child of a fork that comes while one is written goes by the other.
 */
static char parts[2][LONGEST_PATH + 128];
static _Atomic(const char *) part;

static const char *in_force(void)
{
    const char *now = atomic_load_explicit(&part, memory_order_acquire);
    return now ? now : "no plan is in force yet: the baseline serves every call";
}

static void say_plan(struct wherry_line *line, const struct wherry_planfile *plan, const char *path)
{
    wherry_line_add(line, "plan '");
    wherry_line_add(line, plan->name);
    wherry_line_add(line, "' is in force");
    if (plan->count > 1) {
        wherry_line_add(line, " (");
        wherry_line_number(line, plan->which);
        wherry_line_add(line, " of ");
        wherry_line_number(line, plan->count);
        wherry_line_add(line, ")");
    }
    wherry_line_add(line, ", from ");
    wherry_line_add(line, path);
}

static void say_in_force(const struct wherry_planfile *plan, const char *path)
{
    struct wherry_line line;
    wherry_line_begin(&line, parts[in_force() == parts[0]], sizeof parts[0]);
    if (plan)
        say_plan(&line, plan, path);
    else
        wherry_line_add(&line, "the default plan is in force");
    atomic_store_explicit(&part, line.text, memory_order_release);
}

static struct wherry_line next_status(void)
{
    const char *now = atomic_load_explicit(&status, memory_order_relaxed);
    struct wherry_line line;
    wherry_line_begin(&line, statuses[now == statuses[0]], sizeof statuses[0]);
    return line;
}

static void publish_status(const struct wherry_line *line)
{
    atomic_store_explicit(&status, line->text, memory_order_release);
}

/* Loads the plan of a path, or the default for NULL. `asked` names who wanted it, for the status. */
static int load(const char *path, const char *asked, const struct wherry_cpu *cpu, uint64_t last_level)
{
    struct wherry_planfile plan;
    char reason[224];
    struct wherry_line why, line = next_status();
    wherry_line_begin(&why, reason, sizeof reason);
    const int error = path ? wherry_planfile_read(path, cpu, last_level, &plan, &why) : 0;
    if (!error) {
        if (path) {
            wherry_dispatch_use(cpu, plan.isa, &plan.thresholds);
        } else {
            const enum wherry_isa isa = wherry_plan_isa(cpu);
            const struct wherry_thresholds thresholds = wherry_plan_thresholds(cpu, isa, last_level);
            wherry_dispatch_use(cpu, isa, &thresholds);
        }
        say_in_force(path ? &plan : NULL, path);
    }
    wherry_line_add(&line, in_force());
    if (error) {
        wherry_line_add(&line, "; ");
        wherry_line_add(&line, asked);
        wherry_line_add(&line, " was not used: ");
        wherry_line_add(&line, reason);
        if (error == EFAULT) { /* what the kernel could not read faults here */
            wherry_line_add(&line, " (its name is no readable memory)");
        } else {
            wherry_line_add(&line, " (");
            wherry_line_add(&line, path);
            wherry_line_add(&line, ")");
        }
    }
    publish_status(&line);
    return error;
}

void wherry_plan_begin(const struct wherry_cpu *cpu, uint64_t last_level)
{
    if (atomic_load_explicit(&part, memory_order_relaxed))
        return; /* the program has loaded one before the constructors */
    load(NULL, NULL, cpu, last_level);
    const char *path = wherry_planfile_environment();
    if (path)
        load(path, "WHERRY_PLAN", cpu, last_level);
}

static _Atomic(uint64_t) loading; /* who does (guard/holder.h), or 0 */

PUBLIC int wherry_plan_load(const char *path)
{
    const uint64_t self = holder_self();
    uint64_t owner = atomic_load_explicit(&loading, memory_order_relaxed);
    if ((owner && (owner == self || holder_is_another_here(owner, self))) ||
        !atomic_compare_exchange_strong_explicit(&loading, &owner, self, memory_order_acquire, memory_order_relaxed))
        return EBUSY;
    struct wherry_cpu cpu;
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    const int error = load(path, "the plan last asked for", &cpu, wherry_cpu_last_level(&native, &cpu));
    atomic_store_explicit(&loading, 0, memory_order_release);
    return error;
}

PUBLIC const char *wherry_plan_status(void)
{
    const char *now = atomic_load_explicit(&status, memory_order_acquire);
    return now ? now : in_force();
}
