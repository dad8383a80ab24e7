/* What happens in which order: order-test SCENE [PLAN] lets a thread do something, and after each of its instructions,
 * in a child that is forked there, has somebody else do something whole: another thread, or a handler of signals. Then
 * the first goes on to its end, and all must be as if the two had come one after the other.
 *
 * Says how many instructions there were. Of so many that it would take long, all of the last LAST are looked at, and of
 * those before one in EACH.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu/caches.h"
#include "dispatch/dispatch.h"
#include "dispatch/load.h"
#include "dispatch/nofault.h"
#include "wherry.h"

enum { TRAP_FLAG = 0x100, LAST = 3000, EACH = 29, PAGE = 4096, SECONDS = 60, SKIPPED = 77 };

static const char *plan;

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static void nothing(void) {}
static void init(void) { (void)wherry_nofault_init(); }
static void ask(void) { (void)wherry_nofault_status(NULL); }
static void load(void) { (void)wherry_plan_load(plan); }
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

/* ---- what must be so --------------------------------------------------------------------------------------------- */

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
    snprintf(after, sizeof after, "plan 'mine' is in force, from %s", plan);
    const size_t n = end ? (size_t)(end - said) : strlen(said);
    return (n == strlen(before) && !strncmp(said, before, n)) || (n == strlen(after) && !strncmp(said, after, n));
}

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

enum who { THREAD, HANDLER };
static const struct scene {
    const char *name;
    void (*first)(void), (*stepped)(void);
    enum who who;
    void (*between)(void);
    bool (*right)(void);
    bool goes_on; /* else the child of a fork is alone with what was under way */
} scenes[] = {
    {"plan-in-init", nothing, init, THREAD, use_baseline, baseline_in_force, true},
    {"plan-in-status", init, ask, THREAD, use_baseline, baseline_in_force, true},
    {"init-in-plan", nothing, use_baseline, THREAD, init, baseline_in_force, true},
    {"status-in-plan", init, use_baseline, HANDLER, ask, baseline_in_force, true},
    {"taken-in-status", init, ask, THREAD, take_signals, survives_in_a_sandbox, true},
    {"taken-in-init", nothing, init, THREAD, take_signals, survives_in_a_sandbox, true},
    {"taken-in-init-anew", init, init, THREAD, take_signals, survives_in_a_sandbox, true},
    {"init-in-status", nothing, ask, THREAD, init, survives_in_a_sandbox, true},
    {"status-in-init", nothing, init, HANDLER, ask, survives_in_a_sandbox, true},
    {"plan-in-copy", init_and_make_edge, copy_to_the_edge, HANDLER, use_baseline, copied_to_the_edge, true},
    {"init-in-copy", make_edge, copy_to_the_edge, THREAD, init, copied_to_the_edge, true},
    {"status-in-copy", init_and_make_edge, copy_to_the_edge, HANDLER, ask, copied_to_the_edge, true},
    {"fork-in-init", nothing, init, THREAD, init, survives_in_a_sandbox, false},
    {"fork-in-load", nothing, load, THREAD, load_none, status_is_whole, false},
};
static const struct scene *scene;
static volatile unsigned long steps, looked_at;
static unsigned long all;

static void *between(void *unused)
{
    scene->between();
    return unused;
}

static void do_between(void)
{
    pthread_t other;
    if (scene->who == HANDLER)
        scene->between();
    else if (pthread_create(&other, NULL, between, NULL) || pthread_join(other, NULL))
        _exit(2);
}

static void step(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    steps++;
    if (!all || (steps + LAST < all && steps % EACH))
        return;
    looked_at++;
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        do_between();
        if (!scene->goes_on)
            _exit(!scene->right());
        all = 0;
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (code != SKIPPED)
            printf("%s: wrong (%d) when it comes after %lu of %lu instructions\n", scene->name, code, steps, all);
        fflush(stdout);
        _exit(code == SKIPPED ? SKIPPED : 1);
    }
}

static void stepping(bool on)
{
    if (on)
        __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "cc", "memory");
    else
        __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~TRAP_FLAG) : "cc", "memory");
}

static unsigned long go(void)
{
    const pid_t self = getpid();
    steps = 0;
    stepping(true);
    scene->stepped();
    stepping(false);
    if (getpid() != self)
        _exit(!scene->right());
    return steps;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (argc < 2)
            puts(scenes[i].name);
        else if (!strcmp(argv[1], scenes[i].name))
            scene = &scenes[i];
    }
    if (!scene)
        return argc < 2 ? 0 : 2;
    plan = argc > 2 ? argv[2] : NULL;
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    scene->first();
    /* How many there are, in a child, since what it does may be done but once. */
    int ends[2];
    if (pipe(ends))
        return 2;
    const pid_t counts = fork();
    if (counts == 0) {
        const unsigned long found = go();
        _exit(write(ends[1], &found, sizeof found) != sizeof found);
    }
    unsigned long found;
    if (counts < 0 || read(ends[0], &found, sizeof found) != sizeof found || waitpid(counts, NULL, 0) != counts)
        return 2;
    if (!found) {
        puts("nothing steps here");
        return SKIPPED;
    }
    all = found;
    go();
    printf("%lu %lu\n", steps, looked_at);
    return 0;
}
