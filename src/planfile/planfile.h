/* A compiled plan: open, read, check. What a plan is, and its bytes, docs/plan.md tells; wherry/planbinary.py writes
 * them.
 *
 * No stdio, no malloc, no thread-local storage, no libc at all: constructors of a preloaded object come here, before
 * the C library's own may have run. Nothing is published here (dispatch/load.c). */
#ifndef WHERRY_PLANFILE_H
#define WHERRY_PLANFILE_H

#include "cpu/cpu.h"
#include "plan/plan.h"
#include "planfile/line.h"
#include "routines/thresholds.h"

enum { WHERRY_PLAN_NAME_BYTES = 48 };

struct wherry_planfile {
    enum wherry_isa isa;
    struct wherry_thresholds thresholds;
    uint32_t which, count; /* of a bundle: the how manieth it is, from 1 on */
    char name[WHERRY_PLAN_NAME_BYTES];
};

/* Reads the plan that is for this CPU, with a last-level cache as wherry_cpu_last_level tells it. Returns 0, or an
 * errno value: the system's own when it cannot be read; EINVAL when it is no plan, cut short, damaged or absurd;
 * EOPNOTSUPP when its format is another; ENODEV when it is for other CPUs. Then *plan is undefined, and the reason,
 * without its full stop, is added to the line. */
int wherry_planfile_read(const char *path, const struct wherry_cpu *cpu, uint64_t last_level,
                         struct wherry_planfile *plan, struct wherry_line *why);

/* What WHERRY_PLAN says, or NULL: when it is not set, empty, or not to be trusted in this process (AT_SECURE). The
 * library and the drop-in each have their own. */
const char *wherry_planfile_environment(void);

#endif
