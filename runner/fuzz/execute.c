/* Makes the calls of an input and looks at what they did.
 *
 * The arena always equals its copy between calls, so the reference needs no steps of its own: byte i of the
 * destination must become what the copy has as byte i of the source, and nothing else may change, whatever the
 * overlap. Afterwards the destination is put back. Compared by wide loads that share nothing with the routines. */
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "fuzz.h"
#include "parent.h"

typedef uint8_t block __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t pair __attribute__((vector_size(16)));
typedef uint64_t word __attribute__((aligned(1), may_alias));

enum { MOAT = 16 * 4096, TICK_US = 200000, PATIENCE = 6 /* ticks: 1.2 s of CPU time */ };

static uint8_t *arena, *back;
static int contents = -1; /* byte 0 of the input that the arena was filled for */
static struct fuzz_pulse own_pulse;
struct fuzz_pulse *fuzz_pulse = &own_pulse;

static sigjmp_buf escape;
static volatile sig_atomic_t inside;
static volatile int caught;
static volatile uintptr_t caught_address;
static volatile bool caught_writing;

static inline bool any_set(block x)
{
    pair p = (pair)x;
    return (p[0] | p[1]) != 0;
}

static inline bool same_64(const uint8_t *a, const uint8_t *b)
{
    return !any_set((*(const block *)a ^ *(const block *)b) | (*(const block *)(a + 16) ^ *(const block *)(b + 16)) |
                    (*(const block *)(a + 32) ^ *(const block *)(b + 32)) |
                    (*(const block *)(a + 48) ^ *(const block *)(b + 48)));
}

static inline bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
    if (n < 16) {
        if (n >= 8)
            return *(const word *)a == *(const word *)b && *(const word *)(a + n - 8) == *(const word *)(b + n - 8);
        for (size_t i = 0; i < n; i++)
            if (a[i] != b[i])
                return false;
        return true;
    }
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        if (!same_64(a + i, b + i))
            return false;
    for (; i + 16 <= n; i += 16)
        if (any_set(*(const block *)(a + i) ^ *(const block *)(b + i)))
            return false;
    return !any_set(*(const block *)(a + n - 16) ^ *(const block *)(b + n - 16));
}

static inline bool all(const uint8_t *a, uint8_t c, size_t n)
{
    const block wide = (block){0} + c;
    if (n < 16) {
        for (size_t i = 0; i < n; i++)
            if (a[i] != c)
                return false;
        return true;
    }
    block wrong = *(const block *)(a + n - 16) ^ wide;
    for (size_t i = 0; i + 16 <= n; i += 16)
        wrong |= *(const block *)(a + i) ^ wide;
    return !any_set(wrong);
}

static inline void put_back(size_t from, size_t n)
{
    uint8_t *a = arena + from;
    const uint8_t *b = back + from;
    if (n < 16) {
        for (size_t i = 0; i < n; i++)
            ((volatile uint8_t *)a)[i] = b[i];
        return;
    }
    for (size_t i = 0; i + 16 <= n; i += 16)
        *(block *)(a + i) = *(const block *)(b + i);
    *(block *)(a + n - 16) = *(const block *)(b + n - 16);
}

static void fill(int with)
{
    contents = with;
    mprotect(back, ARENA, PROT_READ | PROT_WRITE);
    uint64_t x = 0x9e3779b97f4a7c15u * (unsigned)(with + 1);
    for (size_t i = 0; i < ARENA; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        *(word *)(back + i) = x * 0x2545f4914f6cdd1du;
    }
    mprotect(back, ARENA, PROT_READ); /* a stray write must not change what is expected */
    put_back(0, ARENA);
}

static void on_signal(int signo, siginfo_t *info, void *opaque)
{
    __asm__ volatile("cld"); /* the routine may have left the direction flag set */
    if (signo == SIGPROF) {
        static uint64_t last;
        static int ticks;
        ticks = inside && fuzz_pulse->calls == last ? ticks + 1 : 0;
        last = fuzz_pulse->calls;
        if (ticks < PATIENCE)
            return;
        ticks = 0;
    }
    if (!inside)
        _Exit(4); /* the fuzzer itself fell over memory that a routine damaged */
    caught = signo;
    caught_address = (uintptr_t)info->si_addr;
    caught_writing = ((ucontext_t *)opaque)->uc_mcontext.gregs[REG_ERR] & 2;
    siglongjmp(escape, 1);
}

