/* The environment of a process as the kernel left it, found without asking anybody.
 *
 * The drop-in's constructor may run before those of the C library, whose getenv then knows nothing yet. But glibc's
 * loader says where the stack began: there lie argc, argv, the environment and the auxiliary vector, one after the
 * other. Other C libraries have no such word, and then there is no plan. */
#include "planfile/planfile.h"

#include <elf.h>
#include <stdbool.h>

extern const uintptr_t *const __libc_stack_end __attribute__((weak));

static const char *value_of(const char *entry, const char *name)
{
    while (*name && *entry == *name) {
        entry++;
        name++;
    }
    return *name || *entry != '=' ? NULL : entry + 1;
}

/* AT_SECURE, and no answer, mean that whoever started the process may be less trusted than it. */
static bool trusted(const Elf64_auxv_t *entry)
{
    for (; entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SECURE)
            return entry->a_un.a_val == 0;
    return false;
}

const char *wherry_planfile_environment(void)
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
            found = value_of((const char *)*at, "WHERRY_PLAN");
    return found && *found && trusted((const Elf64_auxv_t *)(at + 1)) ? found : NULL;
}
