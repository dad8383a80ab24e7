/* What the programs of this directory share: memory that ends, and a way to say what was not as expected. */
#ifndef NOFAULT_SCENE_H
#define NOFAULT_SCENE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <wherry.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

enum { PAGE = 4096 };

/* A page, and nothing behind it. Returns where it ends. */
static inline unsigned char *edge_of(bool file)
{
    unsigned char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    if (file) {
        int fd = memfd_create("edge", 0);
        CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
        CHECK(mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
        close(fd);
    } else {
        CHECK(mprotect(at + PAGE, PAGE, PROT_NONE) == 0);
    }
    for (int i = 0; i < PAGE; i++)
        at[i] = (unsigned char)(i * 7 + i / 256 + 1);
    return at + PAGE;
}

/* Copies of n bytes of which `there` exist, from and to such a place. True when count, bytes and report are right. */
static inline bool copies_right(size_t there, size_t n, bool file, bool by_table)
{
    unsigned char *edge = edge_of(file), other[3000];
    struct wherry_fault fault = {0};
    bool right = true;
    const int signo = by_table ? (file ? SIGBUS : SIGSEGV) : 0;
    memset(other, 0xa5, sizeof other);
    right &= wherry_copy_nofault(other, edge - there, n, &fault) == n - there;
    right &= memcmp(other, edge - there, there) == 0 && other[there] == 0xa5;
    right &= fault.addr == edge && !fault.writing && fault.signo == signo &&
             (by_table ? fault.code > 0 : fault.code == EFAULT);
    memset(other, 0x5a, sizeof other);
    right &= wherry_copy_nofault(edge - there, other, n, &fault) == n - there;
    right &= memcmp(other, edge - there, there) == 0;
    right &= fault.addr == edge && fault.writing && fault.signo == signo;
    right &= wherry_set_nofault(edge - there, 0x133, n, NULL) == n - there;
    right &= there == 0 || (edge[-1] == 0x33 && edge[-(long)there] == 0x33);
    right &= wherry_copy_nofault_zero(other, edge - there, n, NULL) == n - there;
    right &= memcmp(other, edge - there, there) == 0 && other[there] == 0 && other[n - 1] == 0 && other[n] == 0x5a;
    munmap(edge - PAGE, 2 * PAGE);
    return right;
}

static inline bool all_right(bool by_table)
{
    static const size_t sizes[][2] = {{0, 1},     {3, 17},    {20, 64},    {63, 64},    {64, 65},
                                      {100, 300}, {500, 512}, {700, 1000}, {1500, 2500}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!copies_right(sizes[i][0], sizes[i][1], false, by_table) ||
            !copies_right(sizes[i][0], sizes[i][1], true, by_table))
            return false;
    return true;
}

/* How calls go where faults are not mended: emulators lack process_vm_readv. */
static inline enum wherry_nofault_path by_calls(void)
{
    char byte = 0, other;
    const struct iovec from = {&byte, 1}, to = {&other, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? WHERRY_NOFAULT_BY_VM : WHERRY_NOFAULT_BY_PIPE;
}

/* A fault of the program's own. The address is volatile, so that the compiler cannot know. */
static inline void crash_by(const volatile char *p) { (void)*p; }

/* A fault whose handler goes on behind the instruction. */
static inline void crash_to_be_stepped_over(void *p)
{
    __asm__ volatile(".byte 0x88, 0x07" : : "D"(p), "a"(1) : "memory"); /* movb %al, (%rdi) */
}
static inline void host_steps_over(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* How a child ends in which f runs: its exit status, or minus the signal that killed it. */
static inline int end_of(void (*f)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(20);
        f();
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* A protection key that denies this thread what `denied` says; -1: there are none here. */
static inline int key_that_denies(unsigned denied) { return (int)syscall(SYS_pkey_alloc, 0, denied); }

static inline void lock_page(void *page, int key)
{
    CHECK(syscall(SYS_pkey_mprotect, page, PAGE, PROT_READ | PROT_WRITE, key) == 0);
}

/* What the message says is what the other fields say. */
static inline bool message_fits(const struct wherry_nofault_status *status)
{
    const bool by_table = status->path == WHERRY_NOFAULT_BY_TABLE;
    const bool ours = status->sigsegv == WHERRY_NOFAULT_OURS && status->sigbus == WHERRY_NOFAULT_OURS;
    const bool ready = strncmp(status->message, "ready", 5) == 0;
    if (status->path == WHERRY_NOFAULT_BY_NOTHING)
        return strncmp(status->message, "neither", 7) == 0;
    if (status->sigsegv_blocked || status->sigbus_blocked)
        return strstr(status->message, by_table ? "would kill" : "raise no signal");
    if (!by_table || strstr(status->message, "could last be asked"))
        return ready == by_table;
    return ready && strstr(status->message, ours ? "this library owns" : "the host owns");
}

static inline struct wherry_nofault_status status_now(void)
{
    struct wherry_nofault_status status;
    CHECK(wherry_nofault_status(&status) == 0);
    CHECK(status.message && message_fits(&status));
    return status;
}

/* As the kernel has it: the C library's sigaction puts a return of its own there. */
struct action_of_kernel {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static inline void own(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(signo, &action, NULL) == 0);
}

#endif
