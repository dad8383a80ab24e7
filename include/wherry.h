/* Wherry: memory routines at the limit of the machine.
 *
 * SPDX-License-Identifier: MIT
 *
 * All sizes and offsets are in bytes. No function sets errno, allocates or uses thread-local storage; all are safe to
 * call from any thread, and all but wherry_nofault_init, which waits for another thread that is in it, take no lock and
 * are async-signal-safe. They need nothing set up first. Pointers may be anything, NULL included, when n is 0;
 * otherwise [dst, dst + n) must be writable and [src, src + n) readable, and nothing outside these is read or written.
 * From 48 KiB on, or from where a plan has them go past the caches, some words of dst may be read before they are
 * written; with AVX-512 now and then a byte of a small one, and the time-stamp counter: where that is forbidden
 * (PR_SET_TSC; seccomp's strict mode forbids it, too) copies and sets end the process, unless a plan has chosen another
 * tier than "avx512". Which routine serves a call depends on the CPU (see wherry_isa).
 */
#ifndef WHERRY_H
#define WHERRY_H

/* First: the headers of libc for another machine may be missing, and the compiler would speak of those instead. */
#if !defined(__x86_64__) || defined(__ILP32__) || !defined(__linux__)
#error "Wherry is for x86-64 Linux with pointers of 64 bits"
#endif

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions" /* bool, in C89 */
#endif
#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"         /* a struct and a function of one name */
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif
extern "C" {
#endif

/* Copies n bytes from src to dst. Also right when the two overlap. Returns dst. After ISO C memcpy. */
void *wherry_memcpy(void *dst, const void *src, size_t n);

/* Copies n bytes from src to dst, which may overlap in any way. Returns dst. After ISO C memmove. */
void *wherry_memmove(void *dst, const void *src, size_t n);

/* Copies n bytes from src to dst, which may overlap. Returns dst + n. After GNU mempcpy. */
void *wherry_mempcpy(void *dst, const void *src, size_t n);

/* Sets n bytes at dst to (unsigned char)c. Returns dst. After ISO C memset. */
void *wherry_memset(void *dst, int c, size_t n);

/* Copies n bytes from src to dst, which may overlap. Mind the order of the arguments. After 4.3BSD bcopy. */
void wherry_bcopy(const void *src, void *dst, size_t n);

/* Sets n bytes at dst to zero. After 4.3BSD bzero. */
void wherry_bzero(void *dst, size_t n);

/* Past the caches: whole lines of the destination are written without being read first, and neither they nor what they
 * would have driven out changes places in the caches; the source is loaded as usual. Worth it for much memory that
 * nobody reads soon; whoever reads it then fetches it from memory. docs/streaming.md has the rule with its figures;
 * wherry_memcpy and wherry_memset go this way by themselves from most of the last-level cache on, on a Zen 3 and 4 from
 * 1 MiB on where no large call touched dst lately. They end with a fence (sfence), also when n is 0: what the caller
 * stores afterwards is not seen before these bytes. */

/* Copies n bytes from src to dst, which must not overlap. Returns dst. */
void *wherry_memcpy_stream(void *dst, const void *src, size_t n);

/* Sets n bytes at dst to (unsigned char)c. Returns dst. */
void *wherry_memset_stream(void *dst, int c, size_t n);

/* Are all n bytes at p zero? True when n is 0. Reads no further than the first of them that is not, give or take 256
 * bytes of the n. */
bool wherry_iszero(const void *p, size_t n);

/* Sets n bytes at page to zero, and writes only the 64-byte lines that are not zero already (of one that the buffer
 * shares with others only the bytes of the buffer count, and only they are written). So memory that is zero need not be
 * writable, stays clean, and stays shared where it is. Any address and n. After pagezero of FreeBSD/i386. */
void wherry_pagezero(void *page, size_t n);

/* The checksum of IP, TCP and UDP (RFC 1071), as Linux csum_partial has it. A sum is 32 bits that stand for the 16-bit
 * sum in ones' complement of the bytes taken two at a time, an odd last one with a zero after it; which 32 bits is not
 * promised, what they fold to is. Words are summed as they lie in memory, so that the folded sum belongs into a packet
 * as it is. Addresses and n may be odd. */

/* Adds n bytes at src to sum (0, or what an earlier call returned for an even number of bytes before these). */
uint32_t wherry_csum_partial(const void *src, size_t n, uint32_t sum);

/* The same, and copies the n bytes to dst, which must not overlap, in one pass. The sum is that of dst, also where
 * somebody else changes src during the call. After Linux csum_partial_copy. */
uint32_t wherry_csum_partial_copy(void *dst, const void *src, size_t n, uint32_t sum);

/* The checksum to put into a packet: sum folded to 16 bits and complemented. Over a packet that holds a right one it is
 * 0. UDP alone sends 0xffff in the place of 0, which says there that there is none. After Linux csum_fold. */
uint16_t wherry_csum_fold(uint32_t sum);

/* Adds the sum of a block, made with sum 0, to the sum of the offset bytes before it; offset may be odd. After Linux
 * csum_block_add. */
uint32_t wherry_csum_block_add(uint32_t sum, uint32_t block, size_t offset);

/* CRC-32C (Castagnoli; iSCSI, SCTP, Btrfs) of n bytes at src; crc is 0, or the result for the bytes before these. It is
 * complemented on the way in and out, as zlib's crc32 is; Linux crc32c is not, so crc32c(seed, ...), as ext4 has it, is
 * ~wherry_crc32c(~seed, ...). */
uint32_t wherry_crc32c(uint32_t crc, const void *src, size_t n);

/* The same, and copies the n bytes to dst, which must not overlap, in one pass. The CRC is that of dst, also where
 * somebody else changes src during the call. */
uint32_t wherry_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* Copies that survive memory that is not there: a mapped file that was truncated meanwhile, an address from elsewhere.
 *
 * Where a load or a store of theirs raises SIGSEGV or SIGBUS they stop and return how many bytes were NOT copied, 0
 * when all were. The first n - result bytes of dst then equal those of src, up to the very byte before the first that
 * could not be read or written, and nothing past them has been changed. Any pointers will do, non-canonical ones too,
 * and any n. The two may overlap; the same then holds as if src had been copied away first. Only when a page becomes
 * inaccessible during the call can less hold: up to 4096 bytes of dst past them may have changed, none outside it; of
 * overlapping buffers with dst above src n is returned, and any bytes of dst may have changed.
 *
 * To be as fast as memcpy they need wherry_nofault_init. Without it, and where another handler has SIGSEGV or SIGBUS,
 * they go by system calls, right but slow. SIGSEGV and SIGBUS must not be blocked in the calling thread: a fault would
 * kill the process, as any fault does then. They are async-signal-safe, also inside a handler of these signals that has
 * SA_NODEFER.
 */

/* What stopped a copy. Written only when the result is not 0. */
struct wherry_fault {
    void *addr;   /* the first byte that could not be read or written */
    int signo;    /* SIGSEGV or SIGBUS; 0: found by a system call */
    int code;     /* si_code of the signal; after a system call its errno value, EFAULT where memory was missing */
    bool writing; /* the destination was at fault, not the source; the source, where both were at the same byte */
};

/* Copies n bytes from src to dst. fault may be NULL. Returns the bytes not copied. After Linux raw_copy_from_user. */
size_t wherry_copy_nofault(void *dst, const void *src, size_t n, struct wherry_fault *fault);

/* The same, and sets the bytes of dst that were not copied to zero, up to the first that cannot be written; none by
 * WHERRY_NOFAULT_BY_NOTHING, where fault->code is not EFAULT. After Linux copy_from_user. */
size_t wherry_copy_nofault_zero(void *dst, const void *src, size_t n, struct wherry_fault *fault);

/* Sets n bytes at dst to (unsigned char)c. Returns the bytes not set. After Linux clear_user. */
size_t wherry_set_nofault(void *dst, int c, size_t n, struct wherry_fault *fault);

/* Copies as wherry_copy_nofault does and adds the sum of exactly the bytes that were copied, those of dst, to *sum (0,
 * or that of an even number of bytes before these; where an odd number was copied what goes on there is a block for
 * wherry_csum_block_add). Returns the number of bytes not copied. */
size_t wherry_csum_copy_nofault(void *dst, const void *src, size_t n, uint32_t *sum, struct wherry_fault *fault);

/* Installs handlers of SIGSEGV and SIGBUS, before those in force, to which everything goes that is not a fault of these
 * copies. To be called once, early, and again when another handler was installed later; calls of it when all is well
 * change nothing. From any thread, not from a signal handler. Returns 0, or an errno value: ENOSPC after sixteen
 * different handlers, whatever their flags and masks, of which those of another copy of this library that takes its
 * turn anew are one each time; EPERM, say, where a sandbox forbids rt_sigaction and these handlers were not in force
 * when it was entered. */
int wherry_nofault_init(void);

/* For programs that own SIGSEGV and SIGBUS themselves: says that the handlers in force call wherry_nofault_handle.
 * Installs nothing. Returns 0, or an errno value: EINVAL when a signal has no handler, or one with SA_RESETHAND, which
 * would be gone after the first fault, or without SA_SIGINFO, which is not told of what; EPERM, say, where a sandbox
 * forbids rt_sigaction and it was never known who has them. */
int wherry_nofault_init_hosted(void);

/* From a handler of SIGSEGV or SIGBUS (with SA_SIGINFO), with its three arguments: is this a fault of one of these
 * copies? Then the copy goes on when the handler returns. Else false, and nothing was done; so where info or ucontext
 * is NULL. */
#ifdef SI_USER /* signal.h has it where it has siginfo_t, whatever feature macros say by now */
bool wherry_nofault_handle(int signo, siginfo_t *info, void *ucontext);
#else /* strict ISO C has no siginfo_t, nor had POSIX before 1993 */
bool wherry_nofault_handle(int signo, void *info, void *ucontext);
#endif

enum wherry_nofault_path {
    WHERRY_NOFAULT_BY_TABLE,  /* loads and stores, as fast as memcpy */
    WHERRY_NOFAULT_BY_VM,     /* process_vm_readv */
    WHERRY_NOFAULT_BY_PIPE,   /* a pipe, where the sandbox forbids that */
    WHERRY_NOFAULT_BY_NOTHING /* neither can be had: nothing is copied or set, and the fault's code tells the error */
};

enum wherry_nofault_owner {
    WHERRY_NOFAULT_OURS,    /* this library's handler */
    WHERRY_NOFAULT_HOST,    /* one that calls wherry_nofault_handle: it has, or wherry_nofault_init_hosted said so */
    WHERRY_NOFAULT_NOBODY,  /* the default action, or ignored */
    WHERRY_NOFAULT_SOMEBODY /* any other, or unknown */
};

struct wherry_nofault_status {
    enum wherry_nofault_path path; /* which calls take from now on, in every thread */
    enum wherry_nofault_owner sigsegv, sigbus;
    bool initialised;
    bool sigsegv_blocked, sigbus_blocked;   /* in the calling thread */
    void *sigsegv_handler, *sigbus_handler; /* addresses of the handlers in force */
    const char *message;                    /* the same in a sentence, and what to do; a static string */
};

/* Asks the kernel who owns SIGSEGV and SIGBUS now, and has calls take the path that fits. To be called after anything
 * that may install handlers; status may be NULL. In a sandbox that forbids rt_sigaction, where nobody can install any,
 * they are taken to be as when the kernel was last asked; where it never answered, WHERRY_NOFAULT_SOMEBODY. Returns 0.
 */
int wherry_nofault_status(struct wherry_nofault_status *status);

/* Packets in buffers with room to spare. Copies n bytes from src to dst, inline and in whole lines of 64 bytes: one up
 * to 64 bytes, four up to 256, so that sizes which nobody can predict seldom cost a wrong guess of a branch. dst_cap
 * and src_cap say how many bytes lie at dst and src, of which up to the smaller may be written and read: bytes of dst
 * from n on may hold anything afterwards. Where a capacity leaves no room for whole lines, and above 256 bytes, it is
 * wherry_memcpy, exact, and for a size to 128 that the compiler knows its own memcpy of that size. n must not be above
 * a capacity, and the two capacities must not overlap. Returns dst. After Rizzo's pkt_copy of netmap.
 *
 * The lines move by vectors of 32 bytes where the compiler may use them (-mavx, -mavx512f); with SSE2 alone it is one
 * line to 64 bytes, and wherry_memcpy above. In code compiled with -fsanitize=address, hwaddress, memory or thread, or
 * with WHERRY_EXACT defined (for Valgrind, say), it is an exact memcpy that the tool sees; by a compiler without the
 * vectors of GCC and clang it is wherry_memcpy. */
#if defined(WHERRY_EXACT) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_HWADDRESS__) ||                       \
    defined(__SANITIZE_THREAD__)
#define WHERRY_COPY_PADDED_EXACT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(hwaddress_sanitizer) || __has_feature(memory_sanitizer) ||       \
    __has_feature(thread_sanitizer)
#define WHERRY_COPY_PADDED_EXACT 1
#endif
#endif

#ifdef WHERRY_COPY_PADDED_EXACT
static __inline__ void *wherry_copy_padded(void *dst, size_t dst_cap, const void *src, size_t src_cap, size_t n)
{
    (void)dst_cap;
    (void)src_cap;
    return n > 0 ? __builtin_memcpy(dst, src, n) : dst;
}
#else
/* Not 64 with AVX-512 either: packets seldom begin at a line, and a block across two takes two stores. */
#if defined(__AVX__)
enum { WHERRY_PADDED_BLOCK = 32 };
#else
enum { WHERRY_PADDED_BLOCK = 16 };
#endif
typedef int64_t wherry_padded_block
    __attribute__((__vector_size__(WHERRY_PADDED_BLOCK), __aligned__(1), __may_alias__));

static __inline__ __attribute__((__always_inline__)) void wherry_padded_line(void *dst, const void *src)
{
    wherry_padded_block *to = (wherry_padded_block *)dst;
    const wherry_padded_block *from = (const wherry_padded_block *)src;
    const wherry_padded_block first = from[0];
    if (WHERRY_PADDED_BLOCK == 32) {
        const wherry_padded_block second = from[1];
        to[0] = first;
        to[1] = second;
    } else {
        const wherry_padded_block second = from[1], third = from[2], fourth = from[3];
        to[0] = first;
        to[1] = second;
        to[2] = third;
        to[3] = fourth;
    }
}

/* For the compiler alone: n has been compared with the room already. */
#define WHERRY_PADDED_MAY_HOLD(room, bytes) (!__builtin_constant_p(room) || (room) >= (bytes))

static __inline__ void *wherry_copy_padded(void *dst, size_t dst_cap, const void *src, size_t src_cap, size_t n)
{
    const size_t room = dst_cap < src_cap ? dst_cap : src_cap;
    char *to = (char *)dst;
    const char *from = (const char *)src;
    /* From two lines of the smallest blocks on a call costs no more, since the library has wider ones. */
    const size_t most = WHERRY_PADDED_BLOCK > 16 ? 256 : 64;
    if (sizeof(wherry_padded_block) != WHERRY_PADDED_BLOCK) /* a compiler that passes over the attribute: tcc, pcc */
        return wherry_memcpy(dst, src, n);
#if !defined(__OPTIMIZE_SIZE__) /* where it may be a string instruction */
    /* As many stores as such a size needs, where one that is not known takes four or eight. */
    if (__builtin_constant_p(n) && n > 0 && n <= 128)
        return __builtin_memcpy(dst, src, n);
#endif
    /* Of 0 bytes too: then neither need point to anything. One comparison tells it together with n > most. */
    if (n == 0 || n > most || ((n + 63) & ~(size_t)63) > room)
        return wherry_memcpy(dst, src, n);
    if (most == 64 || room >= most) { /* 64: there is room for the one line that n takes */
        wherry_padded_line(to, from);
        if (n > 64) {
            wherry_padded_line(to + 64, from + 64);
            wherry_padded_line(to + 128, from + 128);
            wherry_padded_line(to + 192, from + 192);
        }
        return dst;
    }
    /* Three lines at most, since four had room. No loop: GCC unrolls it past a room that it knows, and warns. */
    wherry_padded_line(to, from);
    if (n > 64 && WHERRY_PADDED_MAY_HOLD(room, 128))
        wherry_padded_line(to + 64, from + 64);
    if (n > 128 && WHERRY_PADDED_MAY_HOLD(room, 192))
        wherry_padded_line(to + 128, from + 128);
    return dst;
}
#endif

/* Plans: by which method the calls above copy and set each size. The default is made for this CPU; another, made by
 * `wherry tune` or by hand and compiled by `wherry plan compile`, is put in force by the environment variable
 * WHERRY_PLAN when the library is loaded (never in a set-user-ID program), or here.
 *
 * Puts the compiled plan at path in force, or the default again when path is NULL. Returns 0, or an errno value, and
 * then the plan in force stays: EINVAL when it is no plan, cut short, damaged, or absurd; EOPNOTSUPP when its format is
 * another; ENODEV when it is for another CPU; EBUSY when another thread is loading one, or this one, which a signal
 * interrupted; that of open() or read() else. Other threads may copy meanwhile: each of their calls is right, by the
 * old plan, the new one or something between. */
int wherry_plan_load(const char *path);

/* One line that tells which plan is in force and from where, or why one was not used. The string stays as it is until
 * the next load but one. */
const char *wherry_plan_status(void);

/* The version of the library, "MAJOR.MINOR.PATCH"; a static string. */
const char *wherry_version(void);

/* The instruction-set tier that serves the calls above on this CPU: "sse2", "avx2" or "avx512", by a plan also
 * "avx512_ladder" or "avx512_together"; a static string. */
const char *wherry_isa(void);

#ifdef __cplusplus
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#elif defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif
