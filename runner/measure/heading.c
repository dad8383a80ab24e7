#include "heading.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "wherry.h"

/* "yes, KVM", "no" */
static void virtualisation(char text[40], const struct wherry_cpu *cpu, const char *vendor)
{
    if (!cpu->hypervisor) {
        snprintf(text, 40, "no");
        return;
    }
    static const char *const known[][2] = {
        {"KVMKVMKVM", "KVM"},      {"Microsoft Hv", "Hyper-V"},    {"VMwareVMware", "VMware"},
        {"XenVMMXenVMM", "Xen"},   {"VBoxVBoxVBox", "VirtualBox"}, {"TCGTCGTCGTCG", "QEMU"},
        {"bhyve bhyve ", "bhyve"},
    };
    const char *name = vendor[0] ? vendor : "hypervisor without a name";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(vendor, known[i][0]) == 0)
            name = known[i][1];
    snprintf(text, 40, "yes, %s", name);
}

static void huge_pages(char text[40])
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        *close = '\0';
    snprintf(text, 40, "%.30s", close ? open + 1 : "not in this kernel");
}

static void put_size(const char *name, size_t bytes, const char *after)
{
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        printf("%s %zu MiB%s", name, bytes >> 20, after);
    else
        printf("%s %zu KiB%s", name, bytes >> 10, after);
}

void heading_print(const char *title, const struct host *host, const struct caches *caches)
{
    char virtual[40], huge[40], date[32];
    struct wherry_cpu cpu;
    struct wherry_cpu_names names;
    const struct wherry_cpu_source source = wherry_cpu_native();
    wherry_cpu_decode(&source, &cpu);
    wherry_cpu_read_names(&source, &cpu, &names);
    virtualisation(virtual, &cpu, names.hypervisor);
    huge_pages(huge);
    struct utsname kernel = {0};
    uname(&kernel);
    time_t now = time(NULL);
    struct tm calendar;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &calendar));
    printf("%s\n\n", title);
    printf("  CPU      %s (family %u, model %u, stepping %u); %u usable, pinned to CPU %u\n",
           names.brand[0] ? names.brand : "unknown", cpu.family, cpu.model, cpu.stepping, host->cpu_count, host->cpu);
    put_size("  caches   L1d", caches->l1d, ", ");
    put_size("L2", caches->l2, ", ");
    put_size("L3", caches->l3, " (as believed for one thread)\n");
    printf("  kernel   %s %s\n", kernel.sysname, kernel.release);
    printf("  libc     glibc %s\n", gnu_get_libc_version());
    printf("  pages    %ld bytes; transparent huge pages: %s, not asked for here\n", sysconf(_SC_PAGESIZE), huge);
    printf("  virtual  %s\n", virtual);
    printf("  wherry   %s, %s\n\n", wherry_version(), date);
}
