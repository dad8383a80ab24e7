#include "stats.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 4096 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double stats_median(const double *values, size_t count, size_t first, size_t step)
{
    double sorted[MOST];
    size_t n = 0;
    for (size_t i = first; i < count && n < MOST; i += step)
        sorted[n++] = values[i];
    if (n == 0)
        return NAN;
    qsort(sorted, n, sizeof *sorted, ascending);
    return middle(sorted, n);
}

/* How many order statistics may be left off at each end: the most k for which fewer than k of n fair coins fall on one
 * side with a chance of at most 2.5 %. */
static size_t left_off(size_t n)
{
    double chance = pow(0.5, (double)n), sum = chance;
    size_t k = 0;
    while (sum <= 0.025 && k < n / 2) {
        k++;
        chance *= (double)(n - k + 1) / (double)k;
        sum += chance;
    }
    return k > 0 ? k - 1 : 0;
}

struct ratio stats_ratio(const double *a, const double *b, size_t count, size_t first, size_t step)
{
    double logs[MOST];
    size_t n = 0;
    for (size_t i = first; i < count && n < MOST; i += step)
        logs[n++] = log(a[i] / b[i]);
    if (n == 0)
        return (struct ratio){NAN, NAN, NAN};
    qsort(logs, n, sizeof *logs, ascending);
    size_t off = left_off(n);
    return (struct ratio){exp(middle(logs, n)), exp(logs[off]), exp(logs[n - 1 - off])};
}

double stats_floor(struct ratio ratio) { return fmax(fabs(ratio.low - 1), fabs(ratio.high - 1)); }
