/* The file of a process and the blocks of its threads.
 *
 * A thread keeps its block until it ends; the next new thread finds out that the owner is gone and goes on counting
 * there, so that a program with thousands of short threads needs few. No file stays open: programs count their
 * descriptors. The child of a fork has none of the mappings (MADV_DONTFORK), and a word that is zero again there
 * (MADV_WIPEONFORK) tells it to begin a file of its own; what a handler that forked has interrupted goes on in what
 * forks.c puts there. One that cannot (a new root directory, no descriptor left)
 * says in its parent's how many calls were lost, by the one page of it that it keeps. That of a vfork runs in its
 * parent's memory and counts for it.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define CALL(number, ...) CALL_(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...)                                                                           \
    recorder_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

enum { STATE_NONE, STATE_ON, STATE_BUSY, STATE_OFF, ATTEMPTS = 64, DIRECTORY = 400, NAME = 32 };

static uint32_t never;
uint32_t *recorder_alive = &never;
__thread struct recorder_block *recorder_mine __attribute__((tls_model("initial-exec")));
__thread char recorder_before[THREAD_NAME] __attribute__((tls_model("initial-exec")));
struct recorder_file *recorder_file;

/* The page that is wiped in the child of a fork. */
struct state {
    uint32_t alive;
    uint32_t phase;
    uint32_t process; /* its number, where fork has told; 0: it has not */
};
static struct state *state;

static struct recorder_block *blocks[BLOCKS];
static char directory[DIRECTORY], path[DIRECTORY + NAME];
static bool refused;

/* The first page of the file of this process, or of the parent's as long as this one has none. */
static struct recorder_file *head;
_Static_assert(offsetof(struct recorder_file, uncounted) + sizeof(uint64_t) <= PAGE, "head reaches it");

static size_t append(char *to, size_t at, const char *text)
{
    while (*text && at + 1 < sizeof path)
        to[at++] = *text++;
    to[at] = '\0';
    return at;
}

static size_t append_number(char *to, size_t at, unsigned long number)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0 && at + 1 < sizeof path)
        to[at++] = digits[--count];
    to[at] = '\0';
    return at;
}

/* Bytes of the file from `from` on, there for good: a full disk would otherwise show as SIGBUS in the program. Where
 * there is no room `*why` is set. */
static void *map_part(int descriptor, size_t from, size_t bytes, unsigned *why)
{
    *why = NO_ROOM;
    struct {
        uint64_t now, most;
    } limit;
    /* Beyond this limit growing a file raises SIGXFSZ. */
    if (CALL(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 && limit.now < from + bytes) {
        *why = FILE_LIMIT;
        return NULL;
    }
    const long reserved = CALL(SYS_fallocate, descriptor, 0, from, bytes);
    if (reserved == -EOPNOTSUPP) {
        /* Never shorter, as ftruncate would where another thread has made room behind this meanwhile. */
        if (CALL(SYS_pwrite64, descriptor, "", 1, from + bytes - 1) != 1)
            return NULL;
    } else if (reserved != 0) {
        return NULL;
    }
    const long at = CALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, from);
    if (at < 0 && at > -4096) {
        *why = NO_MEMORY;
        return NULL;
    }
    CALL(SYS_madvise, at, bytes, MADV_DONTFORK);
    CALL(SYS_madvise, at, bytes, MADV_DONTDUMP);
    return (void *)at;
}

static bool make_state(void)
{
    if (state)
        return true;
    const long page = CALL(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0 && page > -4096)
        return false;
    /* Without it a child would count in its parent's block. Linux has it since 4.14. */
    if (CALL(SYS_madvise, page, PAGE, MADV_WIPEONFORK) != 0) {
        CALL(SYS_munmap, page, PAGE);
        return false;
    }
    recorder_learn_fault((volatile unsigned char *)page);
    state = (struct state *)page;
    recorder_alive = &state->alive;
    return true;
}

/* Of several with one number, in PID namespaces of their own or one after the other, each has a name that is drawn. */
static int create(unsigned long pid)
{
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        size_t at = append(path, 0, directory);
        at = append(path, at, "/");
        at = append_number(path, at, pid);
        at = append(path, at, "-");
        append_number(path, at, attempt ? (uint32_t)recorder_ticks() : 0);
        const long made = CALL(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (made >= 0) {
            /* Threads that begin after a server has given up its privileges open it again. */
            if (CALL(SYS_geteuid, 0) == 0)
                CALL(SYS_fchmod, made, 0666);
            return (int)made;
        }
        if (made != -EEXIST)
            return -1;
    }
    return -1;
}

