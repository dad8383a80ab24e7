#include "members.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES_AT_ONCE = 64 << 10 };

char members_problem[MEMBER_PATH + 256];

#define SAY(...) (snprintf(members_problem, sizeof members_problem, __VA_ARGS__), members_problem)

static unsigned number_of(const struct members *members, const struct member *member)
{
    return (unsigned)(member - members->own) + 1;
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The next path of a list, without the marks that keep blanks and commas from ending it. Returns where the one after it
 * begins, NULL when it does not fit. */
static const char *next_word(const char *list, char *path, size_t room)
{
    size_t length = 0;
    while (*list && *list != ',') {
        char c = *list++;
        if (c == '%' && hex(list[0]) >= 0 && hex(list[1]) >= 0) {
            c = (char)(hex(list[0]) * 16 + hex(list[1]));
            list += 2;
        }
        if (length + 1 == room)
            return NULL;
        path[length++] = c;
    }
    path[length] = '\0';
    return *list ? list + 1 : list;
}

static const char *next_path(const char *list, char *path) { return next_word(list, path, MEMBER_PATH); }

void members_word(const char *word, char *text, size_t room)
{
    if (!next_word(word, text, room))
        text[room - 1] = '\0';
}

/* Without O_NONBLOCK the opening of a pipe that nobody writes to would last for ever. */
static const char *open_one(struct member *member, unsigned number)
{
    struct stat about;
    member->fd = open(member->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (member->fd < 0 && errno == ENOENT)
        return SAY("member %u (%s) is missing; give files that are there", number, member->path);
    if (member->fd < 0)
        return SAY("member %u (%s) cannot be read: %s", number, member->path, strerror(errno));
    if (fstat(member->fd, &about) < 0)
        return SAY("member %u (%s) cannot be looked at: %s", number, member->path, strerror(errno));
    member->bytes = (uint64_t)about.st_size;
    member->named = about.st_nlink > 0;
    if (S_ISBLK(about.st_mode) && ioctl(member->fd, BLKGETSIZE64, &member->bytes) < 0)
        return SAY("member %u (%s) does not tell its size: %s", number, member->path, strerror(errno));
    if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
        return SAY("member %u (%s) is neither a file nor a block device; give one that can be read at any place",
                   number, member->path);
    return NULL;
}

const char *members_open(struct members *members, const char *list, size_t count, uint64_t block)
{
    *members = (struct members){.block = block};
    for (size_t i = 0; i < count; i++) {
        struct member *member = &members->own[i];
        *member = (struct member){.fd = -1, .direct = -1};
        members->count++;
        const bool is_there = *list;
        if (!is_there)
            return SAY("files= names %zu files, and members=%zu need as many", i, count);
        list = next_path(list, member->path);
        if (!list)
            return SAY("the path of member %zu is longer than %d bytes", i + 1, MEMBER_PATH - 1);
        const char *why = open_one(member, (unsigned)i + 1);
        if (why)
            return why;
    }
    uint64_t longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = members->own[i].bytes > longest ? members->own[i].bytes : longest;
    for (size_t i = 0; i < count; i++) {
        const struct member *member = &members->own[i];
        if (member->bytes < longest)
            return SAY("member %zu (%s) is short: %llu bytes, where others have %llu; give members of one length",
                       i + 1, member->path, (unsigned long long)member->bytes, (unsigned long long)longest);
        if (member->bytes < block)
            return SAY("member %zu (%s) is short: %llu bytes are less than a block of %llu", i + 1, member->path,
                       (unsigned long long)member->bytes, (unsigned long long)block);
    }
    members->stripes = longest / block;
    return NULL;
}

const char *members_open_beneath(struct members *members, const char *list)
{
    while (*list) {
        char path[MEMBER_PATH];
        list = next_path(list, path);
        if (!list || members->beneath_count == BENEATH)
            return SAY("beneath= names too much: at most %d files with paths below %d bytes", BENEATH, MEMBER_PATH);
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            return SAY("%s, which lies under the RAID, cannot be opened: %s", path, strerror(errno));
        members->beneath[members->beneath_count++] = fd;
    }
    return NULL;
}

void members_close(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = &members->own[i];
        if (member->map)
            munmap(member->map, member->bytes);
        if (member->fd >= 0)
            close(member->fd);
        if (member->direct >= 0)
            close(member->direct);
    }
    for (size_t i = 0; i < members->beneath_count; i++)
        close(members->beneath[i]);
    *members = (struct members){0};
}

const char *members_open_direct(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = &members->own[i];
        if (member->direct < 0)
            member->direct = open(member->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
        if (member->direct < 0)
            return SAY("the file system of member %zu (%s) has no O_DIRECT: %s", i + 1, member->path, strerror(errno));
    }
    return NULL;
}

static const char *length_changed(const struct members *members, const struct member *member, uint64_t now)
{
    return SAY("member %u (%s) %s while it was read: %llu bytes, and %llu before; put it back and begin anew",
               number_of(members, member), member->path, now < member->bytes ? "was truncated" : "grew",
               (unsigned long long)now, (unsigned long long)member->bytes);
}

const char *members_changed(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct stat about;
        const struct member *member = &members->own[i];
        if (fstat(member->fd, &about) < 0 || !S_ISREG(about.st_mode))
            continue;
        if ((uint64_t)about.st_size != member->bytes)
            return length_changed(members, member, (uint64_t)about.st_size);
        if (member->named && !about.st_nlink)
            return SAY("member %u (%s) is missing: it was removed while it was read; put it back and begin anew",
                       number_of(members, member), member->path);
    }
    return NULL;
}

