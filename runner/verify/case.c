/* A case as text and back, so that each failure can print the command that repeats it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

void case_print(char *text, size_t room, const struct family *family, const struct vcase *one)
{
    snprintf(text, room,
             "%s:n=%" PRIu64 ",d=%" PRIu64 ",s=%" PRIu64 ",dist=%" PRId64 ",c=%d,at=%u,calls=%" PRIu64
             ",seed=0x%" PRIx64,
             family->name, one->n, one->d, one->s, one->dist, one->c, one->at, one->calls, one->seed);
}

/* Where large sizes lie across an address the offset may be all of them. */
static const uint64_t OFFSET = 65536, LARGE_OFFSET = 131072;

const char *case_parse(const char *text, const struct family **family, struct vcase *one)
{
    static char wrong[256];
    const char *colon = strchr(text, ':');
    *family = NULL;
    const struct family *each;
    for (size_t i = 0; colon && (each = verify_family(i)) != NULL; i++)
        if (strlen(each->name) == (size_t)(colon - text) && strncmp(each->name, text, (size_t)(colon - text)) == 0)
            *family = each;
    if (!*family) {
        snprintf(wrong, sizeof wrong, "--case '%s': begins with no family; as in 'sweep:n=777,d=13,s=37,seed=0x5'",
                 text);
        return wrong;
    }
    *one = (struct vcase){.calls = 1};
    for (const char *p = colon + 1; *p;) {
        const char *end = strchrnul(p, ',');
        const char *equals = memchr(p, '=', (size_t)(end - p));
        size_t length = equals ? (size_t)(equals - p) : 0;
        char *stop = NULL;
        errno = 0;
        bool minus = equals && equals[1] == '-';
        uint64_t value = equals ? strtoull(equals + 1, &stop, 0) : 0;
        int64_t number = minus ? strtoll(equals + 1, NULL, 0) : (int64_t)value;
#define KEY(k) (length == sizeof k - 1 && strncmp(p, k, length) == 0)
        bool known = true, is_signed = KEY("dist") || KEY("c");
        if (KEY("n"))
            one->n = value;
        else if (KEY("d"))
            one->d = value;
        else if (KEY("s"))
            one->s = value;
        else if (KEY("dist"))
            one->dist = number;
        else if (KEY("c"))
            one->c = (int)number;
        else if (KEY("at"))
            one->at = (unsigned)value;
        else if (KEY("calls"))
            one->calls = value;
        else if (KEY("seed"))
            one->seed = value;
        else
            known = false;
#undef KEY
        if (!known || !equals || stop != end || stop == equals + 1 || errno || (minus && !is_signed)) {
            snprintf(wrong, sizeof wrong,
                     "--case '%s': cannot read '%.*s'; keys are n, d, s, dist, c, at, calls, seed with integers", text,
                     (int)(end - p), p);
            return wrong;
        }
        p = *end ? end + 1 : end;
    }
    const uint64_t farthest = (*family)->farthest ? (*family)->farthest : FARTHEST;
    const uint64_t offset = (*family)->farthest ? LARGE_OFFSET : OFFSET;
    const uint64_t place = (*family)->marks && one->n > offset ? one->n - 1 : offset;
    if (one->n > farthest || one->d > offset || one->s > place || one->calls > 100000000 ||
        one->dist > (int64_t)farthest || one->dist < -(int64_t)farthest) {
        snprintf(wrong, sizeof wrong,
                 "--case '%s': too large; n and dist to %" PRIu64 " GiB, d and s to %" PRIu64 ", calls to 100000000",
                 text, farthest >> 30, offset);
        return wrong;
    }
    const char *lacking = (*family)->lacks_room ? (*family)->lacks_room(one) : NULL;
    if (lacking) {
        snprintf(wrong, sizeof wrong, "--case '%s': the %s family has room for %s", text, (*family)->name, lacking);
        return wrong;
    }
    if (one->calls == 0)
        one->calls = 1;
    return NULL;
}
