#include "exported.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const uint8_t *bytes;
    uint64_t size;
};

/* Nothing in a file need be as it should: what reaches beyond its end is not there. */
static const void *part(const struct file *file, uint64_t at, uint64_t size)
{
    return at <= file->size && size <= file->size - at && at % 8 == 0 ? file->bytes + at : NULL;
}

static bool is_function(const Elf64_Sym *symbol)
{
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

static void search(const struct file *file, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
                   bool (*fits)(const char *), char *found, size_t room)
{
    const Elf64_Sym *symbol = part(file, symbols->sh_offset, symbols->sh_size);
    if (!symbol || names->sh_offset > file->size || names->sh_size > file->size - names->sh_offset)
        return;
    const char *text = (const char *)file->bytes + names->sh_offset;
    if (names->sh_size == 0 || text[names->sh_size - 1] != '\0')
        return;
    for (uint64_t left = symbols->sh_size / sizeof *symbol; left > 0; left--, symbol++) {
        if (!is_function(symbol) || symbol->st_name >= names->sh_size)
            continue;
        const char *name = text + symbol->st_name;
        const size_t length = strlen(name);
        if (length < room && (!found[0] || length < strlen(found)) && fits(name))
            memcpy(found, name, length + 1);
    }
}

bool exported_name(const char *path, bool (*fits)(const char *name), char *found, size_t room)
{
    found[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return false;
    struct file file = {.size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0};
    file.bytes = file.size > 0 ? mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (file.bytes == MAP_FAILED)
        return false;
    const Elf64_Ehdr *header = part(&file, 0, sizeof *header);
    const Elf64_Shdr *sections = NULL;
    if (header && header->e_shentsize == sizeof *sections)
        sections = part(&file, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
    for (unsigned i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum)
            search(&file, &sections[i], &sections[sections[i].sh_link], fits, found, room);
    munmap((void *)(uintptr_t)file.bytes, file.size);
    return found[0] != '\0';
}
