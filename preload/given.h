/* A word of the environment as the kernel gave it to this process, found without asking anybody.
 *
 * A constructor of a preloaded object may run before those of the C library, whose getenv then knows nothing yet, and
 * programs that write their title into that memory do so later. glibc's loader says where the stack began: there lie
 * argc, argv, the environment and the auxiliary vector, one after the other. Other C libraries have no such word, and
 * then nothing is given. */
#ifndef PRELOAD_GIVEN_H
#define PRELOAD_GIVEN_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

extern const uintptr_t *const __libc_stack_end __attribute__((weak));

static inline const char *value_of(const char *entry, const char *name)
{
    while (*name && *entry == *name) {
        entry++;
        name++;
    }
    return *name || *entry != '=' ? NULL : entry + 1;
}

/* The value, or NULL when it is empty or absent. AT_SECURE, and no answer, mean that whoever started the process may be
 * less trusted than it: then nothing is given either. */
static inline const char *given(const char *name)
{
    if (!&__libc_stack_end || !__libc_stack_end)
        return NULL;
    const uintptr_t argc = __libc_stack_end[0];
    const uintptr_t *at = __libc_stack_end + 1;
    if (argc > 1 << 24 || at[argc])
        return NULL;
    const char *found = NULL;
    for (at += argc + 1; *at; at++)
        if (!found)
            found = value_of((const char *)*at, name);
    for (const Elf64_auxv_t *entry = (const Elf64_auxv_t *)(at + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SECURE)
            return entry->a_un.a_val == 0 && found && *found ? found : NULL;
    return NULL;
}

#endif
