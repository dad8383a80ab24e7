/* A RAID-0 of the running kernel over nine loop devices. Each loop device takes itself down when the last of its users
 * closes it, and the file system is mounted, but nowhere: the mount ends with the descriptor that holds it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "content.h"
#include "hold.h"

enum { TRIES = 64, DEVICE_NAME = 32, MEBIBYTE = 1 << 20 };
/* mkfs.btrfs wants about 110 MiB of each device; metadata goes beside the file's data. */
static const uint64_t LEAST_BACKING = 160 * MEBIBYTE, BESIDES = 96 * MEBIBYTE;

#define SAY(...) (snprintf(hold_problem, sizeof hold_problem, __VA_ARGS__), hold_problem)

static void device_name(char *name, long number) { snprintf(name, DEVICE_NAME, "/dev/loop%ld", number); }

/* Between asking for a free device and taking it somebody else may have taken it. */
static const char *open_loop(int control, int backing, int *loop, long *number)
{
    for (int tried = 0; tried < TRIES; tried++) {
        char name[DEVICE_NAME];
        *number = ioctl(control, LOOP_CTL_GET_FREE);
        if (*number < 0)
            return SAY("no loop device is free: %s", strerror(errno));
        device_name(name, *number);
        *loop = open(name, O_RDWR | O_CLOEXEC);
        if (*loop < 0)
            return SAY("%s cannot be opened: %s", name, strerror(errno));
        /* Past the page cache below, so that a page is cached once and a cold read is cold. */
        struct loop_config config = {.fd = (unsigned)backing, .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};
        if (ioctl(*loop, LOOP_CONFIGURE, &config) == 0)
            return NULL;
        if (errno == EINVAL) {
            config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
            if (ioctl(*loop, LOOP_CONFIGURE, &config) == 0)
                return NULL;
        }
        const int error = errno;
        close(*loop);
        *loop = -1;
        if (error != EBUSY)
            return SAY("%s cannot be set up: %s", name, strerror(error));
    }
    return SAY("loop devices are taken by others as soon as they are free");
}

const char *raid_open_loops(struct raid *raid, const char *directory, uint64_t bytes, bool reserved)
{
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return errno == EACCES || errno == EPERM ? SAY("loop devices need root")
                                                 : SAY("this system has no loop devices: %s", strerror(errno));
    const char *why = NULL;
    for (int i = 0; i < RAID_MEMBERS && !why; i++) {
        raid->backing[i] = hold_file(directory);
        if (raid->backing[i] < 0)
            why = hold_problem;
        else if (ftruncate(raid->backing[i], (off_t)bytes) < 0)
            why = SAY("scratch cannot be given its length: %s", strerror(errno));
        else if (reserved && hold_reserve(raid->backing[i], bytes) < 0)
            why = hold_problem;
        else
            why = open_loop(control, raid->backing[i], &raid->loops[i], &raid->numbers[i]);
    }
    close(control);
    return why;
}

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* Administrators' programs are in no user's PATH. */
static const char *mkfs_path(void)
{
    static const char *const paths[] = {"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs", "/usr/local/sbin/mkfs.btrfs",
                                        "/usr/bin/mkfs.btrfs"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (is_program(paths[i]))
            return paths[i];
    return NULL;
}

/* It dies with us: one that went on would keep the loop devices. */
static const char *make_file_system(const long *numbers)
{
    static char names[RAID_MEMBERS][DEVICE_NAME];
    char *arguments[RAID_MEMBERS + 8] = {"mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1"};
    for (int i = 0; i < RAID_MEMBERS; i++) {
        device_name(names[i], numbers[i]);
        arguments[7 + i] = names[i];
    }
    const char *path = mkfs_path();
    int said[2];
    if (!path)
        return SAY("needs mkfs.btrfs (Debian package btrfs-progs)");
    if (pipe2(said, O_CLOEXEC) < 0)
        return SAY("pipe: %s", strerror(errno));
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        dup2(said[1], STDOUT_FILENO);
        dup2(said[1], STDERR_FILENO);
        execv(path, arguments);
        _exit(127);
    }
    close(said[1]);
    char text[256];
    size_t length = 0;
    ssize_t got;
    char chunk[512];
    while (child > 0 && (got = read(said[0], chunk, sizeof chunk)) > 0) /* its last words count */
        for (ssize_t i = 0; i < got; i++) {
            if (length + 1 == sizeof text)
                memmove(text, text + 1, --length);
            text[length++] = chunk[i] == '\n' ? ' ' : chunk[i];
        }
    close(said[0]);
    text[length] = '\0';
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : SAY("mkfs.btrfs failed: %s", text);
}

