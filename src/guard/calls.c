/* The way without signals: the kernel copies, and says EFAULT where a load or a store of ours would fault.
 *
 * process_vm_readv on this very process, or a pipe where a sandbox forbids that. Both are used on pieces that cross no
 * page on either side: such a piece is done whole or not at all, so the count is exact. A pipe is made for each call:
 * one that is kept would be shared with children, and with other threads.
 *
 * process_vm_readv stores into dst as the program would, but looks src up in the tables of a process that may be
 * another, and refuses some memory that a load reads: mapped for writing only, of a device, of memfd_secret. For such a
 * source process_vm_writev, which looks up the other side, brings it to the stack first. So it does small sources where
 * there are protection keys: what denies them to a thread is a register, which counts for its own loads alone. Of large
 * ones it brings a byte of each page, and process_vm_readv the rest; a key that denies a page only between the two is
 * seen too late.
 */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>

#include "guard/guard.h"
#include "guard/kernel.h"

enum { PAGE = 4096, BOUNCE = 1024 };
static const size_t LONGEST = (size_t)1 << 30; /* the kernel takes less than 2 GiB at a time */

enum side { SIDE_NONE, SIDE_SOURCE, SIDE_DESTINATION };

struct way {
    bool pipe;
    bool keys;   /* the source may be denied by a protection key */
    int ends[2]; /* -1: not open */
    int error;   /* EFAULT, or why there is no way */
    enum side side;
};

/* Bytes from here to the end of the page. */
static size_t rest_of_page(const void *p) { return PAGE - ((uintptr_t)p & (PAGE - 1)); }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* This process is asked for at each call, since a child after fork is another. Where its first thread has ended it has
 * no memory by its own number, but by that of any other thread. */
static long vm_call(long number, const struct iovec *own, size_t count, const struct iovec *looked_up)
{
    const long process = kernel_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long done = kernel_call(number, process, (long)own, (long)count, (long)looked_up, 1, 0);
    if (done != -ESRCH)
        return done;
    const long thread = kernel_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    return kernel_call(number, thread, (long)own, (long)count, (long)looked_up, 1, 0);
}

static long vm_read(void *dst, const void *src, size_t n)
{
    const struct iovec to = {dst, n}, from = {(void *)src, n};
    return vm_call(SYS_process_vm_readv, &to, 1, &from);
}

static long vm_write(void *dst, const void *src, size_t n)
{
    const struct iovec to = {dst, n}, from = {(void *)src, n};
    return vm_call(SYS_process_vm_writev, &from, 1, &to);
}

/* May there be protection keys? Not what they deny now: Linux denies all but one from the start. CPUID is slow under a
 * hypervisor, so it is asked once. */
static bool has_keys(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int known;
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now == UNKNOWN) {
        unsigned eax, ebx, ecx = 0, edx;
        now = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ecx & bit_OSPKE ? YES : NO;
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == YES;
}

/* Can a load read this page? The kernel reads the set of signals before it refuses what to do with it. */
static bool readable(const void *src)
{
    const int no_such_way = 99;
    const long set = (long)((uintptr_t)src & ~(uintptr_t)(sizeof(uint64_t) - 1));
    return kernel_call(SYS_rt_sigprocmask, no_such_way, set, 0, sizeof(uint64_t), 0, 0) == -EINVAL;
}

/* How many of n bytes loads can read, one of each page tried: an error, negative, when not the first, or when a sandbox
 * forbids the call. */
static long readable_pages(const char *src, size_t n)
{
    enum { PAGES = 64 };
    char tried[PAGES];
    struct iovec each[PAGES];
    size_t count = 0, at = 0;
    for (; at < n && count < PAGES; at += rest_of_page(src + at))
        each[count++] = (struct iovec){(void *)(src + at), 1};
    const struct iovec to = {tried, count};
    const long there = vm_call(SYS_process_vm_writev, each, count, &to);
    if (there <= 0)
        return there;
    return (long)((size_t)there == count ? least(at, n) : rest_of_page(src) + (size_t)(there - 1) * PAGE);
}

