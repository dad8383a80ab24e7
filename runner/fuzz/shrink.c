/* Makes a failing input small: fewer calls, then smaller sizes and plainer places. */
#include "fuzz.h"

static bool still(const uint8_t *input, size_t length, const struct finding *wanted, struct finding *seen)
{
    return !fuzz_execute_apart(input, length, seen) && seen->kind == wanted->kind &&
           seen->call.target == wanted->call.target;
}

static void take(uint8_t *to, const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* Cuts pieces of the calls away, large pieces first. The one that failed stays last. */
static size_t fewer_calls(uint8_t *input, size_t length, struct finding *f)
{
    uint8_t candidate[INPUT_MOST];
    struct finding seen;
    size_t count = (length - HEADER) / RECORD;
    if (count > CALLS)
        count = CALLS;
    if (f->at + 1 < count)
        count = f->at + 1;
    take(candidate, input, HEADER);
    take(candidate + HEADER, input + HEADER + (count - 1) * RECORD, RECORD);
    if (still(candidate, HEADER + RECORD, f, &seen)) { /* nearly always: routines keep no state */
        take(input, candidate, HEADER + RECORD);
        *f = seen;
        return HEADER + RECORD;
    }
    for (size_t piece = count / 2; piece > 0; piece /= 2)
        for (size_t from = 0; from + piece < count;) {
            take(candidate, input, HEADER + from * RECORD);
            take(candidate + HEADER + from * RECORD, input + HEADER + (from + piece) * RECORD,
                 (count - from - piece) * RECORD);
            if (still(candidate, HEADER + (count - piece) * RECORD, f, &seen)) {
                count -= piece;
                take(input, candidate, HEADER + count * RECORD);
                *f = seen;
            } else {
                from += piece;
            }
        }
    return HEADER + count * RECORD;
}

enum { WAYS = 11 };

/* One way to make a call plainer; false when it changes nothing. */
static bool plainer(struct fuzz_call *call, unsigned way)
{
    struct fuzz_call before = *call;
    switch (way) {
    case 0:
        call->thresholds = 0;
        break;
    case 1:
        call->value = 0;
        break;
    case 2:
        call->n /= 2;
        break;
    case 3: /* the end stays where it is */
        call->dst += call->n - call->n / 2;
        call->src += call->n - call->n / 2;
        call->n /= 2;
        break;
    case 4:
        call->n -= call->n > 16 ? 16 : 0;
        break;
    case 5:
        call->n -= call->n > 0;
        break;
    case 6:
        call->dst &= ~(size_t)4095;
        break;
    case 7:
        call->src &= ~(size_t)4095;
        break;
    case 8:
        call->dst &= ~(size_t)63;
        break;
    case 9:
        call->src &= ~(size_t)63;
        break;
    default: /* both, so that the distance stays */
        call->dst -= call->dst < call->src ? call->dst & ~(size_t)4095 : 0;
        call->src -= before.dst - call->dst;
        break;
    }
    return before.n != call->n || before.dst != call->dst || before.src != call->src || before.value != call->value ||
           before.thresholds != call->thresholds;
}

size_t fuzz_shrink(uint8_t *input, size_t length, struct finding *f)
{
    struct finding seen;
    if (!still(input, length, f, &seen))
        return length;
    *f = seen;
    length = fewer_calls(input, length, f);
    uint8_t *record = input + HEADER + f->at * RECORD, kept[RECORD];
    if (f->kind == FOUND_HANG) /* each try would last as long as it takes to see that a call does not end */
        return length;
    bool smaller = true;
    for (unsigned round = 0; smaller && round < 300; round++) {
        smaller = false;
        for (unsigned way = 0; way < WAYS; way++) {
            struct fuzz_call call = f->call;
            if (!plainer(&call, way))
                continue;
            take(kept, record, RECORD);
            fuzz_encode(record, &call);
            if (still(input, length, f, &seen)) {
                *f = seen;
                smaller = true;
            } else {
                take(record, kept, RECORD);
            }
        }
    }
    return length;
}
