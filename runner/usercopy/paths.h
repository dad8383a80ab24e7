/* The running kernel's copies between user space and its own memory, as functions that copy n bytes. What a call takes
 * is the system calls and the copy; syscall_floor is a system call that does nothing. */
#ifndef RUNNER_USERCOPY_PATHS_H
#define RUNNER_USERCOPY_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Called as memcpy; returns dst. A copy that went wrong is kept until path_check tells it. */
typedef void *path_fn(void *dst, const void *src, size_t n);

struct path {
    const char *name;
    path_fn *fn;
    const char *wrong_here; /* why it cannot be had; meaningful once path_unavailable was asked */
};

/* The path with this name, or NULL. */
const struct path *path_find(const char *name);

/* Opens what it needs, once, and carries a byte, in a child first. NULL, or why it cannot be had (a static string):
 * forbidden, no such thing. */
const char *path_unavailable(const struct path *path);

/* Carries n random bytes and compares them. NULL, or what is wrong, also of any call since the last check. */
const char *path_check(const struct path *path, unsigned char *dst, unsigned char *src, size_t n);

#endif
