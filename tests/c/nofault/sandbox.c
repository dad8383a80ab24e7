/* A sandbox that forbids process_vm_readv, and one that forbids pipes too: sandbox pipe, sandbox nothing; one that
 * forbids process_vm_writev alone: sandbox readv_alone; one that answers by signals: sandbox trapped; one that forbids
 * rt_sigaction, entered earlier and later: sandbox before, later, later_taken; that kill: sandbox killing. One that
 * stops a handler where it asks who owns the signal: sandbox rearmed_between. No descriptors: sandbox no_descriptor; no
 * reading: sandbox no_read. And a full disk: sandbox hole DIRECTORY, which holds less than 64 pages. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "scene.h"

static pid_t pid_of_this;

static void enter(struct sock_filter *filter, size_t instructions)
{
    const struct sock_fprog program = {(unsigned short)instructions, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void answer(long number, unsigned with)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, with),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    enter(filter, sizeof filter / sizeof filter[0]);
}

static void forbid(long number) { answer(number, SECCOMP_RET_ERRNO | EPERM); }

/* A sandbox that answers system calls by a handler of SIGSYS, as browsers' do, answers those of our handler too. */
static void on_trapped(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = pid_of_this;
}

static void crash_trapped(void)
{
    pid_of_this = getpid();
    own(SIGSYS, on_trapped, 0);
    CHECK(wherry_nofault_init() == 0);
    answer(SYS_getpid, SECCOMP_RET_TRAP);
    CHECK(getpid() == pid_of_this && all_right(true));
    crash_by((char *)edge_of(false));
}

/* A handler of ours asks who owns the signal, and is interrupted there: meanwhile the program's is installed anew and
 * ours before it, as another thread may. The question is then asked with a mark, which the filter lets pass. */
enum { MARK = 1 };
static void (*before_answer)(void);
static void on_asked(int signo, siginfo_t *info, void *context)
{
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    void (*const first)(void) = before_answer;
    (void)signo, (void)info;
    before_answer = NULL;
    if (first)
        first();
    const long error =
        syscall(SYS_rt_sigaction, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10], MARK);
    registers[REG_RAX] = error ? -errno : 0;
}

static void stop_who_asks(void)
{
    const unsigned bytes = offsetof(struct seccomp_data, args);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bytes + 1 * sizeof(uint64_t)), /* what to install: none */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bytes + 1 * sizeof(uint64_t) + sizeof(uint32_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bytes + 4 * sizeof(uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    enter(filter, sizeof filter / sizeof filter[0]);
}

static int stepped_over;
static void host_counts(int signo, siginfo_t *info, void *context)
{
    host_steps_over(signo, info, context);
    stepped_over++;
}

static void rearm(void)
{
    own(SIGSEGV, host_counts, SA_NODEFER);
    CHECK(wherry_nofault_init() == 0);
}
static void rearm_twice(void)
{
    rearm();
    rearm();
}
static void rearm_thrice(void)
{
    rearm_twice();
    rearm();
}

static struct action_of_kernel change(const struct action_of_kernel *to)
{
    struct action_of_kernel found;
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, to, &found, sizeof found.mask, MARK) == 0);
    return found;
}

/* The kernel calls the handler of the turn before, as it does for a thread that has been on its way since. */
static void rearmed_between(void)
{
    void (*const meanwhile[])(void) = {rearm, rearm_twice, rearm_thrice};
    own(SIGSYS, on_asked, SA_NODEFER);
    stop_who_asks();
    for (int i = 0; i < 3; i++) {
        rearm();
        const struct action_of_kernel earlier = change(NULL);
        rearm();
        CHECK(change(&earlier).handler != earlier.handler);
        before_answer = meanwhile[i];
        crash_to_be_stepped_over((void *)8);
        CHECK(!before_answer && stepped_over == i + 1);
    }
    CHECK(all_right(true));
}

