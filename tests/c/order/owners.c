/* Plans, who owns the signals, and copies that survive a fault. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/caches.h"
#include "dispatch/dispatch.h"
#include "dispatch/load.h"
#include "dispatch/nofault.h"
#include "scene.h"
#include "wherry.h"

enum { PAGE = 4096 };

/* What is done: */

static void nothing(void) {}
static void init(void) { (void)wherry_nofault_init(); }
static void ask(void) { (void)wherry_nofault_status(NULL); }
static void load(void) { (void)wherry_plan_load(order_plan); }
static void load_none(void) { (void)wherry_plan_load("/no/such"); }

/* As a plan of the baseline does. */
static void use_baseline(void)
{
    struct wherry_cpu cpu;
    const struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &cpu);
    const struct wherry_thresholds thresholds =
        wherry_plan_thresholds(&cpu, WHERRY_ISA_SSE2, wherry_cpu_last_level(&native, &cpu));
    wherry_dispatch_use(&cpu, WHERRY_ISA_SSE2, &thresholds);
}

/* Copies, of sizes of every kind, whose last bytes are missing; what they say is kept. */
static const size_t copied[] = {9, 40, 100, 300, 700, 3000};
enum { COPIES = sizeof copied / sizeof copied[0], MISSING = 3 };
static unsigned char pages[2 * PAGE] __attribute__((aligned(PAGE))), copies[COPIES][PAGE];
static size_t left[COPIES];
static void copy_to_the_edge(void)
{
    for (int i = 0; i < COPIES; i++)
        left[i] = wherry_copy_nofault(copies[i], pages + PAGE + MISSING - copied[i], copied[i], NULL);
}
static void make_edge(void)
{
    for (int i = 0; i < PAGE; i++)
        pages[i] = (unsigned char)(i * 7 + i / 256 + 1);
    if (mprotect(pages + PAGE, PAGE, PROT_NONE))
        _exit(2);
}
static void init_and_make_edge(void)
{
    init();
    make_edge();
}

static void theirs(int signo) { _exit(100 + signo); }
static void take_signals(void)
{
    signal(SIGSEGV, theirs);
    ask();
}

/* What must be so: */

static bool baseline_in_force(void)
{
    return wherry_nofault_choice_in(wherry_nofault_choice) == WHERRY_NOFAULT_CHOICE_SSE2;
}

/* A copy of what is not there: it survives. */
static bool survives(void)
{
    char *at = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to;
    return at != MAP_FAILED && wherry_copy_nofault(&to, at, 1, NULL) == 1;
}

static bool copied_to_the_edge(void)
{
    for (int i = 0; i < COPIES; i++)
        if (left[i] != MISSING || memcmp(copies[i], pages + PAGE + MISSING - copied[i], copied[i] - MISSING) ||
            copies[i][copied[i] - MISSING])
            return false;
    return true;
}

/* Also by what is still known in a sandbox where nobody can ask any more. */
static bool survives_in_a_sandbox(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    struct sigaction now;
    if (!survives() || sigaction(SIGSEGV, NULL, &now))
        return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(SKIPPED);
    struct wherry_nofault_status status;
    (void)wherry_nofault_status(&status);
    const bool taken = now.sa_handler == theirs;
    return survives() && status.sigsegv == (taken ? WHERRY_NOFAULT_SOMEBODY : WHERRY_NOFAULT_OURS) &&
           (status.path == WHERRY_NOFAULT_BY_TABLE) == !taken;
}

/* One plan or the other, said in whole words. */
static bool status_is_whole(void)
{
    const char *said = wherry_plan_status(), *end = strstr(said, "; the plan last asked for was not used: ");
    const char *const before = "the default plan is in force";
    char after[PAGE];
    snprintf(after, sizeof after, "plan 'mine' is in force, from %s", order_plan);
    const size_t n = end ? (size_t)(end - said) : strlen(said);
    return (n == strlen(before) && !strncmp(said, before, n)) || (n == strlen(after) && !strncmp(said, after, n));
}

const struct scene scenes_of_owners[] = {
    {"plan-in-init", nothing, init, THREAD, use_baseline, baseline_in_force, true, 0, 0},
    {"plan-in-status", init, ask, THREAD, use_baseline, baseline_in_force, true, 0, 0},
    {"init-in-plan", nothing, use_baseline, THREAD, init, baseline_in_force, true, 0, 0},
    {"status-in-plan", init, use_baseline, HANDLER, ask, baseline_in_force, true, 0, 0},
    {"taken-in-status", init, ask, THREAD, take_signals, survives_in_a_sandbox, true, 0, 0},
    {"taken-in-init", nothing, init, THREAD, take_signals, survives_in_a_sandbox, true, 0, 0},
    {"taken-in-init-anew", init, init, THREAD, take_signals, survives_in_a_sandbox, true, 0, 0},
    {"init-in-status", nothing, ask, THREAD, init, survives_in_a_sandbox, true, 0, 0},
    {"status-in-init", nothing, init, HANDLER, ask, survives_in_a_sandbox, true, 0, 0},
    {"plan-in-copy", init_and_make_edge, copy_to_the_edge, HANDLER, use_baseline, copied_to_the_edge, true, 0, 0},
    {"init-in-copy", make_edge, copy_to_the_edge, THREAD, init, copied_to_the_edge, true, 0, 0},
    {"status-in-copy", init_and_make_edge, copy_to_the_edge, HANDLER, ask, copied_to_the_edge, true, 0, 0},
    {"fork-in-init", nothing, init, THREAD, init, survives_in_a_sandbox, false, 0, 0},
    {"fork-in-load", nothing, load, THREAD, load_none, status_is_whole, false, 3000, 29},
    {0},
};
