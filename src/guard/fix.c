/* From a fault to its entry in the fault table. Runs in signal handlers: no lock, no call, nothing but the context. */
#include <stdint.h>
#include <ucontext.h>

#include "guard/guard.h"
#include "routines/guarded/fault_table.h"

enum {
    TRAP_PAGE_FAULT = 14,
    ERROR_WRITE = 1 << 1, /* bits of a page fault's error code */
    ERROR_FETCH = 1 << 4,
};

static uintptr_t field(const int32_t *offset) { return (uintptr_t)offset + (uintptr_t)(intptr_t)*offset; }

/* Linkers put the entries of a function where the function goes, and ours are in the order of its text, so the table is
 * sorted. One that ignores that order costs the second search. */
static const struct wherry_fault_entry *find(uintptr_t instruction)
{
    const struct wherry_fault_entry *low = wherry_faults_begin, *high = wherry_faults_end;
    while (low < high) {
        const struct wherry_fault_entry *middle = low + (high - low) / 2;
        if (field(&middle->instruction) < instruction)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < wherry_faults_end && field(&low->instruction) == instruction)
        return low;
    for (low = wherry_faults_begin; low < wherry_faults_end; low++)
        if (field(&low->instruction) == instruction)
            return low;
    return NULL;
}

/* Can this address exist? Four levels of page tables are assumed: with five, only a program that asked for it has more.
 */
static bool canonical(uintptr_t address)
{
    const intptr_t top = (intptr_t)address >> 47;
    return top == 0 || top == -1;
}

enum { PAGE = 4096 };

static bool same_page(uintptr_t a, uintptr_t b) { return (a ^ b) / PAGE == 0; }

/* Of a string instruction, which may have met either side, the source first: that whose page the kernel names; when
 * both are in it, as the error code says. A non-canonical address gives a general-protection fault, or a stack fault
 * when rsp is its base, without an address: then look at the two sides. Not every emulator gives trap number and error
 * code; those that do not name the very byte, and 0 where there is none. */
static bool string_wrote(const greg_t *regs, const siginfo_t *info)
{
    const uintptr_t src = (uintptr_t)regs[REG_RSI], dst = (uintptr_t)regs[REG_RDI];
    const uintptr_t address = (uintptr_t)info->si_addr;
    const bool page_fault = regs[REG_TRAPNO] == TRAP_PAGE_FAULT;
    const bool named = address || info->si_code != SI_KERNEL; /* NULL is an address, too */
    if (!page_fault && !canonical(src))
        return false;
    if (named && same_page(address, src) != same_page(address, dst))
        return same_page(address, dst);
    if (page_fault)
        return regs[REG_ERR] & ERROR_WRITE;
    return !(named && address == src);
}

bool wherry_guard_fix(int signo, const siginfo_t *info, void *ucontext)
{
    if (signo != SIGSEGV && signo != SIGBUS)
        return false;
    if (!info || !ucontext) /* of a host's handler that has none to give, for want of SA_SIGINFO */
        return false;
    /* Only what the kernel says about this instruction: no signal that somebody sent, and no memory failure elsewhere.
     */
    if (info->si_code <= 0 || (signo == SIGBUS && info->si_code == BUS_MCEERR_AO))
        return false;
    greg_t *regs = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
    const bool page_fault = regs[REG_TRAPNO] == TRAP_PAGE_FAULT;
    if (page_fault && regs[REG_ERR] & ERROR_FETCH) /* the routine's own page is gone */
        return false;
    const struct wherry_fault_entry *entry = find((uintptr_t)regs[REG_RIP]);
    if (!entry)
        return false;
    const unsigned does = entry->kind & ~(unsigned)FAULT_REPORT;
    const uintptr_t address = (uintptr_t)info->si_addr;
    const uint64_t what = (uint64_t)(uint32_t)info->si_code << 32 | (uint32_t)signo;
    const bool wrote = does == FAULT_STRING ? string_wrote(regs, info) : does == FAULT_STORE;
    if (entry->kind & FAULT_REPORT) {
        regs[REG_R9] = (greg_t)address;
        regs[REG_R10] = (greg_t)what;
        regs[REG_R11] = wrote;
    } else { /* registers hold data there: see fault_table.h */
        uint64_t *const page = (uint64_t *)(uintptr_t)(regs[REG_RSP] + FAULT_PAGE);
        uint64_t *const told = (uint64_t *)(uintptr_t)(regs[REG_RSP] + FAULT_WHAT);
        *page = (page_fault ? address & ~(uintptr_t)(PAGE - 1) : 0) | wrote;
        *told = what;
    }
    regs[REG_RIP] = (greg_t)field(&entry->resume);
    return true;
}