const char *members_read_failed(struct members *members, const struct member *member, uint64_t offset, size_t wanted,
                                long got)
{
    const int error = errno;
    const char *shorter = members_changed(members);
    if (shorter)
        return shorter;
    if (got < 0)
        return SAY("member %u (%s) cannot be read at byte %llu: %s", number_of(members, member), member->path,
                   (unsigned long long)offset, strerror(error));
    return SAY("member %u (%s) gave %ld of %zu bytes at byte %llu, and has %llu", number_of(members, member),
               member->path, got, wanted, (unsigned long long)offset, (unsigned long long)member->bytes);
}

const char *members_fault(struct members *members, const void *address)
{
    const char *shorter = members_changed(members);
    if (shorter)
        return shorter;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->own[i];
        const uintptr_t at = (uintptr_t)address, begin = (uintptr_t)member->map;
        if (member->map && at >= begin && at - begin < member->bytes)
            return SAY("member %zu (%s) cannot be read at byte %llu: SIGBUS from its mapping", i + 1, member->path,
                       (unsigned long long)(at - begin));
    }
    return SAY("SIGBUS at %p, which is no member", address);
}

/* The bytes of a member that some blocks in a row need: from its first to its last of them. */
static bool part_of(const struct members *members, size_t i, uint64_t first, uint64_t count, uint64_t *begin,
                    uint64_t *end)
{
    const uint64_t last = first + count - 1;
    const uint64_t from = first / members->count + (first % members->count > i);
    const uint64_t to = last / members->count + (last % members->count >= i);
    *begin = from * members->block / PAGE * PAGE;
    *end = to * members->block;
    return *begin < *end;
}

const char *members_with_holes(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->own[i];
        const off_t hole = lseek(member->fd, 0, SEEK_HOLE);
        if (hole >= 0 && (uint64_t)hole < member->bytes)
            return SAY("member %zu (%s) has a hole at byte %llu: no device is read for it; give one written whole",
                       i + 1, member->path, (unsigned long long)hole);
    }
    return NULL;
}

/* The page cache may keep a file in folios of up to 2 MiB, and one that is to go in part stays whole. */
void members_drop(struct members *members, uint64_t first, uint64_t count)
{
    const uint64_t folio = 2 << 20;
    uint64_t begin, end;
    for (size_t i = 0; i < members->count; i++)
        if (part_of(members, i, first, count, &begin, &end)) {
            begin = begin / folio * folio;
            end = (end + folio - 1) / folio * folio;
            posix_fadvise(members->own[i].fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
        }
    for (size_t i = 0; i < members->beneath_count; i++)
        posix_fadvise(members->beneath[i], 0, 0, POSIX_FADV_DONTNEED);
}

/* To whoever may only read a file of somebody else the kernel says that all of it is cached. */
static bool may_be_asked(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 && (geteuid() == 0 || about.st_uid == geteuid());
}

static bool count_cached(int fd, uint64_t begin, uint64_t end, uint64_t *cached, uint64_t *pages)
{
    static unsigned char told[PAGES_AT_ONCE];
    if (!may_be_asked(fd))
        return false;
    while (begin < end) {
        uint64_t n = end - begin;
        n = n > (uint64_t)PAGES_AT_ONCE * PAGE ? (uint64_t)PAGES_AT_ONCE * PAGE : n;
        void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, (off_t)begin);
        if (map == MAP_FAILED)
            return false;
        const bool known = mincore(map, n, told) == 0;
        munmap(map, n);
        if (!known)
            return false;
        for (uint64_t i = 0; i < (n + PAGE - 1) / PAGE; i++)
            *cached += told[i] & 1;
        *pages += (n + PAGE - 1) / PAGE;
        begin += n;
    }
    return true;
}

double members_cached(struct members *members, uint64_t first, uint64_t count)
{
    uint64_t begin, end, cached = 0, pages = 0;
    for (size_t i = 0; i < members->count; i++)
        if (part_of(members, i, first, count, &begin, &end) &&
            !count_cached(members->own[i].fd, begin, end, &cached, &pages))
            return NAN;
    for (size_t i = 0; i < members->beneath_count; i++) {
        struct stat about;
        if (fstat(members->beneath[i], &about) < 0)
            return NAN;
        uint64_t own = 0, other = 0;
        if (about.st_size && !count_cached(members->beneath[i], 0, (uint64_t)about.st_size, &own, &other))
            return NAN;
        cached += own; /* beneath, none at all may be: what is there would serve the RAID's reads */
    }
    return pages ? fmin((double)cached / (double)pages, 1) : NAN;
}

double members_cool(struct members *members, uint64_t first, uint64_t count)
{
    enum { TRIES = 50, TRY_US = 1000 };
    double cached;
    for (int tried = 0;; tried++) {
        members_drop(members, first, count);
        cached = members_cached(members, first, count);
        if (!(cached > 0) || tried == TRIES)
            return cached;
        usleep(TRY_US);
    }
}
