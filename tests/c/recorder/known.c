/* recorder-known MODE [N]: makes calls of which the number is known, so that a test can hold the recorder to it. The
 * base of every mode are calls of sizes that nothing else uses. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { ROOM = 1 << 20 };
static _Alignas(4096) char from[2 * ROOM], to[2 * ROOM];

typedef void *copy_fn(void *, const void *, size_t);
typedef void *copy_chk_fn(void *, const void *, size_t, size_t);
typedef void *set_fn(void *, int, size_t);
typedef void *set_chk_fn(void *, int, size_t, size_t);
typedef void clear_fn(void *, size_t);
typedef void clear_chk_fn(void *, size_t, size_t);
typedef void bcopy_fn(const void *, void *, size_t);

copy_fn __mempcpy;
copy_chk_fn __memcpy_chk, __mempcpy_chk, __memmove_chk, __wmemcpy_chk, __wmempcpy_chk, __wmemmove_chk;
set_chk_fn __memset_chk, __wmemset_chk;
clear_chk_fn __explicit_bzero_chk;
/* Of a later glibc than programs here were built with; under the recorder they are there. */
__attribute__((weak)) set_fn memset_explicit;
__attribute__((weak)) set_chk_fn __memset_explicit_chk;

static copy_fn *volatile copies[] = {memcpy, mempcpy, __mempcpy, memmove};
static copy_fn *volatile wide_copies[] = {(copy_fn *)wmemcpy, (copy_fn *)wmempcpy, (copy_fn *)wmemmove};
static copy_chk_fn *volatile checked[] = {__memcpy_chk, __mempcpy_chk, __memmove_chk};
static copy_chk_fn *volatile wide_checked[] = {__wmemcpy_chk, __wmempcpy_chk, __wmemmove_chk};

static copy_fn *volatile copy = memcpy;

static void fail(const char *what)
{
    printf("wrong: %s\n", what);
    _exit(9);
}

/* Each name once with a size of its own from 601 on, in the order of the test's list; every result is looked at. */
static void every_name(void)
{
    size_t n = 601;
    for (size_t i = 0; i < 4; i++, n++) {
        memset(to, 0, 16);
        from[n - 1] = (char)(i + 1);
        if (copies[i](to, from, n) != to + (i == 1 || i == 2 ? n : 0) || to[n - 1] != (char)(i + 1))
            fail("a copy");
    }
    for (size_t i = 0; i < 3; i++, n++)
        if (wide_copies[i](to, from, n / 4) != to + (i == 1 ? n / 4 * 4 : 0))
            fail("a wide copy");
    for (size_t i = 0; i < 3; i++, n++)
        if (checked[i](to, from, n, ROOM) != to + (i == 1 ? n : 0))
            fail("a checked copy");
    for (size_t i = 0; i < 3; i++, n++)
        if (wide_checked[i](to, from, n / 4, ROOM) != to + (i == 1 ? n / 4 * 4 : 0))
            fail("a checked wide copy");
    bcopy_fn *volatile moves = bcopy;
    moves(from, to, n++);
    set_fn *volatile sets = memset, *volatile wide_sets = (set_fn *)wmemset;
    set_chk_fn *volatile checked_sets = __memset_chk, *volatile wide_checked_sets = __wmemset_chk;
    clear_fn *volatile clears = bzero, *volatile explicit_clears = explicit_bzero;
    clear_chk_fn *volatile checked_clears = __explicit_bzero_chk;
    if (sets(to, 7, n) != to || to[n - 1] != 7)
        fail("memset");
    n++;
    if (wide_sets(to, 0x01020304, n / 4) != to || to[4] != 4)
        fail("wmemset");
    n++;
    if (checked_sets(to, 7, n, ROOM) != to || wide_checked_sets(to, 7, ++n / 4, ROOM) != to)
        fail("a checked set");
    clears(to, ++n);
    explicit_clears(to, ++n);
    checked_clears(to, ++n, ROOM);
    if (to[0] || to[n - 1])
        fail("a clear");
    set_fn *volatile explicit_sets = memset_explicit;
    set_chk_fn *volatile checked_explicit_sets = __memset_explicit_chk;
    n++;
    if (explicit_sets && (explicit_sets(to, 8, n) != to || to[0] != 8 || to[n - 1] != 8))
        fail("memset_explicit");
    n++;
    if (checked_explicit_sets && (checked_explicit_sets(to, 9, n, n) != to || to[0] != 9 || to[n - 1] != 9))
        fail("a checked explicit set");
}

static __attribute__((noinline)) void times(unsigned long count, size_t n)
{
    for (unsigned long i = 0; i < count; i++)
        copy(to, from, n);
}

static void *thread(void *count)
{
    times((unsigned long)(uintptr_t)count, 777);
    return NULL;
}

static void handler(int signo)
{
    (void)signo;
    static char a[4096], b[4096];
    for (int i = 0; i < 3; i++)
        copy(a, b, 901);
}

