/* Where to record, as the environment says that the kernel gave this process. The program's own getenv may not have
 * begun, and programs that write their title into that memory do so later. */
#include "recorder.h"

#include <elf.h>

extern const uintptr_t *const __libc_stack_end __attribute__((weak));

static const char *value_of(const char *entry, const char *name)
{
    while (*name && *entry == *name) {
        entry++;
        name++;
    }
    return *name || *entry != '=' ? NULL : entry + 1;
}

const char *recorder_directory(void)
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
            found = value_of((const char *)*at, "WHERRY_RECORD");
    /* AT_SECURE, and no answer, mean that whoever started the process may be less trusted than it. */
    for (const Elf64_auxv_t *entry = (const Elf64_auxv_t *)(at + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SECURE)
            return entry->a_un.a_val == 0 && found && *found == '/' ? found : NULL;
    return NULL;
}
