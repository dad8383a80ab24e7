/* Loading peers: look at the file first, so that each thing that can be wrong gets its own plain sentence. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target_internal.h"

static char message[768];

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_AARCH64:
        return "AArch64";
    case EM_ARM:
        return "32-bit Arm";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "POWER";
    case EM_S390:
        return "s390";
    default:
        return "another machine";
    }
}

/* NULL when the file is an x86-64 shared object. */
static const char *look_at_file(const char *name, const char *path)
{
    /* Without O_NONBLOCK a named pipe would wait here for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(message, sizeof message, "peer %s: cannot open %s: %s", name, path, strerror(errno));
        return message;
    }
    Elf64_Ehdr header;
    ssize_t got = read(fd, &header, sizeof header);
    int read_error = errno;
    struct stat status;
    bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    close(fd);
    if (!regular || got < 0)
        snprintf(message, sizeof message, "peer %s: %s is not a regular file%s%s", name, path, got < 0 ? ": " : "",
                 got < 0 ? strerror(read_error) : "");
    else if (got < EI_NIDENT || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        snprintf(message, sizeof message, "peer %s: %s is not an ELF file; give a shared object (.so)", name, path);
    else if ((size_t)got < sizeof header)
        snprintf(message, sizeof message, "peer %s: %s is cut short (%zd bytes)", name, path, got);
    else if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        snprintf(message, sizeof message, "peer %s: %s is for %s; this is x86-64", name, path,
                 machine_name(header.e_machine));
    else if (header.e_type != ET_DYN)
        snprintf(
            message, sizeof message,
            "peer %s: %s is not a shared object; link it with -shared (an archive or object file cannot be loaded)",
            name, path);
    else
        return NULL;
    return message;
}

const char *targets_add_peer(struct target_list *list, const char *spec)
{
    const char *equals = strchr(spec, '=');
    size_t name_length = equals ? (size_t)(equals - spec) : 0;
    char name[80];
    if (!equals || name_length == 0 || name_length >= sizeof name || !equals[1]) {
        snprintf(message, sizeof message,
                 "--peer '%s': give NAME=PATH or NAME=PATH:PREFIX, as in musl=/lib/libc.musl.so", spec);
        return message;
    }
    memcpy(name, spec, name_length);
    name[name_length] = '\0';
    if (strpbrk(name, ", \t\n@:") != NULL) {
        snprintf(message, sizeof message, "--peer '%s': a NAME has no commas, colons, spaces or @", spec);
        return message;
    }
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) {
            snprintf(message, sizeof message, "--peer '%s': the name %s is taken; choose another", spec, name);
            return message;
        }
    if (strcmp(name, "libc") == 0 || strcmp(name, "wherry") == 0 || strcmp(name, "call_floor") == 0 ||
        wherry_routine_find(name)) {
        snprintf(message, sizeof message, "--peer '%s': the name %s is taken; choose another", spec, name);
        return message;
    }
    char path[4096];
    const char *prefix = "";
    snprintf(path, sizeof path, "%s", equals + 1);
    char *colon = strrchr(path, ':');
    if (colon && !strchr(colon, '/')) { /* a path that itself has a colon stays usable: dir:x/lib.so */
        prefix = equals + 1 + (colon - path) + 1;
        *colon = '\0';
    }
    const char *wrong = look_at_file(name, path);
    if (wrong)
        return wrong;
    char *absolute = realpath(path, NULL); /* dlopen searches for a bare file name instead of opening it here */
    void *handle = dlopen(absolute ? absolute : path, RTLD_NOW | RTLD_LOCAL);
    free(absolute);
    if (!handle) {
        snprintf(message, sizeof message, "peer %s: %s does not load: %s", name, path, dlerror());
        return message;
    }
    if (target_add_peer_functions(list, name, spec, prefix, handle) == 0) {
        snprintf(message, sizeof message,
                 "peer %s: %s has none of %smemcpy, %smemmove, %smempcpy, %smemset, %sbzero, %sbcopy; "
                 "if its functions have a prefix, give NAME=PATH:PREFIX",
                 name, path, prefix, prefix, prefix, prefix, prefix, prefix);
        return message;
    }
    return NULL;
}
