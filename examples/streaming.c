/* When do stores past the caches pay? For each size: the copy by itself, the copy and a reader of its destination right
 * after it, and the copy amid work on 256 KiB of other data: time for each, wherry_memcpy_stream's over
 * wherry_memcpy's. Below 1 the stream wins. docs/streaming.md says what to make of it.
 *
 *     cc -O2 streaming.c $(pkg-config --cflags --libs wherry) && ./a.out
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wherry.h>

enum { OTHER = 256 << 10, ROUNDS = 15, LEAST = 1024 };

typedef void *copier(void *dst, const void *src, size_t n);

static char *src, *dst, *other;
static size_t span; /* bytes of src and dst that are walked */

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Loads a word of each line; a chain of additions keeps the compiler honest. */
static uint64_t read_lines(const char *p, size_t n)
{
    uint64_t sum = 0, word;
    for (size_t i = 0; i + sizeof word <= n; i += 64) {
        memcpy(&word, p + i, sizeof word);
        sum += word;
    }
    return sum;
}

enum reader { NOBODY, OF_THE_DESTINATION, OF_OTHER_DATA, READERS };

/* ns for one copy and its reader, over enough of them to last. */
static double timed(copier *copy, size_t n, enum reader reader)
{
    static volatile uint64_t sink;
    size_t calls = ((size_t)16 << 20) / n, at = 0;
    calls = calls < 2 ? 2 : calls > 4096 ? 4096 : calls;
    uint64_t sum = 0;
    const double begin = now_ns();
    for (size_t i = 0; i < calls; i++) {
        copy(dst + at, src + at, n);
        if (reader == OF_THE_DESTINATION)
            sum += read_lines(dst + at, n);
        else if (reader == OF_OTHER_DATA)
            sum += read_lines(other, OTHER);
        at = at + 2 * n <= span ? at + n : 0;
    }
    const double ns = (now_ns() - begin) / (double)calls;
    sink = sum;
    (void)sink;
    return ns;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians over rounds in which both take turns; ratio[ROUNDS] keeps what they differ by. */
static void compare(size_t n, enum reader reader, double *plain_ns, double *ratio)
{
    double plain[ROUNDS], ratios[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        const double first = timed(round % 2 ? wherry_memcpy : wherry_memcpy_stream, n, reader);
        const double second = timed(round % 2 ? wherry_memcpy_stream : wherry_memcpy, n, reader);
        if (round < 0)
            continue;
        plain[round] = round % 2 ? first : second;
        ratios[round] = round % 2 ? second / first : first / second;
    }
    qsort(plain, ROUNDS, sizeof *plain, ascending);
    qsort(ratios, ROUNDS, sizeof *ratios, ascending);
    *plain_ns = plain[ROUNDS / 2];
    *ratio = ratios[ROUNDS / 2];
}

static char *touched(size_t n)
{
    char *p = aligned_alloc(4096, n);
    if (!p) {
        fputs("streaming: out of memory\n", stderr);
        exit(1);
    }
    memset(p, 1, n);
    return p;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    const size_t most = argc > 1 ? strtoull(argv[1], &end, 0) : (size_t)128 << 20;
    const int wrong = argc > 2 ? 2 : end && (*end || argv[1][0] < '0' || argv[1][0] > '9' || most < LEAST);
    if (wrong) {
        fprintf(stderr, "streaming: '%s': give the largest size, in bytes, %d or more, and nothing else\n", argv[wrong],
                LEAST);
        return 2;
    }
    static const char *const where[] = {"the same bytes again", "new bytes each time"};
    src = touched(most);
    dst = touched(most);
    other = touched(OTHER);
    for (int walk = 0; walk < 2; walk++) {
        printf("%s\n%12s %30s %30s %30s\n%12s", walk ? where[1] : where[0], "", "the copy", "and a reader of it",
               "and a reader of 256 KiB more", "bytes");
        for (int i = 0; i < READERS; i++)
            printf(" %16s %13s", "wherry_memcpy ns", "stream/memcpy");
        putchar('\n');
        for (size_t n = LEAST; n <= most; n *= 4) {
            span = walk ? most : n;
            printf("%12zu", n);
            for (int reader = NOBODY; reader < READERS; reader++) {
                double ns, ratio;
                compare(n, (enum reader)reader, &ns, &ratio);
                printf(" %16.0f %13.2f", ns, ratio);
            }
            putchar('\n');
            fflush(stdout);
        }
    }
    free(src);
    free(dst);
    free(other);
    return 0;
}
