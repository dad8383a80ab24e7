/* wherry-run hold: makes the scratch of the experiment stripes, says where it is, and keeps it until its standard input
 * ends. What it makes has no name and no place in the tree of files, so that the kernel takes all of it down when this
 * process ends, also by SIGKILL. */
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "commands.h"
#include "content.h"
#include "json.h"
#include "members.h"
#include "unnamed.h"

enum { CHUNK = 1 << 20, TOLD_EVERY = 32 << 20 };

char hold_problem[1024];

static uint64_t written, told; /* over all files */

int hold_file(const char *directory)
{
    const int fd = unnamed_file(directory);
    if (fd < 0)
        snprintf(hold_problem, sizeof hold_problem, "no file can be made in %s: %s", directory, strerror(errno));
    return fd;
}

static int write_all(int fd, const unsigned char *from, size_t n, uint64_t offset)
{
    while (n) {
        const ssize_t done = pwrite(fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        from += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int hold_reserve(int fd, uint64_t bytes)
{
    const int error = posix_fallocate(fd, 0, (off_t)bytes);
    if (!error || error == EOPNOTSUPP || error == EINVAL)
        return 0;
    snprintf(hold_problem, sizeof hold_problem, "no room for scratch of %llu bytes: %s", (unsigned long long)bytes,
             strerror(error));
    return -1;
}

int hold_fill(int fd, uint64_t seed, unsigned file, uint64_t bytes)
{
    static _Alignas(4096) unsigned char chunk[CHUNK];
    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        const size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        content_fill(seed, file, at, chunk, n);
        if (write_all(fd, chunk, n, at) < 0) {
            snprintf(hold_problem, sizeof hold_problem, "scratch cannot be written: %s", strerror(errno));
            return -1;
        }
        written += n;
        if (written - told >= TOLD_EVERY) {
            told = written;
            json_begin("written");
            json_uint("bytes", written);
            json_end();
        }
    }
    if (fsync(fd) < 0) {
        snprintf(hold_problem, sizeof hold_problem, "scratch cannot be written: %s", strerror(errno));
        return -1;
    }
    return 0;
}

static void put_path(const char *key, int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    json_string(key, path);
}

static void put_files(const char *key, const int *files, size_t count)
{
    json_open_array(key);
    for (size_t i = 0; i < count; i++)
        put_path(NULL, files[i]);
    json_close_array();
}

static int failed(const char *why)
{
    misuse("hold: %s", why);
    return EXIT_FAILED;
}

static bool number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *value >= low && *value <= high;
}

static int help(void)
{
    puts(
        "usage: wherry-run hold --directory DIR [--members N] [--bytes N] [--seed N] [--raid-bytes N] [--md-bytes "
        "N]\n\n"
        "Makes files without a name for op=stripes of wherry-run system, says where they are as JSON lines, and keeps\n"
        "them until its standard input ends. However it ends, nothing is left behind.\n\n"
        "  --directory DIR   where the files lie\n"
        "  --members N       so many, 0 to 9 (9)\n"
        "  --bytes N         length of each, a multiple of 1 MiB (16 MiB)\n"
        "  --seed N          of what they hold (1)\n"
        "  --raid-bytes N    also a btrfs RAID-0 over nine loop devices with a file of so many bytes, likewise\n"
        "  --md-bytes N      also an md RAID-0 of so many bytes over nine more, likewise\n\n"
        "Example: wherry-run hold --directory /var/tmp --bytes 67108864");
    return EXIT_OK;
}

static void put_raid(const char *kind, const struct raid *raid, const char *why)
{
    json_begin("raid");
    json_string("kind", kind);
    json_string("reason", why);
    if (!why) {
        put_path("file", raid->file);
        put_files("beneath", raid->backing, RAID_MEMBERS);
        json_uint("bytes", raid->bytes);
    }
    json_end();
}

static int hold(const char *directory, uint64_t members, uint64_t bytes, uint64_t seed, uint64_t raid_bytes,
                uint64_t md_bytes)
{
    int files[MEMBERS];
    for (uint64_t i = 0; i < members; i++)
        if ((files[i] = hold_file(directory)) < 0 || hold_reserve(files[i], bytes) < 0 ||
            hold_fill(files[i], seed, (unsigned)i, bytes) < 0)
            return failed(hold_problem);
    json_begin("files");
    put_files("files", files, members);
    json_uint("bytes", bytes);
    json_uint("seed", seed);
    json_end();
    struct raid raid, md;
    raid_clear(&raid);
    raid_clear(&md);
    if (raid_bytes)
        put_raid("btrfs", &raid, raid_begin(&raid, directory, seed, raid_bytes));
    if (md_bytes)
        put_raid("md", &md, md_begin(&md, directory, seed, md_bytes));
    json_begin("ready");
    json_end();
    char byte;
    ssize_t got;
    while ((got = read(STDIN_FILENO, &byte, 1)) > 0 || (got < 0 && errno == EINTR))
        ;
    md_end(&md);
    raid_end(&raid);
    return EXIT_OK;
}

int command_hold(int argc, char **argv)
{
    const char *directory = NULL;
    uint64_t members = MEMBERS, bytes = 16 << 20, seed = 1, raid_bytes = 0, md_bytes = 0;
    const struct {
        const char *name;
        uint64_t *value, low, high;
    } numbers[] = {{"--members", &members, 0, MEMBERS},
                   {"--bytes", &bytes, CHUNK, (uint64_t)1 << 40},
                   {"--seed", &seed, 1, INT64_MAX},
                   {"--raid-bytes", &raid_bytes, CHUNK, (uint64_t)1 << 40},
                   {"--md-bytes", &md_bytes, CHUNK, (uint64_t)1 << 40}};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help();
        size_t at = 0;
        while (at < NUMBERS && strcmp(argv[i], numbers[at].name) != 0)
            at++;
        if (at == NUMBERS && strcmp(argv[i], "--directory") != 0)
            return misuse("hold: unknown argument '%s'; wherry-run hold --help", argv[i]);
        if (i + 1 == argc)
            return misuse("%s: give it a value; wherry-run hold --help", argv[i]);
        const char *value = argv[++i];
        if (at == NUMBERS)
            directory = value;
        else if (!number(value, numbers[at].low, numbers[at].high, numbers[at].value))
            return misuse("%s %s: give a number from %llu to %llu", numbers[at].name, value,
                          (unsigned long long)numbers[at].low, (unsigned long long)numbers[at].high);
    }
    if (!directory)
        return misuse("hold: --directory is missing; wherry-run hold --help");
    if (bytes % CHUNK || raid_bytes % CHUNK || md_bytes % CHUNK)
        return misuse("hold: --bytes, --raid-bytes and --md-bytes are multiples of 1 MiB");
    return hold(directory, members, bytes, seed, raid_bytes, md_bytes);
}