static void keep_head(int descriptor)
{
    const long at = CALL(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (head)
        CALL(SYS_munmap, head, PAGE);
    head = at < 0 && at > -4096 ? NULL : (struct recorder_file *)at;
    if (head)
        CALL(SYS_madvise, at, PAGE, MADV_DONTDUMP);
}

static uint64_t clock_ns(int clock)
{
    struct {
        uint64_t seconds, nanoseconds;
    } now = {0, 0};
    CALL(SYS_clock_gettime, clock, &now);
    return now.seconds * 1000000000 + now.nanoseconds;
}

/* By /proc/self/stat: the twentieth word behind the name, which ends with the last bracket. 0: nobody knows. */
static uint64_t started(void)
{
    char line[512];
    const long descriptor = CALL(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    const long got = CALL(SYS_read, descriptor, line, sizeof line);
    CALL(SYS_close, descriptor);
    long at = got;
    while (at > 0 && line[at - 1] != ')')
        at--;
    uint64_t ticks = 0;
    for (int word = 0; at < got && word <= 20; at++) {
        word += line[at] == ' ';
        if (word == 20 && line[at] >= '0' && line[at] <= '9')
            ticks = ticks * 10 + (uint64_t)(line[at] - '0');
    }
    return ticks;
}

/* By which it can be told afterwards how much of the run's processor time is of processes that were recorded. At the
 * end only the processor's clock is read: a program may have forbidden itself system calls by then. */
static void note_times(struct recorder_file *file)
{
    file->parent = (uint32_t)CALL(SYS_getppid, 0);
    file->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    file->clock_ns = clock_ns(CLOCK_MONOTONIC);
    file->begin_ticks = recorder_ticks();
}

void recorder_note_end(void)
{
    if (*recorder_alive)
        recorder_file->end_ticks = recorder_ticks();
}

static bool begin_file(void)
{
    if (!directory[0]) {
        const char *given = recorder_directory();
        size_t length = 0;
        while (given && given[length])
            length++;
        if (!given || length >= DIRECTORY)
            return false;
        append(directory, 0, given);
    }
    const unsigned long pid = (unsigned long)CALL(SYS_getpid, 0);
    const int descriptor = create(pid);
    if (descriptor < 0)
        return false;
    unsigned why;
    struct recorder_file *file = map_part(descriptor, 0, HEADER_BYTES, &why);
    if (file)
        keep_head(descriptor);
    else
        CALL(SYS_fchmod, descriptor, why); /* where not a byte can be written */
    CALL(SYS_close, descriptor);
    if (!file)
        return false;
    file->version = RECORDER_VERSION;
    file->block_bytes = BLOCK_BYTES;
    file->header_bytes = HEADER_BYTES;
    file->pid = (uint32_t)pid;
    note_times(file);
    file->started = started();
    const long length = CALL(SYS_readlink, "/proc/thread-self/exe", file->program, sizeof file->program - 1);
    file->program[length > 0 ? length : 0] = '\0';
    const char magic[8] = {'W', 'H', 'E', 'R', 'R', 'Y', 'R', 'C'};
    for (unsigned i = 0; i < sizeof magic; i++)
        file->magic[i] = magic[i];
    __atomic_store_n(&file->complete, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = NULL;
    recorder_file = file;
    return true;
}

void recorder_note_process(void)
{
    if (state)
        state->process = (uint32_t)CALL(SYS_getpid, 0);
}

/* Once a process: its first thread is alone, but a handler may come in between. Not by the child of a vfork, which runs
 * in the memory of one that has not begun: by the child's number none of that one's threads would be found. */
static bool begin_process(void)
{
    if (refused || !make_state())
        return false;
    if (state->process && state->process != (uint32_t)CALL(SYS_getpid, 0))
        return false;
    uint32_t expected = STATE_NONE;
    if (!__atomic_compare_exchange_n(&state->phase, &expected, STATE_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    const bool good = begin_file();
    __atomic_store_n(&state->phase, good ? STATE_ON : STATE_OFF, __ATOMIC_RELEASE);
    if (good)
        __atomic_store_n(&state->alive, 1, __ATOMIC_RELEASE);
    else
        refused = !directory[0]; /* nothing is to be recorded; else a child may find its file */
    return good;
}

bool recorder_same_name(const char *name, const char *other)
{
    for (unsigned i = 0; i < THREAD_NAME; i++)
        if (name[i] != other[i])
            return false;
    return true;
}

void recorder_name(struct recorder_block *block, const char *name)
{
    for (unsigned i = 0; i < THREAD_NAME; i++)
        block->name[i] = name ? name[i] : 0;
    if (!name)
        block->name[THREAD_NAME - 1] = SEVERAL_NAMES;
}

static struct recorder_block *prepare(struct recorder_block *block, uint32_t thread, const char *name)
{
    for (unsigned i = 0; i < THREAD_NAME; i++)
        recorder_before[i] = block->name[i];
    recorder_name(block, !block->claims || recorder_same_name(block->name, name) ? name : NULL);
    if (!block->claims) {
        block->random = 0x9e3779b97f4a7c15u * (thread + 1);
        block->sample_at = 1;
        block->until_timed = 1;
        block->next_burst = 1;
        block->burst_at = BURST;
    }
    recorder_begin_log(block);
    __atomic_fetch_add(&block->claims, 1, __ATOMIC_RELAXED);
    return block;
}

/* One of a thread that has ended; `any`: of one with another name, too. */
static struct recorder_block *take_over(uint32_t thread, const char *name, bool any)
{
    const uint32_t count = __atomic_load_n(&recorder_file->blocks, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < BLOCKS; i++) {
        struct recorder_block *block = __atomic_load_n(&blocks[i], __ATOMIC_ACQUIRE);
        if (!block)
            continue;
        uint32_t owner = __atomic_load_n(&block->owner, __ATOMIC_ACQUIRE);
        if (owner == thread)
            return prepare(block, thread, name); /* of a thread that had the same number */
        if (owner && (any || recorder_same_name(block->name, name)) &&
            CALL(SYS_tgkill, recorder_file->pid, owner, 0) == -ESRCH &&
            __atomic_compare_exchange_n(&block->owner, &owner, thread, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return prepare(block, thread, name);
    }
    return NULL;
}

static struct recorder_block *add_block(uint32_t thread, const char *name)
{
    const long descriptor = CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return NULL;
    struct recorder_block *block = NULL;
    unsigned why;
    const uint32_t place = __atomic_fetch_add(&recorder_file->blocks, 1, __ATOMIC_ACQ_REL);
    if (place < BLOCKS)
        block = map_part((int)descriptor, HEADER_BYTES + (size_t)place * BLOCK_BYTES, BLOCK_BYTES, &why);
    CALL(SYS_close, descriptor);
    if (!block)
        return NULL;
    block->owner = thread;
    prepare(block, thread, name);
    __atomic_store_n(&blocks[place], block, __ATOMIC_RELEASE);
    return block;
}

struct recorder_block *recorder_block(uint32_t number)
{
    return number < BLOCKS ? __atomic_load_n(&blocks[number], __ATOMIC_ACQUIRE) : NULL;
}

/* Whose the block will be. The child of a vfork counts for the thread that began it, and is gone before that goes on:
 * as the child's it would be another thread's soon. */
static uint32_t own_number(void)
{
    const bool parents = CALL(SYS_getpid, 0) != recorder_file->pid;
    return parents ? recorder_parents_number() : (uint32_t)CALL(SYS_gettid, 0);
}

/* SIGXFSZ is avoided above, and nothing else here can raise a signal. */
struct recorder_block *recorder_claim(void)
{
    if (recorder_mine == CLAIMING && *recorder_alive) {
        __atomic_fetch_add(&recorder_file->uncounted, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (refused)
        return NULL;
    recorder_mine = CLAIMING;
    struct recorder_block *block = NULL;
    const struct recorder_file *file = NULL;
    if (*recorder_alive || begin_process()) {
        file = recorder_file;
        const uint32_t thread = own_number();
        if (!thread) {
            __atomic_fetch_add(&recorder_file->uncounted, 1, __ATOMIC_RELAXED);
            recorder_mine = NULL;
            return NULL;
        }
        char name[THREAD_NAME] = {0};
        CALL(SYS_prctl, PR_GET_NAME, name);
        if (recorder_file->blocks < BLOCKS || blocks[BLOCKS - 1]) {
            block = take_over(thread, name, recorder_file->blocks >= NAMED_BLOCKS);
            if (!block && recorder_file->blocks < BLOCKS)
                block = add_block(thread, name);
            if (!block)
                block = take_over(thread, name, true);
        }
        if (!block) {
            /* It stays so: each further call is counted as one that was not. */
            __atomic_fetch_add(&recorder_file->uncounted, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    } else if (head) {
        __atomic_fetch_add(&head->uncounted, 1, __ATOMIC_RELAXED);
    }
    recorder_mine = block;
    if (file && UNLIKELY(!*recorder_alive || recorder_file != file)) /* a handler has forked, and this is the child */
        return recorder_claim();
    if (block) {
        /* Whoever named it meanwhile found no block. */
        char name[THREAD_NAME] = {0};
        CALL(SYS_prctl, PR_GET_NAME, name);
        if (!recorder_same_name(name, block->name))
            recorder_note_name(recorder_thread(), name);
    }
    return block;
}