/* As many bytes as go at once. Returns how many, or an error, negative. */
static long vm_copy(const struct way *way, void *dst, const void *src, size_t n)
{
    char bounce[BOUNCE];
    if (!way->keys)
        return vm_read(dst, src, least(n, LONGEST));
    const long there = n > BOUNCE ? readable_pages(src, n) : vm_write(bounce, src, n);
    if (there > 0)
        return vm_read(dst, n > BOUNCE ? src : bounce, (size_t)there);
    if (there == -EFAULT)
        return there;
    return readable(src) ? vm_read(dst, src, least(n, rest_of_page(src))) : -EFAULT;
}

/* A piece that vm_copy has refused. */
static bool piece_by_way_of_the_stack(struct way *way, char *dst, const char *src, size_t n)
{
    char bounce[BOUNCE];
    way->error = EFAULT;
    for (size_t done = 0; done < n;) {
        const size_t some = least(n - done, BOUNCE);
        /* Where a sandbox forbids the other call what can be looked up has to do. */
        const long result = vm_write(bounce, src + done, some);
        if (result != (long)some && (result == -EFAULT || (way->keys && !readable(src + done)) ||
                                     vm_read(bounce, src + done, some) != (long)some)) {
            way->side = SIDE_SOURCE;
            return false;
        }
        if (vm_read(dst + done, bounce, some) != (long)some) {
            way->side = SIDE_DESTINATION;
            return false;
        }
        done += some;
    }
    return true;
}

static bool way_pipe(struct way *way)
{
    way->pipe = true;
    if (way->ends[0] >= 0)
        return true;
    long error = kernel_call(SYS_pipe2, (long)way->ends, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0);
    if (error == 0)
        return true;
    way->ends[0] = way->ends[1] = -1;
    way->error = (int)-error;
    return false;
}

static void way_end(struct way *way)
{
    if (way->ends[0] < 0)
        return;
    kernel_call(SYS_close, way->ends[0], 0, 0, 0, 0, 0);
    kernel_call(SYS_close, way->ends[1], 0, 0, 0, 0, 0);
    way->ends[0] = way->ends[1] = -1;
}

static long again(long number, int fd, const void *at, size_t n)
{
    long result;
    do
        result = kernel_call(number, fd, (long)at, (long)n, 0, 0, 0);
    while (result == -EINTR);
    return result;
}

/* Copies a piece that crosses no page on either side. */
static bool piece(struct way *way, void *dst, const void *src, size_t n)
{
    if (!way->pipe) {
        const long result = vm_copy(way, dst, src, n);
        if (result == (long)n)
            return true;
        if (result == -EFAULT || result >= 0)
            return piece_by_way_of_the_stack(way, dst, src, n);
    }
    if (!way_pipe(way))
        return false;
    long result = again(SYS_write, way->ends[1], src, n);
    if (result == (long)n) {
        result = again(SYS_read, way->ends[0], dst, n);
        if (result == (long)n)
            return true;
        way->side = SIDE_DESTINATION;
    } else {
        way->side = SIDE_SOURCE;
        /* An empty pipe has nothing to read; where a sandbox forbids even to ask there is no way at all. */
        char none = 0;
        const long empty = result == -EFAULT ? again(SYS_read, way->ends[0], &none, 1) : -EAGAIN;
        result = empty == -EAGAIN ? result : empty;
    }
    way->error = result < 0 ? (int)-result : EFAULT;
    way_end(way); /* what it still holds belongs to nobody */
    return false;
}

static size_t tell(struct way *way, struct wherry_fault *fault, void *dst, const void *src, size_t done, size_t n)
{
    way_end(way);
    if (done < n && fault) {
        const bool writing = way->side == SIDE_DESTINATION;
        fault->addr = (void *)(writing ? (uintptr_t)dst + done : (uintptr_t)src + done);
        fault->signo = 0;
        fault->code = way->error;
        fault->writing = writing;
    }
    return n - done;
}

/* Both sides apart. Returns how many bytes were copied. */
static size_t forward(struct way *way, char *dst, const char *src, size_t n)
{
    size_t done = 0;
    while (done < n) {
        if (!way->pipe) {
            const long result = vm_copy(way, dst + done, src + done, n - done);
            done += result > 0 ? (size_t)result : 0;
            if (result > 0)
                continue;
        }
        const size_t some = least(n - done, least(rest_of_page(dst + done), rest_of_page(src + done)));
        if (!piece(way, dst + done, src + done, some))
            break;
        done += some;
    }
    return done;
}