static uint8_t *map_between_moats(void)
{
    uint8_t *whole = mmap(NULL, ARENA + 2 * MOAT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED || mprotect(whole + MOAT, ARENA, PROT_READ | PROT_WRITE) != 0) {
        fputs("wherry-run: fuzz: the system refused memory for the arena\n", stderr);
        exit(1);
    }
    return whole + MOAT;
}

void fuzz_init(void)
{
    static uint8_t stack[64 * 1024];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGPROF};
    arena = map_between_moats();
    back = map_between_moats();
    fill(0);
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    const struct itimerval tick = {.it_interval = {.tv_usec = TICK_US}, .it_value = {.tv_usec = TICK_US}};
    setitimer(ITIMER_PROF, &tick, NULL);
}

/* What the function returned, as an offset in the arena; the destination's for those that return nothing. */
static inline size_t make(const struct fuzz_call *call)
{
    const struct target *t = call->target;
    uint8_t *dst = arena + call->dst;
    const uint8_t *src = arena + call->src;
    switch (t->abi) {
    case ABI_MEMCPY:
    case ABI_MEMPCPY:
        return (uintptr_t)((void *(*)(void *, const void *, size_t))t->fn)(dst, src, call->n) - (uintptr_t)arena;
    case ABI_BCOPY:
        ((void (*)(const void *, void *, size_t))t->fn)(src, dst, call->n);
        break;
    case ABI_MEMSET:
        return (uintptr_t)((void *(*)(void *, int, size_t))t->fn)(dst, call->c, call->n) - (uintptr_t)arena;
    case ABI_BZERO:
        ((void (*)(void *, size_t))t->fn)(dst, call->n);
        break;
    default: /* of other ops no call is made here */
        break;
    }
    return call->dst;
}

/* The slow way to look, which says what is wrong and where. */
static void describe(const struct fuzz_call *call, bool sets, struct finding *f)
{
    for (size_t i = 0; i < ARENA; i++) {
        bool in = i >= call->dst && i < call->dst + call->n;
        uint8_t expected = !in ? back[i] : sets ? (uint8_t)call->c : back[call->src + (i - call->dst)];
        if (arena[i] == expected)
            continue;
        bool of_source = !in && !sets && i >= call->src && i < call->src + call->n;
        enum finding_kind kind = in ? FOUND_BYTE : of_source ? FOUND_SOURCE : FOUND_OUTSIDE;
        if (f->kind != FOUND_NOTHING && kind != FOUND_BYTE)
            continue; /* a wrong byte of the destination says more than one outside it */
        if (f->kind == FOUND_BYTE)
            break;
        f->kind = kind;
        f->byte = (int64_t)i - (int64_t)(of_source ? call->src : call->dst);
        f->expected = expected;
        f->got = arena[i];
    }
}

static bool right(const struct fuzz_call *call, bool sets, bool thorough)
{
    const size_t n = call->n, dst = call->dst;
    const uint8_t *to = arena + dst;
    if (sets ? !all(to, (uint8_t)call->c, n) : !same(to, back + call->src, n))
        return false;
    const size_t before = dst < SURROUNDINGS ? dst : SURROUNDINGS;
    const size_t room = ARENA - dst - n, after = room < SURROUNDINGS ? room : SURROUNDINGS;
    if (before == SURROUNDINGS && after == SURROUNDINGS) {
        if (!same_64(to - 64, back + dst - 64) || !same_64(to + n, back + dst + n))
            return false;
    } else if (!same(to - before, back + dst - before, before) || !same(to + n, back + dst + n, after)) {
        return false;
    }
    return !thorough || (same(arena, back, dst) && same(to + n, back + dst + n, room));
}

/* By itself, so that nothing of the caller's lives across the jump. */
static __attribute__((noinline)) bool all_calls(const uint8_t *input, size_t count, bool thorough, struct finding *f)
{
    for (size_t i = 0; i < count && !fuzz_pulse->stop; i++, input += RECORD) {
        f->call = fuzz_decode(input);
        const struct fuzz_call *call = &f->call;
        target_ways(call->target, arena + call->dst, call->n);
        fuzz_use_thresholds(call->thresholds); /* which says more than a way does */
        const bool sets = call->target->op == WHERRY_OP_set || call->target->op == WHERRY_OP_zero;
        f->at = fuzz_pulse->at = (unsigned)i;
        inside = 1;
        atomic_signal_fence(memory_order_seq_cst);
        const size_t returned = make(call);
        atomic_signal_fence(memory_order_seq_cst);
        inside = 0;
        fuzz_pulse->calls++;
        if (!right(call, sets, thorough)) {
            describe(call, sets, f);
            return false;
        }
        const size_t expected = call->dst + (call->target->abi == ABI_MEMPCPY ? call->n : 0);
        if (returned != expected) {
            f->kind = FOUND_RETURN;
            f->byte = (int64_t)(returned - expected);
            return false;
        }
        put_back(call->dst, call->n);
    }
    return true;
}

