/* The speed of the core's clock, which nothing tells inside a virtual machine: nanoseconds become cycles by it. */
#ifndef MEASURE_GHZ_H
#define MEASURE_GHZ_H

/* Gigahertz of the CPU that the caller is pinned to, under load. Takes about 25 ms. */
double clock_ghz(void);

#endif
