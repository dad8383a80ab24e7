/* Sums of vectors by steps of four, of which `all` adds 64-bit lanes and wraps. How often it did is told by `quarters`,
 * the sum of a quarter of each step's four top words (16 bits), by means of two and two that round up. In units of
 * 2^48, four quarters are at most 4 more than the four top words, and those less than 4 below what they are the top of.
 * So after CSUM_STEPS steps the true sum lies from 4 * CSUM_STEPS below four times `quarters` to less than that above:
 * one of 2^16 numbers, and `all` has its lower 16 bits. Nine instructions a step, where adding every vector's upper
 * half takes twelve. */
#ifndef WHERRY_CSUM_STEPS_H
#define WHERRY_CSUM_STEPS_H

#define CSUM_STEPS 8192

/* Added to four times `quarters`, less the top word of `all`: how often it wrapped is what that has above 16 bits. */
#define CSUM_STEPS_ROUND (4 * CSUM_STEPS - 1)

#endif