/* Overlapping sides go their own way through the buffer. */
static void overlap(void)
{
    enum { BYTES = 3 * PAGE };
    unsigned char *at = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                  kept[BYTES];
    CHECK(mprotect(at + BYTES, PAGE, PROT_NONE) == 0);
    for (int distance = -3000; distance <= 3000; distance += 611)
        for (int place = 0; place < 2; place++) {
            const size_t src = place ? 6000 : 4000, dst = src + (size_t)distance, n = 5000;
            for (size_t i = 0; i < BYTES; i++)
                kept[i] = at[i] = (unsigned char)(i * 31 + i / 256);
            const size_t last = src > dst ? src : dst, room = BYTES - last < n ? BYTES - last : n;
            struct wherry_fault fault;
            CHECK(wherry_copy_nofault(at + dst, at + src, n, &fault) == n - room);
            CHECK(room == n || (fault.addr == at + BYTES && fault.writing == (dst > src) && fault.code == EFAULT));
            for (size_t i = 0; i < BYTES; i++)
                CHECK(at[i] == (i >= dst && i < dst + room ? kept[src + i - dst] : kept[i]));
        }
}

/* A hole that cannot be filled: a write to the mapped file raises SIGBUS where the disk is full. */
static void hole(const char *directory, bool by_table)
{
    enum { PAGES = 64 };
    char path[4096];
    static unsigned char from[PAGES * PAGE];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 13 + i / 251 + 1);
    snprintf(path, sizeof path, "%s/sparse", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, sizeof from) == 0);
    unsigned char *at = mmap(NULL, sizeof from, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct wherry_fault fault;
    for (size_t shift = 0; shift < 100; shift += 33) {
        const size_t n = sizeof from - shift, left = wherry_copy_nofault(at + shift, from, n, &fault), done = n - left;
        CHECK(left > 0 && done > 0 && (done + shift) % PAGE == 0);
        CHECK(memcmp(at + shift, from, done) == 0);
        CHECK(fault.addr == at + shift + done && fault.writing && fault.signo == (by_table ? SIGBUS : 0));
        CHECK(wherry_set_nofault(at + shift, 3, n, &fault) == left && fault.writing);
    }
    munmap(at, sizeof from);
    unlink(path);
    close(fd);
}

/* There the program's own crash cannot be handed on by restoring the default action, and ends it all the same. */
static void enter_to_crash(void)
{
    const struct rlimit seconds = {2, 2}; /* of a handler and a fault that take turns no other signal makes an end */
    CHECK(setrlimit(RLIMIT_CPU, &seconds) == 0 && wherry_nofault_init() == 0);
    forbid(SYS_rt_sigaction);
}
static void crash_anywhere(void)
{
    enter_to_crash();
    crash_by((char *)edge_of(false));
}
static void crash_behind_a_file(void)
{
    enter_to_crash();
    crash_by((char *)edge_of(true));
}
static void crash_beyond_addresses(void)
{
    enter_to_crash();
    crash_by((char *)((uintptr_t)1 << 62));
}
static void crash_by_signal(void)
{
    enter_to_crash();
    raise(SIGSEGV);
}
static void crash_by_other_signal(void)
{
    enter_to_crash();
    raise(SIGBUS);
}

/* One that allows to send a signal, but not with all that came with it: what somebody sent ends the program all the
 * same. No instruction would raise it again. */
static void crash_by_signal_alone(void)
{
    CHECK(wherry_nofault_init() == 0);
    forbid(SYS_rt_tgsigqueueinfo);
    raise(SIGSEGV);
}

