/* The functions that would have been called without the recorder.
 *
 * dlsym may allocate, and so copy, and may not be asked before the C library has begun. So the loader's list of objects
 * is read instead, from behind this one on, as dlsym(RTLD_NEXT) would. It is there before anything is relocated, and
 * objects further on in it are relocated before those in front: once this one is, libc is, and its IFUNCs can be
 * asked. */
#include "recorder.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern struct r_debug _r_debug __attribute__((weak));

#define PAGE ((uintptr_t)4096)

/* The loader makes this its own address; until then it is 0. */
static const char mark;
static const char *const volatile relocated = &mark;

static const char *const names[RECORDER_FUNCTIONS] = {
#define RECORDER_NAME(name) #name,
    RECORDED(RECORDER_NAME)
#undef RECORDER_NAME
};

struct table {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;  /* DT_GNU_HASH */
    const uint32_t *older; /* DT_HASH, which is all that some linkers write (--hash-style=sysv) */
    const uint16_t *versions;
};

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static struct table open_table(const struct link_map *map)
{
    struct table table = {.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        /* glibc has made addresses of them, unless the section cannot be written. */
        uintptr_t at = entry->d_un.d_ptr;
        at += at < map->l_addr ? map->l_addr : 0;
        if (entry->d_tag == DT_SYMTAB)
            table.symbols = (const ElfW(Sym) *)at;
        else if (entry->d_tag == DT_STRTAB)
            table.strings = (const char *)at;
        else if (entry->d_tag == DT_HASH)
            table.older = (const uint32_t *)at;
        else if (entry->d_tag == DT_GNU_HASH)
            table.hash = (const uint32_t *)at;
        else if (entry->d_tag == DT_VERSYM)
            table.versions = (const uint16_t *)at;
    }
    return table;
}

/* The default version of the symbol, or the one that has none. */
static bool is_it(const struct table *table, uint32_t at, const char *name)
{
    const ElfW(Sym) *symbol = &table->symbols[at];
    const bool hidden = table->versions && table->versions[at] & 0x8000;
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return !hidden && symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           same(table->strings + symbol->st_name, name);
}

static const ElfW(Sym) * look_up_older(const struct table *table, const char *name)
{
    const uint32_t buckets = table->older[0], *bucket = table->older + 2, *chain = bucket + buckets;
    uint32_t hash = 0;
    for (const char *at = name; *at; at++) {
        hash = (hash << 4) + (unsigned char)*at;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t at = buckets ? bucket[hash % buckets] : 0; at; at = chain[at])
        if (is_it(table, at, name))
            return &table->symbols[at];
    return NULL;
}

static const ElfW(Sym) * look_up(const struct table *table, const char *name)
{
    if (!table->symbols || !table->strings)
        return NULL;
    if (!table->hash && table->older)
        return look_up_older(table, name);
    if (!table->hash || !table->hash[0])
        return NULL;
    const uint32_t buckets = table->hash[0], first = table->hash[1], words = table->hash[2];
    const uint32_t *bucket = table->hash + 4 + 2 * words, *chain = bucket + buckets;
    const uint32_t wanted = hash_of(name);
    uint32_t at = bucket[wanted % buckets];
    if (at < first)
        return NULL;
    for (;; at++) {
        const uint32_t hash = chain[at - first];
        if ((hash | 1) == (wanted | 1) && is_it(table, at, name))
            return &table->symbols[at];
        if (hash & 1)
            return NULL;
    }
}

static void *address_of(const struct table *table, const ElfW(Sym) * symbol)
{
    const uintptr_t at = table->base + symbol->st_value;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return ((void *(*)(void))at)();
    return (void *)at;
}

void *recorder_own(enum recorder_function function);

static const struct link_map *this_one(void)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    return map;
}

/* Of the objects behind this one that have it the first, or, `past` it, the next; NULL: there is none. */
static void *find(const char *name, bool past)
{
    const struct link_map *map = this_one();
    for (map = map ? map->l_next : NULL; map; map = map->l_next) {
        const struct table table = open_table(map);
        const ElfW(Sym) *symbol = look_up(&table, name);
        if (symbol && !past)
            return address_of(&table, symbol);
        past = past && !symbol;
    }
    return NULL;
}

/* ---- what is tried calls its own ------------------------------------------------------------------------------------
 * A library's memcpy may call memmove by its name, which the loader bound to this object, as it stands in front. Such a
 * call is none of the program's: counted as one, it would make the program seem to come twice as far in the turns of
 * that library. So it is bound to what it would have been bound to without the recorder. */

/* Where its headers are, if they stand before all else, as linkers put them; else NULL. No path may be there: the
 * kernel tells whether it can be read. */
