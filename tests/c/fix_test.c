/* From a fault to where its call goes on, of faults that are made up: each entry of the fault table, what is told of
 * the fault, which side a string instruction met, and what is no fault of ours. Some of these no program can bring
 * about, or only an emulator. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "guard/guard.h"
#include "routines/guarded/fault_table.h"

enum { PAGE_FAULT = 14, PROTECTION = 13, NO_TRAP = 0 };   /* trap numbers; an emulator may give none */
enum { READS = 4, WRITES = 4 | 2, FETCHES = 4 | 1 << 4 }; /* error codes of a page fault in a program */
enum { UNTOUCHED = 0x1234567, PAGE = 4096, STACK_WORDS = 16 };

/* Whose tables are looked at: only what a program calls is in it. */
static const void *const volatile whole[] = {(const void *)wherry_copy_nofault, (const void *)wherry_set_nofault,
                                             (const void *)wherry_csum_copy_nofault};

static unsigned failures;
static uint64_t stack[STACK_WORDS];
static ucontext_t context;
static siginfo_t info;

static void expect(bool right, const char *what)
{
    if (right)
        return;
    failures++;
    printf("%s: not so\n", what);
}

static uintptr_t field(const int32_t *offset) { return (uintptr_t)offset + (uintptr_t)(intptr_t)*offset; }

static const struct wherry_fault_entry *of_kind(unsigned kind)
{
    for (const struct wherry_fault_entry *entry = wherry_faults_begin; entry < wherry_faults_end; entry++)
        if (entry->kind == kind)
            return entry;
    expect(false, "an entry of each kind");
    return wherry_faults_begin;
}

static greg_t *prepare(uintptr_t instruction, int code, uintptr_t address, int trap, int error)
{
    greg_t *regs = context.uc_mcontext.gregs;
    memset(&info, 0, sizeof info);
    for (int i = 0; i < NGREG; i++)
        regs[i] = UNTOUCHED;
    for (int i = 0; i < STACK_WORDS; i++)
        stack[i] = UNTOUCHED;
    info.si_code = code;
    info.si_addr = (void *)address;
    regs[REG_RIP] = (greg_t)instruction;
    regs[REG_RSP] = (greg_t)(uintptr_t)(stack + STACK_WORDS);
    regs[REG_TRAPNO] = trap;
    regs[REG_ERR] = error;
    return regs;
}

static uint64_t below(int offset) { return *(uint64_t *)((char *)(stack + STACK_WORDS) + offset); }

static void each_entry(void)
{
    uintptr_t last = 0;
    unsigned right = 0, count = 0;
    for (const struct wherry_fault_entry *entry = wherry_faults_begin; entry < wherry_faults_end; entry++, count++) {
        last = field(&entry->instruction);
        const greg_t *regs = prepare(last, SEGV_MAPERR, PAGE, PAGE_FAULT, READS);
        right += wherry_guard_fix(SIGSEGV, &info, &context) && regs[REG_RIP] == (greg_t)field(&entry->resume);
    }
    expect(count > 300 && right == count, "each entry goes on where it says");
    /* Each of these instructions is longer than a byte, and so is what stands before the first. */
    const uintptr_t first = field(&wherry_faults_begin->instruction), aside[] = {first - 1, first + 1, last + 1, 0, -1};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++) {
        const greg_t *regs = prepare(aside[i], SEGV_MAPERR, PAGE, PAGE_FAULT, READS);
        expect(!wherry_guard_fix(SIGSEGV, &info, &context) && regs[REG_RIP] == (greg_t)aside[i] &&
                   regs[REG_R9] == UNTOUCHED && below(FAULT_PAGE) == UNTOUCHED,
               "an instruction that is not in the table is left alone");
    }
}