/* Entered after wherry_nofault_init: no handler can be asked for, and none be installed. */
static void later(void)
{
    char from[10] = "carried", to[10] = "";
    CHECK(end_of(crash_anywhere) == -SIGSEGV && end_of(crash_beyond_addresses) == -SIGSEGV);
    CHECK(end_of(crash_behind_a_file) == -SIGBUS);
    CHECK(end_of(crash_by_signal) == -SIGSEGV && end_of(crash_by_other_signal) == -SIGSEGV);
    CHECK(end_of(crash_by_signal_alone) == -SIGSEGV);
    CHECK(wherry_nofault_init() == 0);
    forbid(SYS_rt_sigaction);
    forbid(SYS_process_vm_readv);
    forbid(SYS_pipe2);
    const struct wherry_nofault_status status = status_now();
    CHECK(status.path == WHERRY_NOFAULT_BY_TABLE && status.sigsegv == WHERRY_NOFAULT_OURS && status.sigsegv_handler);
    CHECK(strstr(status.message, "rt_sigaction"));
    CHECK(wherry_copy_nofault(to, from, sizeof to, NULL) == 0 && to[0] == 'c' && all_right(true));
    CHECK(wherry_nofault_init() == 0 && wherry_nofault_init_hosted() == 0 && all_right(true));
}

/* Another handler was in force when the kernel could last be asked: that is not forgotten. */
static void not_ours(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    _exit(9);
}
static void later_taken(void)
{
    CHECK(wherry_nofault_init() == 0);
    own(SIGBUS, not_ours, 0);
    CHECK(status_now().path == by_calls());
    forbid(SYS_rt_sigaction);
    const struct wherry_nofault_status status = status_now();
    CHECK(status.sigsegv == WHERRY_NOFAULT_OURS && status.sigbus == WHERRY_NOFAULT_SOMEBODY);
    CHECK(status.path == by_calls() && all_right(false) && wherry_nofault_init() == EPERM && all_right(false));
}

/* Entered before: nothing is known. */
static void before(void)
{
    forbid(SYS_rt_sigaction);
    CHECK(strstr(status_now().message, "allow rt_sigaction"));
    CHECK(wherry_nofault_init() == EPERM && wherry_nofault_init_hosted() == EPERM);
    const struct wherry_nofault_status status = status_now();
    CHECK(status.path == by_calls() && status.sigsegv == WHERRY_NOFAULT_SOMEBODY && !status.initialised);
    CHECK(!status.sigsegv_handler && !status.sigbus_handler);
    CHECK(status.sigbus == WHERRY_NOFAULT_SOMEBODY && !status.sigsegv_handler && !status.sigbus_handler);
    CHECK(strstr(status.message, "rt_sigaction") && all_right(false));
}

/* What a protection key denies is read by no way. */
static void locked(void)
{
    const int key = key_that_denies(1);
    if (key < 0)
        return;
    unsigned char *edge = edge_of(false), to[9] = "old";
    struct wherry_fault fault;
    lock_page(edge, key);
    CHECK(wherry_copy_nofault(to, edge - 2, sizeof to, &fault) == sizeof to - 2 && to[1] == edge[-1] && to[2] == 'd');
    CHECK(fault.addr == edge && fault.code == EFAULT && !fault.writing);
}

/* What is there is found by process_vm_readv alone; it reads no memory that is mapped for writing only. */
static void readv_alone(void)
{
    unsigned char *edge = edge_of(false), to[9] = "old";
    struct wherry_fault fault;
    forbid(SYS_process_vm_writev);
    CHECK(status_now().path == WHERRY_NOFAULT_BY_VM && all_right(false));
    locked();
    CHECK(mprotect(edge - PAGE, PAGE, PROT_WRITE) == 0);
    CHECK(wherry_copy_nofault(to, edge - PAGE, sizeof to, &fault) == sizeof to && to[0] == 'o');
    CHECK(fault.addr == edge - PAGE && fault.code == EFAULT && !fault.writing);
}

