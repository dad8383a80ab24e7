/* A handler of signals that forks, and returns in the child to the call that it has interrupted: that goes on counting
 * in a block, and a file, of which the child has no mapping (block.c). So fork passes through here, and in the child
 * nothing but zeros is put in their places, for no one to read. */
#include "recorder.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static int (*next_fork)(void), (*next_signal_safe)(void);

void recorder_find_forking(void)
{
    next_fork = (int (*)(void))recorder_find("fork");
    next_signal_safe = (int (*)(void))recorder_find("_Fork");
}

/* Where there is something else by now it stays. */
static void fill(const void *at, size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    const long got = recorder_syscall(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (got != (long)at && !(got < 0 && got > -PAGE)) /* a kernel before 4.17 takes it for a wish */
        recorder_syscall(SYS_munmap, got, (long)bytes, 0, 0, 0, 0);
}

static int go_on(int (*const *next)(void))
{
    if (!*next && recorder_find_next())
        recorder_find_forking();
    const struct recorder_file *file = *recorder_alive ? recorder_file : NULL;
    const struct recorder_block *const mine = recorder_mine, *block;
    /* Before libc is there; its errno is none of ours. */
    const int child = *next ? (*next)() : (int)recorder_syscall(SYS_fork, 0, 0, 0, 0, 0, 0);
    if (child)
        return child < 0 ? -1 : child;
    recorder_note_process();
    if (!file)
        return 0;
    fill(file, HEADER_BYTES);
    if (mine > CLAIMING)
        fill(mine, BLOCK_BYTES);
    /* Claiming one it may be at any of them. */
    for (uint32_t i = 0; mine == CLAIMING && !*recorder_alive && (block = recorder_block(i)); i++)
        fill(block, BLOCK_BYTES);
    return 0;
}

__attribute__((visibility("default"))) int fork(void) { return go_on(&next_fork); }
__attribute__((visibility("default"))) int _Fork(void) { return go_on(&next_signal_safe); }