static void told(void)
{
    const uintptr_t address = 5 * PAGE + 7;
    for (unsigned kind = FAULT_LOAD; kind <= FAULT_STORE; kind++)
        for (int signo = SIGBUS; signo <= SIGSEGV; signo += SIGSEGV - SIGBUS)
            for (int code = 1; code <= SI_KERNEL; code += SI_KERNEL - 1) {
                const uint64_t what = (uint64_t)code << 32 | (unsigned)signo;
                const bool wrote = kind == FAULT_STORE;
                /* What the error code says is for string instructions alone. */
                const greg_t *regs = prepare(field(&of_kind(kind | FAULT_REPORT)->instruction), code, address,
                                             PAGE_FAULT, wrote ? READS : WRITES);
                expect(wherry_guard_fix(signo, &info, &context) && regs[REG_R9] == (greg_t)address &&
                           regs[REG_R10] == (greg_t)what && regs[REG_R11] == wrote && below(FAULT_PAGE) == UNTOUCHED,
                       "what registers are told");
                regs = prepare(field(&of_kind(kind)->instruction), code, address, PAGE_FAULT, READS);
                expect(wherry_guard_fix(signo, &info, &context) && below(FAULT_PAGE) == (5 * PAGE | wrote) &&
                           below(FAULT_WHAT) == what && regs[REG_R9] == UNTOUCHED && regs[REG_R10] == UNTOUCHED &&
                           regs[REG_R11] == UNTOUCHED,
                       "what the red zone is told");
                prepare(field(&of_kind(kind)->instruction), code, address, PROTECTION, 0);
                expect(wherry_guard_fix(signo, &info, &context) && below(FAULT_PAGE) == wrote &&
                           below(FAULT_WHAT) == what,
                       "that no page is known but of a page fault");
            }
}