static void signals(void)
{
    const struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerspec each = {{0, 50000}, {0, 50000}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    timer_settime(timer, 0, &each, NULL);
    times(20000000, 900);
}

/* Where in a page, which distance, which overlap. */
static void doze(int signo)
{
    (void)signo;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* Small copies that are interrupted all the time, also while they are counted, for longer than they take together. */
static void dozing(unsigned long count)
{
    const struct sigaction action = {.sa_handler = doze};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerspec each = {{0, 4000000}, {0, 4000000}};
    timer_t timer;
    timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &timer);
    timer_settime(timer, 0, &each, NULL);
    times(count, 700);
}

static void places(void)
{
    copy(to, from, 500);                /* 64 64 same (both arrays begin at pages) */
    copy(to + 8, from, 500);            /* 64 8 near */
    copy(to + 1024 + 2, from + 1, 500); /* 1 2 alias */
    copy(to + 2048, from + 4, 500);     /* 4 64 far */
    copy_fn *volatile moves = memmove;
    moves(to + 100, to, 500); /* above */
    moves(to, to + 100, 500); /* below */
    moves(to, to, 500);       /* same */
    moves(to, to + 500, 500); /* just not */
}

/* Every size of those, at places that differ. */
static void every_size(unsigned long count, size_t least, size_t most)
{
    copy_fn *volatile moves = memmove;
    set_fn *volatile sets = memset;
    for (unsigned long i = 0; i < count; i++)
        for (size_t n = least; n <= most; n++) {
            copy(to + 5 * n % 4096, from + 3 * n % 64, n);
            moves(to + 7 * n % 4096, from + n % 32, n);
            moves(to + 1 + n % 61, to, n);
            moves(to, to + 1 + n % 59, n);
            sets(to + n % 128, 0, n);
        }
}

/* One call where the one before it has ended, or anywhere in 64 MiB; or in pages that nobody has touched. */
static void walk(unsigned long count, bool ascends, bool fresh)
{
    const size_t bytes = (size_t)64 << 20, n = 8192, step = 8256;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    if (!fresh)
        for (size_t i = 0; i < bytes; i += 4096)
            ((volatile char *)memory)[i] = 1;
    uint64_t random = 1;
    for (unsigned long i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t slot = (ascends ? i : random >> 33) % (bytes / step);
        copy(memory + slot * step, from, n);
        if (memory[slot * step + n - 1] != from[n - 1])
            fail("a copy into a walk");
    }
}

static int child(void (*what)(void))
{
    const pid_t pid = fork();
    if (pid == 0) {
        what();
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return status;
}

static void thousand(void) { times(1000, 700); }

static void without_descriptors(void)
{
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0});
    thousand();
}

/* Copies when the first thread has ended for good: the maps of the process are empty then. */
static void *named(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 1000; i++)
        copy(to, from, 300);
    return NULL;
}

/* Gets its name after it has copied: gives it itself, one way or the other, or waits for whoever does. */
struct late {
    const char *name;
    enum { BY_PTHREAD, BY_PRCTL, BY_OTHERS } by;
    pthread_barrier_t *copied, *done;
};

static void *late(void *given)
{
    const struct late *how = given;
    for (int i = 0; i < 200; i++)
        copy(to, from, 300);
    if (how->by == BY_PTHREAD)
        pthread_setname_np(pthread_self(), how->name);
    else if (how->by == BY_PRCTL)
        prctl(PR_SET_NAME, how->name, 0, 0, 0);
    pthread_barrier_wait(how->copied);
    pthread_barrier_wait(how->done);
    for (int i = 0; i < 800; i++)
        copy(to, from, 300);
    return NULL;
}

static pthread_barrier_t one_copied, all_copied;

/* Its first copy is in the child of a vfork. */
static void *after_vfork(void *unused)
{
    const pid_t pid = vfork();
    if (pid == 0) {
        copy(to, from, 701);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 100; i++)
        copy(to, from, 700);
    pthread_barrier_wait(&one_copied);
    pthread_barrier_wait(&all_copied);
    return unused;
}

static void run_after_vforks(void)
{
    enum { EACH = 8 };
    pthread_t all[EACH];
    pthread_barrier_init(&one_copied, NULL, 2);
    pthread_barrier_init(&all_copied, NULL, EACH + 1);
    for (int i = 0; i < EACH; i++) {
        pthread_create(&all[i], NULL, after_vfork, NULL);
        pthread_barrier_wait(&one_copied);
    }
    pthread_barrier_wait(&all_copied);
    for (int i = 0; i < EACH; i++)
        pthread_join(all[i], NULL);
}

static void run_late(const char *name, int by)
{
    pthread_barrier_t copied, done;
    pthread_barrier_init(&copied, NULL, 2);
    pthread_barrier_init(&done, NULL, 2);
    struct late how = {name, by, &copied, &done};
    pthread_t one;
    pthread_create(&one, NULL, late, &how);
    pthread_barrier_wait(&copied);
    if (by == BY_OTHERS)
        pthread_setname_np(one, name);
    pthread_barrier_wait(&done);
    pthread_join(one, NULL);
}

