/* Who was called when the process ended. A peer may call _exit, which nothing in this process can catch; a child that
 * waits for the end then writes the `crash` line in its place. Without it the caller would blame whom it heard of last.
 */
#ifndef MEASURE_LAST_WORDS_H
#define MEASURE_LAST_WORDS_H

#include <stdint.h>

void last_words_begin(void);                          /* starts the child; without it nothing is told */
void last_words_of(int64_t row, const char *routine); /* from here on this one is called; NULL: nobody */
void last_words_over(void);                           /* the end that comes now is our own */

#endif
