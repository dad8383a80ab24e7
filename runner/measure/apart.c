#include "apart.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between where Linux puts executables that do not move and those that do, and libraries. */
static const uintptr_t places[] = {(uintptr_t)0x10 << 40, (uintptr_t)0x20 << 40, (uintptr_t)0x18 << 40};
enum { PLACES = sizeof places / sizeof *places, PAGE = 4096 };

static bool far(const char *a, uintptr_t b)
{
    const uintptr_t from = (uintptr_t)a;
    return (from > b ? from - b : b - from) >> 33 != 0;
}

/* Where in the executable's file what is at an address comes from; -1: from nowhere. */
struct origin {
    uintptr_t at;
    off_t offset;
};
static int find(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct origin *origin = data;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t past = origin->at - object->dlpi_addr - part->p_vaddr;
        if (part->p_type == PT_LOAD && past < part->p_filesz)
            origin->offset = (off_t)(part->p_offset + past);
    }
    return 1; /* the executable is the first */
}

/* From the file, since memory that was written may not be executed everywhere. */
ptrdiff_t code_set_apart(const char *begin, const char *end)
{
    const uintptr_t first = (uintptr_t)begin & -(uintptr_t)PAGE; /* the same places in pages and lines of code */
    const size_t before = (uintptr_t)begin - first, bytes = before + (size_t)(end - begin);
    struct origin origin = {first, -1};
    dl_iterate_phdr(find, &origin);
    const int file = origin.offset < 0 ? -1 : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ptrdiff_t moved = 0;
    struct stat about; /* of ld.so, where that was told to run this */
    const bool whole = fstat(file, &about) == 0 && about.st_size - origin.offset >= (off_t)bytes;
    for (int i = 0; i < PLACES && whole && !moved; i++) {
        char *copy = mmap((void *)places[i], bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, origin.offset);
        if (copy == MAP_FAILED)
            break;
        const bool same = memcmp(copy + before, begin, bytes - before) == 0;
        if (same && far(copy, first) && far(copy, (uintptr_t)(void *)memchr))
            moved = (ptrdiff_t)((uintptr_t)copy - first);
        else
            munmap(copy, bytes);
    }
    close(file);
    return moved;
}