/* Where but read, write, exit and a handler's return every call kills: what is set up needs no more than these. */
static void copy_in_strict_mode(void)
{
    unsigned char *edge[2] = {edge_of(false), edge_of(true)}, to[3000];
    bool right = true;
    CHECK(wherry_nofault_init() == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    for (int i = 0; i < 2; i++)
        for (size_t n = 2; n <= sizeof to; n++)
            right &= wherry_copy_nofault(to, edge[i] - n / 2, n, NULL) == n - n / 2 &&
                     memcmp(to, edge[i] - n / 2, n / 2) == 0 &&
                     wherry_copy_nofault_zero(edge[i] - n / 2, to, n, NULL) == n - n / 2;
    syscall(SYS_exit, right ? 0 : 1);
}

static void copy_uninitialised(void)
{
    char to[9];
    answer(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS);
    wherry_copy_nofault(to, (const void *)8, sizeof to, NULL);
}

static void killing(void) { CHECK(end_of(copy_in_strict_mode) == 0 && end_of(copy_uninitialised) == -SIGSYS); }

/* A pipe is the only way, and there is no room for one. */
static void no_descriptor(void)
{
    char from[10] = "carried", to[10] = "old";
    struct wherry_fault fault;
    const struct rlimit none = {0, 0};
    forbid(SYS_process_vm_readv);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const struct wherry_nofault_status status = status_now();
    CHECK(status.path == WHERRY_NOFAULT_BY_NOTHING && strstr(status.message, "descriptor"));
    CHECK(!strstr(status.message, "sandbox"));
    CHECK(wherry_copy_nofault_zero(to, from, sizeof to, &fault) == sizeof to && to[0] == 'o' && fault.code == EMFILE);
}

/* A pipe can be made and written, and not be read: what is not there is not told from that. */
static void no_read(void)
{
    char to[10] = "old";
    struct wherry_fault fault;
    forbid(SYS_process_vm_readv);
    forbid(SYS_read);
    CHECK(status_now().path == WHERRY_NOFAULT_BY_NOTHING && strstr(status_now().message, "let the sandbox allow"));
    CHECK(wherry_copy_nofault_zero(to, (const void *)8, sizeof to, &fault) == sizeof to);
    CHECK(to[0] == 'o' && fault.signo == 0 && fault.code == EPERM);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"later", later},     {"later_taken", later_taken}, {"before", before},   {"no_descriptor", no_descriptor},
    {"no_read", no_read}, {"readv_alone", readv_alone}, {"killing", killing}, {"rearmed_between", rearmed_between}};

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "";
    if (strcmp(scene, "hole") == 0 && argc > 2) {
        hole(argv[2], false);
        CHECK(wherry_nofault_init() == 0);
        hole(argv[2], true);
        return 0;
    }
    if (strcmp(scene, "trapped") == 0) {
        CHECK(end_of(crash_trapped) == -SIGSEGV);
        return 0;
    }
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scene, scenes[i].name) == 0) {
            scenes[i].run();
            return 0;
        }
    overlap();
    forbid(SYS_process_vm_readv);
    forbid(SYS_process_vm_writev);
    if (strcmp(scene, "pipe") == 0) {
        const int open_before = open_descriptors();
        CHECK(status_now().path == WHERRY_NOFAULT_BY_PIPE);
        CHECK(all_right(false));
        CHECK(open_descriptors() == open_before); /* whatever each call has opened is closed */
        overlap();
        locked();
        CHECK(wherry_nofault_init() == 0 && all_right(true));
        return 0;
    }
    forbid(SYS_pipe2);
    char from[10] = "carried", to[10] = "";
    struct wherry_fault fault;
    CHECK(status_now().path == WHERRY_NOFAULT_BY_NOTHING && strstr(status_now().message, "let the sandbox allow"));
    CHECK(wherry_copy_nofault(to, from, sizeof to, &fault) == sizeof to && to[0] == '\0');
    CHECK(fault.signo == 0 && fault.code == EPERM);
    CHECK(wherry_nofault_init() == 0 && wherry_copy_nofault(to, from, sizeof to, &fault) == 0 && to[0] == 'c');
    return 0;
}