/* How many bytes of both sides are there; nothing is changed. */
static size_t accessible(struct way *way, char *dst, const char *src, size_t n)
{
    size_t at = 0;
    char byte;
    while (at < n) {
        if (!piece(way, &byte, src + at, 1))
            break;
        if (!piece(way, dst + at, dst + at, 1)) {
            way->side = SIDE_DESTINATION;
            break;
        }
        at += least(rest_of_page(dst + at), rest_of_page(src + at));
    }
    return least(at, n);
}

/* Both sides overlap: in the direction that reads before it overwrites, in steps as long as the sides are apart, or by
 * way of a buffer where they nearly coincide. Backward everything has to be there first; what disappears meanwhile
 * leaves nothing sure. */
static size_t overlapping(struct way *way, char *dst, const char *src, size_t n)
{
    char bounce[BOUNCE];
    const bool backward = (uintptr_t)dst > (uintptr_t)src;
    const size_t distance = backward ? (size_t)(dst - src) : (size_t)(src - dst);
    const size_t there = backward ? accessible(way, dst, src, n) : n;
    struct way found = *way;
    for (size_t done = 0; done < there && distance >= BOUNCE;) {
        const size_t some = least(there - done, distance), at = backward ? there - done - some : done;
        const size_t copied = forward(way, dst + at, src + at, some);
        done += copied;
        if (copied != some)
            return backward ? 0 : done;
    }
    for (size_t done = 0; done < there && distance < BOUNCE;) {
        size_t some, at;
        if (backward) {
            const size_t left = there - done;
            some = least(least(left, BOUNCE), least((((uintptr_t)dst + left - 1) & (PAGE - 1)) + 1,
                                                    (((uintptr_t)src + left - 1) & (PAGE - 1)) + 1));
            at = left - some;
        } else {
            at = done;
            some = least(least(there - at, BOUNCE), least(rest_of_page(dst + at), rest_of_page(src + at)));
        }
        if (forward(way, bounce, src + at, some) != some) {
            way->side = SIDE_SOURCE;
            return backward ? 0 : done;
        }
        if (forward(way, dst + at, bounce, some) != some) {
            way->side = SIDE_DESTINATION;
            return backward ? 0 : done;
        }
        done += some;
    }
    way->error = found.error;
    way->side = found.side;
    return there;
}

size_t wherry_guard_copy_by_calls(void *dst, const void *src, size_t n, struct wherry_fault *fault)
{
    struct way way = {.keys = has_keys(), .ends = {-1, -1}};
    const uintptr_t ahead = (uintptr_t)dst - (uintptr_t)src;
    const bool apart = ahead >= n && -ahead >= n;
    size_t done = apart ? forward(&way, dst, src, n) : overlapping(&way, dst, src, n);
    return tell(&way, fault, dst, src, done, n);
}

size_t wherry_guard_set_by_calls(void *dst, int c, size_t n, struct wherry_fault *fault)
{
    struct way way = {.ends = {-1, -1}};
    char filled[BOUNCE];
    for (size_t i = 0; i < BOUNCE; i++)
        ((volatile char *)filled)[i] = (char)c;
    size_t done = 0;
    while (done < n) {
        char *to = (char *)dst + done;
        const size_t some = least(least(n - done, BOUNCE), rest_of_page(to));
        if (forward(&way, to, filled, some) != some)
            break;
        done += some;
    }
    way.side = SIDE_DESTINATION;
    return tell(&way, fault, dst, dst, done, n);
}

enum wherry_nofault_path wherry_guard_calls_allowed(int *error)
{
    struct way way = {.ends = {-1, -1}};
    char from = 1, to = 0;
    if (vm_read(&to, &from, 1) == 1)
        return WHERRY_NOFAULT_BY_VM;
    const bool by_pipe = way_pipe(&way) && piece(&way, &to, &from, 1);
    way_end(&way);
    *error = by_pipe ? 0 : way.error;
    return by_pipe ? WHERRY_NOFAULT_BY_PIPE : WHERRY_NOFAULT_BY_NOTHING;
}