bool fuzz_execute(const uint8_t *input, size_t length, bool thorough, struct finding *f)
{
    f->kind = FOUND_NOTHING;
    if (length < HEADER + RECORD)
        return true;
    if (contents != input[0])
        fill(input[0]);
    fuzz_use_tier(input[1]);
    size_t count = (length - HEADER) / RECORD;
    if (count > CALLS)
        count = CALLS;
    if (sigsetjmp(escape, 0) == 0) {
        if (all_calls(input + HEADER, count, thorough, f) && same(arena, back, ARENA))
            return true;
        if (f->kind == FOUND_NOTHING)
            describe(&f->call, false, f); /* far from where it was looked; fuzz_attribute finds out which call */
    } else {
        __asm__ volatile("cld\n\tfninit");
        inside = 0;
        f->at = fuzz_pulse->at;
        f->call = fuzz_decode(input + HEADER + (size_t)f->at * RECORD);
        f->kind = caught == SIGPROF ? FOUND_HANG : FOUND_FAULT;
        f->signo = caught;
        f->writing = caught_writing;
        f->address = (int64_t)(caught_address - (uintptr_t)arena);
    }
    fill(input[0]);
    return false;
}

bool fuzz_attribute(const uint8_t *input, size_t length, struct finding *f)
{
    struct finding again;
    if (fuzz_execute(input, length, true, &again))
        return false;
    *f = again;
    return true;
}

bool fuzz_blocked(struct fuzz_watch *watch, const struct fuzz_pulse *pulse)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9, since = now - watch->last;
    if (watch->last == 0 || pulse->calls != watch->calls)
        watch->stood = 0;
    else
        watch->stood += since < 0.5 ? since : 0.5; /* both may have been stopped meanwhile */
    watch->last = now;
    watch->calls = pulse->calls;
    return watch->stood > BLOCKED_AFTER;
}

struct finding fuzz_blocked_finding(const uint8_t *input, unsigned at)
{
    return (struct finding){
        .kind = FOUND_HANG, .at = at, .call = fuzz_decode(input + HEADER + (size_t)at * RECORD), .byte = 0};
}

/* Its status, or -1 when it was killed since a call of it did not end. Looks often at first, for most end at once and
 * shrinking waits for thousands. */
static int status_of(pid_t pid, const struct fuzz_pulse *pulse)
{
    struct fuzz_watch watch = {0};
    bool blocked = false;
    int status;
    for (struct timespec pause = {.tv_nsec = 50000};; nanosleep(&pause, NULL)) {
        const pid_t got = waitpid(pid, &status, blocked ? 0 : WNOHANG);
        if (got == pid)
            return blocked ? -1 : status;
        if (!blocked && fuzz_blocked(&watch, pulse)) {
            kill(pid, SIGKILL);
            blocked = true;
        }
        if (pause.tv_nsec < 20000000)
            pause.tv_nsec += pause.tv_nsec / 4;
    }
}

bool fuzz_execute_apart(const uint8_t *input, size_t length, struct finding *f)
{
    static struct apart {
        volatile bool ended, right;
        struct finding finding;
        struct fuzz_pulse pulse;
    } *seen;
    if (!seen)
        seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t own = getpid();
    pid_t pid = -1;
    if (seen != MAP_FAILED) {
        *seen = (struct apart){0};
        fflush(stdout);
        pid = fork();
    }
    if (pid < 0) {
        fputs("wherry-run: fuzz: the system refused memory or a process\n", stderr);
        exit(1);
    }
    if (pid == 0) {
        if (!die_with(own))
            _exit(1);
        fuzz_pulse = &seen->pulse;
        fuzz_init();
        seen->right = fuzz_execute(input, length, true, &seen->finding);
        seen->ended = true;
        _exit(0);
    }
    const int status = status_of(pid, &seen->pulse);
    *f = seen->finding;
    if (seen->ended)
        return seen->right;
    if (status < 0) {
        *f = fuzz_blocked_finding(input, seen->pulse.at);
        return false;
    }
    f->kind = FOUND_END;
    f->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    f->got = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return false;
}
