/* A RAID-0 of the running kernel's md over nine loop devices: no superblocks, so that nothing finds its parts again,
 * and no file system, so that what is read is the device. An array outlives whoever made it; so a child that no
 * terminal and no signal to us reaches waits for our end and takes it down. */
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <linux/raid/md_p.h>
#include <linux/raid/md_u.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "content.h"
#include "hold.h"

/* mdadm counts down from 127 when nobody says which; the guard tries for a minute, since a reader may still be there.
 */
enum { STRIPE = 64 << 10, FIRST_MINOR = 511, LAST_MINOR = 448, TRIES = 1200, TRY_US = 50000 };

#define SAY(...) (snprintf(hold_problem, sizeof hold_problem, __VA_ARGS__), hold_problem)

/* A device is made by being opened; its node has a name for that long only. -1: errno. */
static int open_minor(unsigned minor)
{
    char node[64];
    snprintf(node, sizeof node, "/dev/.wherry-md-%d-%u", (int)getpid(), minor);
    if (mknod(node, S_IFBLK | 0600, makedev(MD_MAJOR, minor)) < 0)
        return -1;
    const int fd = open(node, O_RDWR | O_EXCL | O_CLOEXEC);
    const int error = errno;
    unlink(node);
    errno = error;
    return fd;
}

static const char *open_free(int *fd)
{
    mdu_array_info_t info;
    for (unsigned minor = FIRST_MINOR; minor >= LAST_MINOR; minor--) {
        *fd = open_minor(minor);
        if (*fd < 0 && errno == EBUSY)
            continue;
        if (*fd < 0)
            return errno == EPERM || errno == EACCES
                       ? SAY("md devices need root")
                       : SAY("this kernel has no md, or its module is not loaded: %s", strerror(errno));
        if (ioctl(*fd, GET_ARRAY_INFO, &info) < 0 && errno == ENODEV)
            return NULL;
        close(*fd);
        *fd = -1;
    }
    return SAY("all md devices from %d to %d are in use", LAST_MINOR, FIRST_MINOR);
}

static const char *assemble(const struct raid *raid, uint64_t each)
{
    mdu_array_info_t array = {.level = 0,
                              .size = (int)(each / 1024),
                              .nr_disks = RAID_MEMBERS,
                              .raid_disks = RAID_MEMBERS,
                              .not_persistent = 1,
                              .state = 1 << MD_SB_CLEAN,
                              .active_disks = RAID_MEMBERS,
                              .working_disks = RAID_MEMBERS,
                              .chunk_size = STRIPE};
    if (ioctl(raid->file, SET_ARRAY_INFO, &array) < 0)
        return SAY("md takes no array: %s", strerror(errno));
    for (int i = 0; i < RAID_MEMBERS; i++) {
        mdu_disk_info_t disk = {.number = i,
                                .major = LOOP_MAJOR,
                                .minor = (int)raid->numbers[i],
                                .raid_disk = i,
                                .state = 1 << MD_DISK_ACTIVE | 1 << MD_DISK_SYNC};
        if (ioctl(raid->file, ADD_NEW_DISK, &disk) < 0)
            return SAY("md does not take /dev/loop%ld: %s", raid->numbers[i], strerror(errno));
    }
    if (ioctl(raid->file, RUN_ARRAY, NULL) < 0)
        return SAY("md has no RAID-0 (module raid0): %s", strerror(errno));
    return NULL;
}

/* Has the same open file as we do: the array may be stopped while nobody else has it open. */
static void guard(int device, int leash)
{
    char byte;
    setsid();
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_IGN);
    prctl(PR_SET_NAME, "wherry-md-guard");
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    while (read(leash, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int tried = 0; tried < TRIES && ioctl(device, STOP_ARRAY, NULL) < 0 && errno == EBUSY; tried++)
        usleep(TRY_US);
    _exit(0);
}

static const char *start_guard(struct raid *raid)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return SAY("pipe: %s", strerror(errno));
    fflush(NULL);
    raid->guard = fork();
    if (raid->guard == 0) {
        close(ends[1]);
        guard(raid->file, ends[0]);
    }
    close(ends[0]);
    raid->leash = ends[1];
    return raid->guard < 0 ? SAY("starting who takes the array down: %s", strerror(errno)) : NULL;
}

static const char *begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes)
{
    const uint64_t each = bytes / RAID_MEMBERS / STRIPE * STRIPE;
    if (geteuid() != 0)
        return SAY("needs root");
    const char *why = open_free(&raid->file);
    if (!why)
        why = raid_open_loops(raid, directory, each, true);
    if (!why)
        why = start_guard(raid);
    if (!why)
        why = assemble(raid, each);
    if (why)
        return why;
    raid->bytes = each * RAID_MEMBERS;
    return hold_fill(raid->file, seed, CONTENT_OF_RAID, raid->bytes) < 0 ? hold_problem : NULL;
}

const char *md_begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes)
{
    raid_clear(raid);
    const char *why = begin(raid, directory, seed, bytes);
    if (why)
        md_end(raid);
    return why;
}

void md_end(struct raid *raid)
{
    if (raid->leash >= 0)
        close(raid->leash);
    while (raid->guard > 0 && waitpid(raid->guard, NULL, 0) < 0 && errno == EINTR)
        ;
    raid->leash = raid->guard = -1;
    raid_end(raid);
}
