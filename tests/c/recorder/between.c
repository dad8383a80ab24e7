/* recorder-between MODE: one thread is stopped at a system call of the recorder's, and another makes its calls there.
 *   growing            it was about to make room for its block in the file, of a file system without fallocate
 *   modules LIBRARY    it was about to read which file its caller is in; the other's caller is in that library
 * A filter answers the system call by a signal, whose handler makes it again with a mark that lets it pass.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { MARK = 0x7e57, MARKED = 5, CALLS = 1000, LARGE = 20000 };

static char from[LARGE], to[2][LARGE];
static sem_t may, has;
static void (*work)(void *to, const void *from, size_t n, unsigned calls);

static void copy_here(void *dst, const void *src, size_t n, unsigned calls)
{
    while (calls-- > 0)
        memcpy(dst, src, n);
}

static void *works(void *turns)
{
    for (uintptr_t i = 0; i < (uintptr_t)turns; i++) {
        sem_wait(&may);
        work(to[1], from, LARGE, CALLS);
        sem_post(&has);
    }
    return NULL;
}

static void let_it_work(void)
{
    sem_post(&may);
    sem_wait(&has);
}

static const char *stopped_at; /* the path of an open, or NULL: whatever is answered so */
static int stops;

static void on_system_call(int signal, siginfo_t *info, void *context)
{
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal;
    if (!stops && (!stopped_at || strcmp((const char *)registers[REG_RSI], stopped_at) == 0)) {
        stops++;
        let_it_work();
    }
    const long result = syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                registers[REG_R10], registers[REG_R8], MARK);
    registers[REG_RAX] = result == -1 ? -errno : result;
}

static bool stop_at(const unsigned *calls, unsigned count, long forbidden)
{
    struct sock_filter filter[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + MARKED * sizeof(uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
    };
    unsigned short length = 6;
    for (unsigned i = 0; i < count; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {length, filter};
    const struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *begins(void *unused)
{
    copy_here(to[0], from, LARGE, CALLS);
    return unused;
}

static bool in_a_thread(pthread_t *thread, void *(*begin)(void *), void *argument)
{
    return pthread_create(thread, NULL, begin, argument) == 0;
}

int main(int argc, char **argv)
{
    const bool growing = argc > 1 && strcmp(argv[1], "growing") == 0;
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    pthread_t one, other;
    sem_init(&may, 0, 0);
    sem_init(&has, 0, 0);
    work = copy_here;
    if (library)
        *(void **)&work = dlsym(library, "copy_elsewhere");
    if (!growing && !library)
        return 2;
    static const unsigned grows[] = {SYS_ftruncate, SYS_pwrite64}, opens[] = {SYS_openat};
    if (!growing)
        stopped_at = "/proc/thread-self/maps";
    if (!in_a_thread(&other, works, (void *)2) ||
        !(growing ? stop_at(grows, 2, SYS_fallocate) : stop_at(opens, 1, -1)) || !in_a_thread(&one, begins, NULL)) {
        perror("recorder-between");
        return 77;
    }
    pthread_join(one, NULL);
    let_it_work(); /* once more */
    pthread_join(other, NULL);
    printf("%d\n", stops);
    return 0;
}