static const ElfW(Ehdr) * header_of(const struct link_map *map)
{
    const ElfW(Ehdr) *const header = (const ElfW(Ehdr) *)map->l_addr;
    if (recorder_syscall(SYS_access, (long)map->l_addr, F_OK, 0, 0, 0, 0) == -EFAULT || header->e_ident[0] != ELFMAG0 ||
        header->e_phoff != sizeof *header || header->e_phnum > (PAGE - sizeof *header) / sizeof(ElfW(Phdr)))
        return NULL;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(header + 1);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_DYNAMIC && map->l_addr + segment[i].p_vaddr == (uintptr_t)map->l_ld)
            return header;
    return NULL;
}

/* The loader has made that page read-only, once it was relocated. */
static bool is_sealed(const struct link_map *map, uintptr_t page)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(header + 1);
    for (unsigned i = 0; i < header->e_phnum; i++, segment++) {
        const uintptr_t begin = map->l_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_RELRO && page >= (begin & -PAGE) && page < ((begin + segment->p_memsz) & -PAGE))
            return true;
    }
    return false;
}

static void bind(const struct link_map *map, uintptr_t at, void *to)
{
    const uintptr_t page = at & -PAGE;
    const bool sealed = is_sealed(map, page);
    if (sealed && recorder_syscall(SYS_mprotect, (long)page, (long)PAGE, PROT_READ | PROT_WRITE, 0, 0, 0) != 0)
        return;
    *(void *volatile *)at = to;
    if (sealed)
        recorder_syscall(SYS_mprotect, (long)page, (long)PAGE, PROT_READ, 0, 0, 0);
}

static void bind_all(const struct link_map *map, const struct table *table, const ElfW(Rela) * entry, size_t bytes)
{
    const struct table own = open_table(this_one());
    for (size_t i = 0; i < bytes / sizeof *entry; i++) {
        const unsigned type = ELF64_R_TYPE(entry[i].r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
            continue;
        const char *name = table->strings + table->symbols[ELF64_R_SYM(entry[i].r_info)].st_name;
        const uintptr_t at = map->l_addr + entry[i].r_offset;
        for (unsigned function = 0; function < RECORDER_FUNCTIONS; function++) {
            if (!same(names[function], name))
                continue;
            /* A call that has yet to be bound has the way to the loader there; a pointer may be another by now. */
            const ElfW(Sym) *here = look_up(&own, name);
            if (type == R_X86_64_JUMP_SLOT || (here && *(void **)at == address_of(&own, here)))
                bind(map, at, recorder_tried[function]);
        }
    }
}

/* `map`: what stands right behind this object. Of what has no such function all calls are the program's. Where its
 * headers are not to be found it stays as it is. */
static void bind_to_its_own(const struct link_map *map)
{
    if (!map || !header_of(map))
        return;
    const struct table table = open_table(map);
    bool has = false;
    for (unsigned i = 0; i < RECORDER_FUNCTIONS; i++)
        has = has || look_up(&table, names[i]);
    if (!has)
        return;
    const ElfW(Rela) *entries = NULL, *calls = NULL;
    size_t entries_bytes = 0, calls_bytes = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = entry->d_un.d_ptr;
        at += at < map->l_addr ? map->l_addr : 0;
        if (entry->d_tag == DT_RELA)
            entries = (const ElfW(Rela) *)at;
        else if (entry->d_tag == DT_RELASZ)
            entries_bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_JMPREL)
            calls = (const ElfW(Rela) *)at;
        else if (entry->d_tag == DT_PLTRELSZ)
            calls_bytes = entry->d_un.d_val;
    }
    if (entries)
        bind_all(map, &table, entries, entries_bytes);
    if (calls)
        bind_all(map, &table, calls, calls_bytes);
}

void *recorder_find(const char *name) { return &_r_debug && _r_debug.r_map ? find(name, false) : NULL; }

bool recorder_find_next(void)
{
    if (!relocated)
        return false;
    if (recorder_next[RECORDER_FUNCTIONS - 1])
        return true;
    if (!&_r_debug || !_r_debug.r_map)
        return false;
    const bool trial = recorder_is_trial();
    for (unsigned i = 0; i < RECORDER_FUNCTIONS; i++) {
        const enum recorder_function function = (enum recorder_function)i;
        void *first = find(names[i], false), *second = trial ? find(names[i], true) : NULL;
        if (!first)
            first = recorder_own(function);
        recorder_tried[i] = first;
        /* Where one object alone has it, it is not tried. */
        recorder_called[i] = second ? second : first;
        __atomic_store_n(&recorder_next[i], recorder_called[i], __ATOMIC_RELEASE);
    }
    if (trial)
        bind_to_its_own(this_one()->l_next);
    recorder_trial = trial;
    return true;
}
