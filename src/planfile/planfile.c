/* Reads a plan file once from front to end, a record at a time, so that a bundle of any length needs no more memory
 * than one plan does. Nothing of it counts before the checksum at its end is known to be right. */
#include "planfile/planfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define FIELD_COUNT(field) +1
enum { FIELDS = 0 WHERRY_THRESHOLDS(FIELD_COUNT), VERSION = 7, MOST_PLANS = 64 };
#undef FIELD_COUNT
#define ANY UINT32_MAX

static const char magic[] = "WHPLAN\r\n"; /* a transfer as text spoils it */

struct header {
    char magic[8];
    uint32_t version, count, length, record_bytes;
    uint32_t crc; /* CRC-32 of the whole file with this word 0 */
    uint32_t zero;
};

struct record {
    char vendor[12];
    uint32_t family, model, stepping; /* ANY: no matter */
    uint32_t with, without;           /* bits: the list below */
    uint32_t choice, zero;
    uint64_t last_level; /* 0: no matter */
    uint64_t thresholds[FIELDS];
    char name[WHERRY_PLAN_NAME_BYTES];
};
_Static_assert(sizeof(struct header) == 32 && sizeof(struct record) == 224, "as wherry/planbinary.py writes them");
_Static_assert(WHERRY_ISA_COUNT == 5, "the numbers of choices in a plan are those of enum wherry_isa");

/* Bit i of a plan is line i. No pointers: nothing here is to be relocated. */
static const struct {
    uint8_t feature;
    char name[11];
} features[] = {
    {WHERRY_CPU_AVX2, "avx2"},         {WHERRY_CPU_BMI1, "bmi1"},         {WHERRY_CPU_BMI2, "bmi2"},
    {WHERRY_CPU_AVX512F, "avx512f"},   {WHERRY_CPU_AVX512BW, "avx512bw"}, {WHERRY_CPU_AVX512VL, "avx512vl"},
    {WHERRY_CPU_AVX512DQ, "avx512dq"}, {WHERRY_CPU_ERMS, "erms"},         {WHERRY_CPU_FSRM, "fsrm"},
    {WHERRY_CPU_FZRM, "fzrm"},         {WHERRY_CPU_FSRS, "fsrs"},
};
enum { FEATURES = sizeof features / sizeof *features };

/* ---- system calls ------------------------------------------------------------------------------------------------ */