static void strings(void)
{
    enum { SOURCE = 8 * PAGE + 100, TARGET = 20 * PAGE + 200, BESIDE = SOURCE + 50 };
    const uintptr_t wild = (uintptr_t)1 << 63, lowest_wild = (uintptr_t)1 << 47, highest = (uintptr_t)-2 * PAGE;
    const struct {
        const char *what;
        int trap, error, code;
        uintptr_t source, target, address;
        bool wrote;
    } cases[] = {
        {"the source's page", PAGE_FAULT, READS, SEGV_MAPERR, SOURCE, TARGET, SOURCE, false},
        {"the source's page, by an error code that is wrong", PAGE_FAULT, WRITES, SEGV_MAPERR, SOURCE, TARGET, SOURCE,
         false},
        {"the destination's page", PAGE_FAULT, WRITES, SEGV_MAPERR, SOURCE, TARGET, TARGET, true},
        {"the destination's page, by its begin", PAGE_FAULT, READS, SEGV_MAPERR, SOURCE, TARGET, 20 * PAGE, true},
        {"the page of both, read", PAGE_FAULT, READS, SEGV_MAPERR, SOURCE, BESIDE, SOURCE, false},
        {"the page of both, written", PAGE_FAULT, WRITES, SEGV_ACCERR, SOURCE, BESIDE, BESIDE, true},
        {"the page behind both, read", PAGE_FAULT, READS, SEGV_MAPERR, SOURCE, BESIDE, 9 * PAGE, false},
        {"the page behind both, written", PAGE_FAULT, WRITES, SEGV_MAPERR, SOURCE, BESIDE, 9 * PAGE, true},
        {"null to read", PAGE_FAULT, READS, SEGV_MAPERR, 0, TARGET, 0, false},
        {"null to write", PAGE_FAULT, WRITES, SEGV_MAPERR, SOURCE, 0, 0, true},
        {"a wild source", PROTECTION, 0, SI_KERNEL, wild, TARGET, 0, false},
        {"the lowest wild source", PROTECTION, 0, SI_KERNEL, lowest_wild, TARGET, 0, false},
        {"both wild", PROTECTION, 0, SI_KERNEL, wild, wild, 0, false},
        {"a wild destination", PROTECTION, 0, SI_KERNEL, SOURCE, wild, 0, true},
        {"a wild destination of the highest addresses", PROTECTION, 0, SI_KERNEL, highest, wild, 0, true},
        {"a wild destination of page 0", PROTECTION, 0, SI_KERNEL, 5, wild, 0, true},
        {"an emulator, source", NO_TRAP, 0, SEGV_MAPERR, SOURCE, TARGET, SOURCE, false},
        {"an emulator, destination", NO_TRAP, 0, SEGV_MAPERR, SOURCE, TARGET, TARGET, true},
        {"an emulator, source of one page", NO_TRAP, 0, SEGV_MAPERR, SOURCE, BESIDE, SOURCE, false},
        {"an emulator, destination of one page", NO_TRAP, 0, SEGV_MAPERR, SOURCE, BESIDE, BESIDE, true},
        {"an emulator, null to read", NO_TRAP, 0, SEGV_MAPERR, 0, 8, 0, false},
        {"an emulator, null to write", NO_TRAP, 0, SEGV_MAPERR, SOURCE, 0, 0, true},
        {"a wild source of a page fault", PAGE_FAULT, WRITES, SEGV_MAPERR, wild, TARGET, TARGET, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        greg_t *regs = prepare(field(&of_kind(FAULT_STRING | FAULT_REPORT)->instruction), cases[i].code,
                               cases[i].address, cases[i].trap, cases[i].error);
        regs[REG_RSI] = (greg_t)cases[i].source;
        regs[REG_RDI] = (greg_t)cases[i].target;
        expect(wherry_guard_fix(SIGSEGV, &info, &context) && regs[REG_R11] == cases[i].wrote &&
                   regs[REG_R9] == (greg_t)cases[i].address,
               cases[i].what);
    }
}

static void not_ours(void)
{
    enum { OF_MEMORY = 4, MEANWHILE = 5 }; /* BUS_MCEERR_AR, which this instruction met, and BUS_MCEERR_AO */
    const struct {
        const char *what;
        int signo, code, trap, error;
        bool ours;
    } cases[] = {
        {"sent by kill", SIGSEGV, SI_USER, PAGE_FAULT, READS, false},
        {"sent by tgkill", SIGBUS, SI_TKILL, PAGE_FAULT, READS, false},
        {"queued", SIGSEGV, SI_QUEUE, PAGE_FAULT, READS, false},
        {"a failure of other memory", SIGBUS, MEANWHILE, PAGE_FAULT, READS, false},
        {"a failure of this memory", SIGBUS, OF_MEMORY, PAGE_FAULT, READS, true},
        {"the same number of the other signal", SIGSEGV, MEANWHILE, PAGE_FAULT, READS, true},
        {"the page of the routine itself", SIGSEGV, SEGV_ACCERR, PAGE_FAULT, FETCHES, false},
        {"the file of the routine itself", SIGBUS, BUS_ADRERR, PAGE_FAULT, FETCHES, false},
        {"the same bit of another trap", SIGSEGV, SI_KERNEL, PROTECTION, FETCHES, true},
        {"another signal", SIGILL, SEGV_MAPERR, PAGE_FAULT, READS, false},
        {"a trap", SIGTRAP, SEGV_MAPERR, PAGE_FAULT, READS, false},
    };
    const uintptr_t instruction = field(&of_kind(FAULT_LOAD)->instruction);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const greg_t *regs = prepare(instruction, cases[i].code, PAGE, cases[i].trap, cases[i].error);
        const bool fixed = wherry_guard_fix(cases[i].signo, &info, &context);
        expect(fixed == cases[i].ours && (regs[REG_RIP] != (greg_t)instruction) == fixed, cases[i].what);
    }
    prepare(instruction, SEGV_MAPERR, PAGE, PAGE_FAULT, READS);
    expect(!wherry_guard_fix(SIGSEGV, NULL, &context), "no information, no fault of ours");
    expect(!wherry_guard_fix(SIGSEGV, &info, NULL), "no context, no fault of ours");
}

int main(void)
{
    expect(whole[0] && whole[1] && whole[2], "the functions are there");
    each_entry();
    told();
    strings();
    not_ours();
    puts(failures ? "wrong" : "all right");
    return failures != 0;
}