static void *survivor(void *unused)
{
    char byte;
    ssize_t got;
    do {
        const int maps = open("/proc/self/maps", O_RDONLY);
        got = read(maps, &byte, 1);
        close(maps);
    } while (got > 0);
    thousand();
    return unused;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    const unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    if (strcmp(mode, "names") == 0)
        every_name();
    else if (strcmp(mode, "ascending") == 0)
        walk(count, true, false);
    else if (strcmp(mode, "scattered") == 0)
        walk(count, false, false);
    else if (strcmp(mode, "fresh") == 0)
        walk(count, true, true);
    else if (strcmp(mode, "places") == 0)
        places();
    else if (strcmp(mode, "small") == 0)
        every_size(count, 0, 1024);
    else if (strcmp(mode, "larger") == 0)
        every_size(count, 1025, 20000);
    else if (strcmp(mode, "times") == 0)
        times(count, 700);
    else if (strcmp(mode, "large") == 0)
        times(count, sizeof to);
    else if (strcmp(mode, "sizes") == 0)
        for (size_t n = 1000; n < ROOM; n = n * 3 / 2 + 1)
            copy(to, from, n);
    else if (strcmp(mode, "fork") == 0) {
        thousand();
        for (unsigned long i = 0; i < count; i++)
            child(thousand);
        thousand();
    } else if (strcmp(mode, "lost") == 0) {
        thousand();
        child(without_descriptors);
        thousand();
    } else if (strcmp(mode, "vfork") == 0) {
        const pid_t pid = vfork();
        if (pid == 0) {
            copy(to, from, 701);
            execl(argv[0], argv[0], "times", "500", NULL);
            _exit(1);
        }
        waitpid(pid, NULL, 0);
        thousand();
    } else if (strcmp(mode, "vforks") == 0) {
        run_after_vforks();
    } else if (strcmp(mode, "forked-vforks") == 0) {
        const pid_t pid = fork();
        if (pid == 0) {
            run_after_vforks();
            exit(0);
        }
        waitpid(pid, NULL, 0);
    } else if (strcmp(mode, "exec") == 0) {
        thousand();
        execl(argv[0], argv[0], "times", "500", NULL);
    } else if (strcmp(mode, "threads") == 0) {
        /* In waves, so that blocks are taken over. */
        pthread_t all[8];
        for (unsigned long done = 0; done < count; done += 8) {
            for (int i = 0; i < 8; i++)
                pthread_create(&all[i], NULL, thread, (void *)(uintptr_t)100000);
            for (int i = 0; i < 8; i++)
                pthread_join(all[i], NULL);
        }
    } else if (strcmp(mode, "named") == 0) {
        /* One after the other, so that those of one name share a block. */
        static const char *const names[] = {"reader", "writer", "reader"};
        for (unsigned i = 0; i < 3; i++) {
            pthread_t one;
            pthread_create(&one, NULL, named, (void *)(uintptr_t)names[i]);
            pthread_join(one, NULL);
        }
    } else if (strcmp(mode, "many-names") == 0) {
        /* More, one after the other, than have a block each. */
        for (int i = 0; i < 100; i++) {
            char name[16];
            snprintf(name, sizeof name, "worker%d", i);
            pthread_t one;
            pthread_create(&one, NULL, named, name);
            pthread_join(one, NULL);
        }
    } else if (strcmp(mode, "late") == 0) {
        run_late("by itself", BY_PTHREAD);
        run_late("by prctl, and of many letters", BY_PRCTL);
        run_late("by others", BY_OTHERS);
    } else if (strcmp(mode, "many-late") == 0) {
        for (int i = 0; i < 100; i++)
            run_late("by itself", BY_PTHREAD);
    } else if (strcmp(mode, "kept") == 0) {
        /* One that keeps its name, and one that follows it in its block. */
        pthread_t one;
        pthread_create(&one, NULL, named, "reader");
        pthread_join(one, NULL);
        pthread_setname_np(pthread_self(), "reader");
        run_late("by itself", BY_PTHREAD);
    } else if (strcmp(mode, "survivor") == 0) {
        pthread_t one;
        pthread_create(&one, NULL, survivor, NULL);
        pthread_exit(NULL);
    } else if (strcmp(mode, "abort") == 0) {
        thousand();
        abort();
    } else if (strcmp(mode, "kill") == 0) {
        thousand();
        kill(getpid(), SIGKILL);
    } else if (strcmp(mode, "overflow") == 0) {
        thousand();
        ((copy_chk_fn *volatile)__memcpy_chk)(to, from, 100, 99);
    } else if (strcmp(mode, "signals") == 0) {
        signals();
    } else if (strcmp(mode, "dozing") == 0) {
        dozing(count);
    } else {
        fprintf(stderr, "recorder-known: which mode?\n");
        return 2;
    }
    puts("done");
    return 0;
}
