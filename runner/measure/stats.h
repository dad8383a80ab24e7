/* Paired comparisons: what one routine takes against another, round by round. */
#ifndef MEASURE_STATS_H
#define MEASURE_STATS_H

#include <stddef.h>

/* A ratio with an interval that holds for any distribution, at 95 % or as near as the count allows. */
struct ratio {
    double median, low, high; /* as ratios: 1.25 is a quarter more */
};

/* Of a[i] / b[i], taking every step-th pair from `first` on. Median and interval are of the logarithms. */
struct ratio stats_ratio(const double *a, const double *b, size_t count, size_t first, size_t step);

double stats_median(const double *values, size_t count, size_t first, size_t step);

/* The furthest that either end of the interval lies from 1, as a share: 0.02 is 2 %. */
double stats_floor(struct ratio ratio);

#endif
