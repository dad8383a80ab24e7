/* What becomes of callers whose object is unloaded: another object may be loaded where it was, whose calls would be
 * taken for its own. So dlclose passes through here, and the callers in what it took away are noted from then on by
 * their places in its file. It counts nothing and asks the kernel nothing. */
#include "recorder.h"

#include <link.h>

extern int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *data), void *data)
    __attribute__((weak));

static int holds(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    const uintptr_t address = *(const uintptr_t *)data;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
            return 1;
    return 0;
}

/* Nobody else touches callers that are settled, nor those of code that is gone. */
static void settle(struct recorder_caller *callers, struct recorder_caller *entry, uint64_t key)
{
    for (struct recorder_caller *other = callers; other < callers + CALLERS; other++)
        if (other->address == key) {
            other->sampled += entry->sampled;
            other->sampled_bytes += entry->sampled_bytes;
            other->always += entry->always;
            other->always_bytes += entry->always_bytes;
            entry->sampled = entry->sampled_bytes = entry->always = entry->always_bytes = 0;
            __atomic_store_n(&entry->address, 0, __ATOMIC_RELEASE);
            return;
        }
    __atomic_store_n(&entry->address, key, __ATOMIC_RELEASE);
}

static void settle_callers(const struct recorder_module *module, uint64_t number)
{
    const uint32_t count = __atomic_load_n(&recorder_file->blocks, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < BLOCKS; i++) {
        struct recorder_block *block = recorder_block(i);
        if (!block)
            continue;
        for (struct recorder_caller *entry = block->callers; entry < block->callers + CALLERS; entry++) {
            const uint64_t key = __atomic_load_n(&entry->address, __ATOMIC_ACQUIRE), address = key & CALLER_ADDRESS;
            if (key & CALLER_SETTLED || address < module->begin || address >= module->end)
                continue;
            settle(block->callers, entry,
                   (key & ~CALLER_ADDRESS) | CALLER_SETTLED | number << CALLER_OFFSET_BITS |
                       (address - module->begin + module->offset));
        }
    }
}

static void note_unloaded(void)
{
    if (!*recorder_alive || !&dl_iterate_phdr)
        return;
    /* Whoever has it looks for a module, which takes the kernel less long than this waits. */
    for (unsigned tries = 0; __atomic_exchange_n(&recorder_file->modules_busy, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries > 1u << 20)
            return;
        __builtin_ia32_pause();
    }
    const uint32_t count = recorder_file->modules;
    for (uint32_t i = 0; i < count && i < MODULES; i++) {
        struct recorder_module *module = &recorder_file->module[i];
        uintptr_t address = module->begin;
        /* What the loader knows nothing of (mapped code) may be there still: then its next caller finds it again. */
        if (module->gone || !module->name_bytes || dl_iterate_phdr(holds, &address))
            continue;
        settle_callers(module, i);
        __atomic_store_n(&module->gone, 1, __ATOMIC_RELEASE);
    }
    recorder_end_modules();
}

static int (*next)(void *handle);

void recorder_find_dlclose(void) { next = (int (*)(void *))recorder_find("dlclose"); }

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    if (!next)
        recorder_find_dlclose();
    if (!next)
        return -1;
    const int failed = next(handle);
    if (!failed)
        note_unloaded();
    return failed;
}