static long kernel(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

/* 0, or an errno value; EINVAL when the file ends before. */
static int read_all(long file, void *to, size_t n)
{
    for (char *at = to; n > 0;) {
        const long got = kernel(SYS_read, file, (long)at, (long)n);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? (int)-got : EINVAL;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint32_t crc32_of(uint32_t crc, const void *bytes, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    crc = ~crc;
    for (const uint8_t *at = bytes; n > 0; n--) {
        crc ^= *at++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static bool same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* Printable ASCII, at least one, then zeros to the end; `whole`: it may fill the field. */
static bool is_text(const char *field, size_t n, bool whole)
{
    size_t i = 0;
    while (i < n && field[i] >= ' ' && field[i] <= '~')
        i++;
    if (i == 0 || (i == n && !whole))
        return false;
    for (; i < n; i++)
        if (field[i])
            return false;
    return true;
}

/* ---- what a plan can mean ---------------------------------------------------------------------------------------- */

/* Any value would be safe; outside these no plan can be meant so (wherry/plans.py has the same). */
enum { REP_LEAST = 128, STREAM_LEAST = 64 << 10, AHEAD_MOST = 4095 };
#define MOST ((uint64_t)1 << 40)
#define OFF SIZE_MAX

static const char *absurd_rep(size_t from, size_t to, size_t recent)
{
    if (from == OFF)
        return to || recent ? "an end of rep, but no beginning" : NULL;
    if (from < REP_LEAST || from > MOST)
        return "an absurd rep_from";
    if (recent != OFF && (recent < from || recent > MOST))
        return "an absurd rep_recent_from";
    return to != OFF && (to < from || to > MOST) ? "an absurd rep_to" : NULL;
}

static const char *absurd_stream(size_t from, size_t recent)
{
    if (from == OFF)
        return recent ? "a stream_recent_from, but no stream_from" : NULL;
    if (from < STREAM_LEAST || from > MOST)
        return "an absurd stream_from";
    return recent != OFF && (recent < from || recent > MOST) ? "an absurd stream_recent_from" : NULL;
}

static const char *absurd(const struct wherry_thresholds *t)
{
    const char *wrong = absurd_rep(t->copy_rep_from, t->copy_rep_to, t->copy_rep_recent_from);
    if (!wrong)
        wrong = absurd_rep(t->set_rep_from, t->set_rep_to, t->set_rep_recent_from);
    if (wrong)
        return wrong;
    wrong = absurd_stream(t->copy_stream_from, t->copy_stream_recent_from);
    if (!wrong)
        wrong = absurd_stream(t->set_stream_from, t->set_stream_recent_from);
    if (wrong)
        return wrong;
    if (t->copy_backward_ahead > AHEAD_MOST)
        return "an absurd backward_ahead";
    if (t->copy_ymm_from != OFF && (t->copy_ymm_from < YMM_LEAST || t->copy_ymm_from > MOST))
        return "an absurd ymm_from";
    if (t->copy_source_lines_to != OFF && t->copy_source_lines_to > MOST)
        return "an absurd source_lines_to";
    if (t->copy_parts_from != OFF && t->copy_parts_from > MOST)
        return "an absurd parts_from";
    const size_t ahead = t->copy_rep_slow_ahead, all = t->copy_rep_all_from;
    if (t->copy_rep_from == OFF)
        return ahead || all ? "relative alignments of rep, but no beginning" : NULL;
    if (ahead > AHEAD_MOST)
        return "an absurd rep_slow_ahead";
    return all != OFF && (all < t->copy_rep_from || all > MOST) ? "an absurd rep_all_from" : NULL;
}

static struct wherry_thresholds thresholds_of(const struct record *record)
{
    struct wherry_thresholds found;
    const uint64_t *at = record->thresholds;
#define FIELD(field) found.field = *at++;
    WHERRY_THRESHOLDS(FIELD)
#undef FIELD
    return found;
}

/* What is wrong with a record whatever the CPU, or NULL. */
static const char *fault_of(const struct record *record)
{
    if (!is_text(record->vendor, sizeof record->vendor, true))
        return "a vendor that is no text";
    if (!is_text(record->name, sizeof record->name, false))
        return "a name that is no text";
    if (record->zero || record->choice >= WHERRY_ISA_COUNT)
        return "a choice that this version does not know";
    if ((record->with | record->without) >> FEATURES)
        return "CPU features that this version does not know";
    if (record->with & record->without)
        return "a CPU feature both wanted and not";
    /* Bits 0 to 2 are what AVX2 needs, 0 to 6 what AVX-512 does. */
    const uint32_t needs = record->choice >= WHERRY_ISA_AVX512 ? 0x7f : record->choice == WHERRY_ISA_AVX2 ? 0x07 : 0;
    if (needs & record->without)
        return "a choice for CPUs that lack what it needs";
    const struct wherry_thresholds thresholds = thresholds_of(record);
    return absurd(&thresholds);
}

/* ---- for which CPU ----------------------------------------------------------------------------------------------- */

static void say_number(struct wherry_line *why, const char *what, uint32_t wanted, uint32_t is)
{
    wherry_line_add(why, "it is for ");
    wherry_line_add(why, what);
    wherry_line_number(why, wanted);
    wherry_line_add(why, ", and this CPU is ");
    wherry_line_add(why, what);
    wherry_line_number(why, is);
}

static void say_feature(struct wherry_line *why, const char *which, const char *name, const char *here)
{
    wherry_line_add(why, "it is for CPUs ");
    wherry_line_add(why, which);
    wherry_line_add(why, name);
    wherry_line_add(why, here);
}

/* Is the record for this CPU, and can it run it? Else says why not. */
static bool fits(const struct record *record, const struct wherry_cpu *cpu, uint64_t last_level,
                 struct wherry_line *why)
{
    if (!same(record->vendor, cpu->vendor_name, sizeof record->vendor)) {
        char vendor[sizeof record->vendor + 1] = {0};
        for (size_t i = 0; i < sizeof record->vendor; i++)
            vendor[i] = record->vendor[i];
        wherry_line_add(why, "it is for CPUs of ");
        wherry_line_add(why, vendor);
        wherry_line_add(why, ", and this one is of ");
        wherry_line_add(why, cpu->vendor_name);
        return false;
    }
    if (record->family != cpu->family) {
        say_number(why, "family ", record->family, cpu->family);
        return false;
    }
    if (record->model != ANY && record->model != cpu->model) {
        say_number(why, "model ", record->model, cpu->model);
        return false;
    }
    if (record->stepping != ANY && record->stepping != cpu->stepping) {
        say_number(why, "stepping ", record->stepping, cpu->stepping);
        return false;
    }
    for (int i = 0; i < FEATURES; i++) {
        const bool here = wherry_cpu_has(cpu, (enum wherry_cpu_feature)features[i].feature);
        if (record->with >> i & 1 && !here) {
            say_feature(why, "with ", features[i].name, ", which this one or its system lacks");
            return false;
        }
        if (record->without >> i & 1 && here) {
            say_feature(why, "without ", features[i].name, ", which this one has");
            return false;
        }
    }
    if (record->last_level && record->last_level != last_level) {
        wherry_line_add(why, "it is for a last-level cache of ");
        wherry_line_number(why, record->last_level >> 10);
        wherry_line_add(why, " KiB, and here are ");
        wherry_line_number(why, last_level >> 10);
        wherry_line_add(why, " KiB");
        return false;
    }
    if (!wherry_plan_can_run(cpu, wherry_plan_needs((enum wherry_isa)record->choice))) {
        wherry_line_add(why, record->choice == WHERRY_ISA_AVX2 ? "it needs AVX2, BMI1 and BMI2"
                                                               : "it needs AVX-512 (F, BW, VL, DQ)");
        wherry_line_add(why, ", which this CPU or its system lacks");
        return false;
    }
    return true;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int refuse(struct wherry_line *why, const char *reason, int error)
{
    wherry_line_add(why, reason);
    return error;
}

static int check_header(const struct header *header, uint64_t file_bytes, struct wherry_line *why)
{
    if (header->version != VERSION) {
        wherry_line_add(why, "it is of plan format ");
        wherry_line_number(why, header->version);
        wherry_line_add(why, ", and this library reads format ");
        wherry_line_number(why, VERSION);
        return refuse(why, "; compile it again", EOPNOTSUPP);
    }
    if (header->length != file_bytes) {
        wherry_line_add(why, "it is cut short, or longer than it says (");
        wherry_line_number(why, file_bytes);
        wherry_line_add(why, " of ");
        wherry_line_number(why, header->length);
        return refuse(why, " bytes)", EINVAL);
    }
    if (header->zero || header->record_bytes != sizeof(struct record) || header->count < 1 ||
        header->count > MOST_PLANS || header->length != sizeof *header + header->count * sizeof(struct record))
        return refuse(why, "it is damaged: its header contradicts itself", EINVAL);
    return 0;
}

static void take(struct wherry_planfile *plan, const struct record *record, const struct header *header, uint32_t which)
{
    plan->isa = (enum wherry_isa)record->choice;
    plan->thresholds = thresholds_of(record);
    plan->which = which;
    plan->count = header->count;
    for (size_t i = 0; i < sizeof plan->name; i++)
        plan->name[i] = record->name[i];
}

static int read_records(long file, struct header *header, const struct wherry_cpu *cpu, uint64_t last_level,
                        struct wherry_planfile *plan, struct wherry_line *why)
{
    const uint32_t crc = header->crc;
    const char *wrong = NULL;
    char reason[160];
    struct wherry_line misfit;
    wherry_line_begin(&misfit, reason, sizeof reason);
    plan->which = 0;
    header->crc = 0;
    uint32_t sum = crc32_of(0, header, sizeof *header);
    for (uint32_t i = 1; i <= header->count; i++) {
        struct record record;
        const int error = read_all(file, &record, sizeof record);
        if (error)
            return refuse(why, "it cannot be read to its end", error);
        sum = crc32_of(sum, &record, sizeof record);
        if (!wrong)
            wrong = fault_of(&record);
        if (wrong || plan->which)
            continue;
        wherry_line_begin(&misfit, reason, sizeof reason);
        if (fits(&record, cpu, last_level, &misfit))
            take(plan, &record, header, i);
    }
    if (sum != crc)
        return refuse(why, "it is damaged: its checksum is wrong", EINVAL);
    if (wrong) {
        wherry_line_add(why, "it has ");
        return refuse(why, wrong, EINVAL);
    }
    if (plan->which)
        return 0;
    if (header->count == 1)
        return refuse(why, reason, ENODEV);
    wherry_line_add(why, "none of its ");
    wherry_line_number(why, header->count);
    wherry_line_add(why, " plans is for this CPU (");
    wherry_line_add(why, cpu->vendor_name);
    wherry_line_add(why, " family ");
    wherry_line_number(why, cpu->family);
    wherry_line_add(why, " model ");
    wherry_line_number(why, cpu->model);
    return refuse(why, "), its features and its cache", ENODEV);
}

static int read_file(long file, const struct wherry_cpu *cpu, uint64_t last_level, struct wherry_planfile *plan,
                     struct wherry_line *why)
{
    struct stat status;
    const long told = kernel(SYS_fstat, file, (long)&status, 0);
    if (told < 0)
        return refuse(why, "it cannot be read", (int)-told);
    if (!S_ISREG(status.st_mode))
        return refuse(why, "it is not a file", EINVAL);
    struct header header;
    const int error = status.st_size ? read_all(file, &header, sizeof header.magic) : EINVAL;
    if (error && error != EINVAL)
        return refuse(why, "it cannot be read", error);
    if (error || !same(header.magic, magic, sizeof header.magic))
        return refuse(why, "it is not a compiled plan (wherry plan compile makes one of a text)", EINVAL);
    const int rest = read_all(file, (char *)&header + sizeof header.magic, sizeof header - sizeof header.magic);
    if (rest)
        return refuse(why, rest == EINVAL ? "it is cut short" : "it cannot be read", rest);
    const int wrong = check_header(&header, (uint64_t)status.st_size, why);
    return wrong ? wrong : read_records(file, &header, cpu, last_level, plan, why);
}

int wherry_planfile_read(const char *path, const struct wherry_cpu *cpu, uint64_t last_level,
                         struct wherry_planfile *plan, struct wherry_line *why)
{
    /* O_NONBLOCK: opening a FIFO would wait for somebody. */
    long file;
    do
        file = kernel(SYS_open, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    while (file == -EINTR);
    if (file < 0) {
        const char *reason = file == -ENOENT || file == -ENOTDIR ? "there is no such file"
                             : file == -EACCES                   ? "it may not be read"
                                                                 : "it cannot be opened";
        return refuse(why, reason, (int)-file);
    }
    const int error = read_file(file, cpu, last_level, plan, why);
    kernel(SYS_close, file, 0, 0);
    return error;
}