static int configure(int context, unsigned command, const char *key, const char *value)
{
    return (int)syscall(SYS_fsconfig, context, command, key, value, 0);
}

/* What fsconfig and fsmount have to say beyond an errno value. */
static const char *mount_failed(int context)
{
    const int error = errno;
    char told[200] = "";
    const ssize_t n = read(context, told, sizeof told - 1);
    if (n > 0)
        told[n] = '\0';
    told[strcspn(told, "\n")] = '\0';
    return *told ? SAY("btrfs cannot be mounted: %s (%s)", strerror(error), told)
                 : SAY("btrfs cannot be mounted: %s", strerror(error));
}

static const char *mount_nowhere(struct raid *raid, const long *numbers)
{
    char name[DEVICE_NAME];
    const int context = (int)syscall(SYS_fsopen, "btrfs", FSOPEN_CLOEXEC);
    if (context < 0)
        return errno == ENODEV   ? SAY("this kernel has no btrfs")
               : errno == EPERM  ? SAY("mounting needs root")
               : errno == ENOSYS ? SAY("this kernel has no fsopen (Linux 5.2)")
                                 : SAY("fsopen: %s", strerror(errno));
    bool done = true;
    for (int i = 0; i < RAID_MEMBERS && done; i++) {
        device_name(name, numbers[i]);
        done = configure(context, FSCONFIG_SET_STRING, i ? "device" : "source", name) == 0;
    }
    /* A striping driver keeps no checksums; ours are not to pay for any. */
    done = done && configure(context, FSCONFIG_SET_FLAG, "nodatasum", NULL) == 0;
    done = done && configure(context, FSCONFIG_CMD_CREATE, NULL, NULL) == 0;
    if (done)
        raid->mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    const char *why = raid->mount < 0 ? mount_failed(context) : NULL;
    close(context);
    return why;
}

static const char *begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes)
{
    uint64_t backing = bytes / RAID_MEMBERS + BESIDES;
    backing = backing < LEAST_BACKING ? LEAST_BACKING : backing / MEBIBYTE * MEBIBYTE;
    if (geteuid() != 0)
        return SAY("needs root");
    if (!mkfs_path())
        return SAY("needs mkfs.btrfs (Debian package btrfs-progs)");
    const char *why = raid_open_loops(raid, directory, backing, false);
    if (!why)
        why = make_file_system(raid->numbers);
    if (!why)
        why = mount_nowhere(raid, raid->numbers);
    if (why)
        return why;
    raid->file = openat(raid->mount, "stripe", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (raid->file < 0)
        return SAY("no file can be made on the RAID: %s", strerror(errno));
    raid->bytes = bytes;
    const bool done = hold_reserve(raid->file, bytes) == 0 && hold_fill(raid->file, seed, CONTENT_OF_RAID, bytes) == 0;
    return done ? NULL : hold_problem;
}

void raid_clear(struct raid *raid)
{
    *raid = (struct raid){.mount = -1, .file = -1, .guard = -1, .leash = -1};
    for (int i = 0; i < RAID_MEMBERS; i++)
        raid->loops[i] = raid->backing[i] = -1;
}

const char *raid_begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes)
{
    raid_clear(raid);
    const char *why = begin(raid, directory, seed, bytes);
    if (why)
        raid_end(raid);
    return why;
}

/* The kernel remembers devices of a btrfs by name, and would find the next one's where these were. */
static void forget_devices(const struct raid *raid)
{
    const int control = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);
    for (int i = 0; control >= 0 && i < RAID_MEMBERS; i++) {
        struct loop_info64 info;
        struct btrfs_ioctl_vol_args device = {0};
        if (raid->loops[i] < 0 || ioctl(raid->loops[i], LOOP_GET_STATUS64, &info) < 0)
            continue;
        device_name(device.name, (long)info.lo_number);
        ioctl(control, BTRFS_IOC_FORGET_DEV, &device);
    }
    if (control >= 0)
        close(control);
}

void raid_end(struct raid *raid)
{
    if (raid->file >= 0)
        close(raid->file);
    if (raid->mount >= 0)
        close(raid->mount);
    raid->file = raid->mount = -1;
    forget_devices(raid);
    for (int i = 0; i < RAID_MEMBERS; i++) {
        if (raid->loops[i] >= 0)
            close(raid->loops[i]);
        if (raid->backing[i] >= 0)
            close(raid->backing[i]);
        raid->loops[i] = raid->backing[i] = -1;
    }
}
