/* Which file an address is of: read from the thread's maps (those of the process are empty once its first thread has
 * ended), by system calls alone, when an address is met that is in none of the mappings known. One thread at a time;
 * others, and handlers that interrupt it, leave theirs to it. */
#include "recorder.h"

#include <fcntl.h>
#include <sys/syscall.h>

enum { BUFFER = 8192, LEFT = 32 };

static char buffer[BUFFER];
static uintptr_t left[LEFT]; /* to whoever is at it; 0: nothing */

static bool known(uintptr_t address)
{
    const uint32_t count = __atomic_load_n(&recorder_file->modules, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < MODULES; i++)
        if (address >= recorder_file->module[i].begin && address < recorder_file->module[i].end &&
            !__atomic_load_n(&recorder_file->module[i].gone, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

static uint64_t number(const char **at, unsigned base)
{
    uint64_t value = 0;
    for (;; (*at)++) {
        const char c = **at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 99;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

static bool same_name(const struct recorder_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->name_bytes; i++)
        if (recorder_file->names[module->name + i] != name[i])
            return false;
    return !name[module->name_bytes];
}

/* What was unloaded, and is where it was before, is no other. */
static bool take_again(const struct recorder_module *found, const char *name)
{
    for (uint32_t i = 0; i < recorder_file->modules && i < MODULES; i++) {
        struct recorder_module *module = &recorder_file->module[i];
        if (module->gone && module->begin == found->begin && module->end == found->end &&
            module->offset == found->offset && module->device == found->device && module->inode == found->inode &&
            same_name(module, name)) {
            __atomic_store_n(&module->gone, 0, __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

/* `line` ends with a zero: begin-end perms offset major:minor inode path */
static bool take_line(const char *line, uintptr_t address)
{
    const char *at = line;
    const uint64_t begin = number(&at, 16);
    if (*at++ != '-')
        return false;
    const uint64_t end = number(&at, 16);
    if (address < begin || address >= end || *at != ' ')
        return false;
    at += 6;
    const uint64_t offset = number(&at, 16);
    at++;
    const uint64_t major = number(&at, 16);
    at++;
    const uint64_t minor = number(&at, 16);
    at++;
    const uint64_t inode = number(&at, 10);
    while (*at == ' ')
        at++;
    struct recorder_module found = {
        .begin = begin, .end = end, .offset = offset, .device = major << 32 | minor, .inode = inode};
    const uint32_t place = recorder_file->modules;
    if (take_again(&found, at) || place >= MODULES)
        return true;
    const uint32_t from = recorder_file->names_used;
    uint32_t length = 0;
    for (; at[length] && from + length < NAMES; length++)
        recorder_file->names[from + length] = at[length];
    /* Half a path would be another's. */
    found.name_bytes = at[length] ? 0 : length;
    found.name = from;
    recorder_file->names_used = from + found.name_bytes;
    recorder_file->module[place] = found;
    __atomic_store_n(&recorder_file->modules, place + 1, __ATOMIC_RELEASE);
    return true;
}

static void read_maps(uintptr_t address)
{
    const long descriptor =
        recorder_syscall(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (descriptor < 0)
        return;
    size_t held = 0;
    bool found = false;
    for (;;) {
        const long got =
            recorder_syscall(SYS_read, descriptor, (long)(buffer + held), (long)(BUFFER - 1 - held), 0, 0, 0);
        if (got <= 0)
            break;
        held += (size_t)got;
        size_t from = 0;
        for (size_t i = 0; i < held && !found; i++)
            if (buffer[i] == '\n') {
                buffer[i] = '\0';
                found = take_line(buffer + from, address);
                from = i + 1;
            }
        if (found || (from == 0 && held == BUFFER - 1))
            break;
        for (size_t i = from; i < held; i++)
            ((volatile char *)buffer)[i - from] = buffer[i];
        held -= from;
    }
    recorder_syscall(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

static bool take(void) { return !__atomic_exchange_n(&recorder_file->modules_busy, 1, __ATOMIC_SEQ_CST); }

static void leave(uintptr_t address)
{
    for (unsigned i = 0; i < LEFT; i++) {
        uintptr_t nothing = 0;
        if (__atomic_compare_exchange_n(&left[i], &nothing, address, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return;
    }
}

static bool something_left(void)
{
    for (unsigned i = 0; i < LEFT; i++)
        if (__atomic_load_n(&left[i], __ATOMIC_SEQ_CST))
            return true;
    return false;
}

/* What is left after the last look is either seen behind the end of the turn, or by whoever leaves it. */
void recorder_end_modules(void)
{
    do {
        for (unsigned i = 0; i < LEFT; i++) {
            const uintptr_t address = __atomic_exchange_n(&left[i], 0, __ATOMIC_SEQ_CST);
            if (address && !known(address))
                read_maps(address);
        }
        __atomic_store_n(&recorder_file->modules_busy, 0, __ATOMIC_SEQ_CST);
    } while (something_left() && take());
}

void recorder_note_module(uintptr_t address)
{
    if (known(address))
        return;
    leave(address);
    if (take())
        recorder_end_modules();
}
