/* JSON lines to standard output: one object a line, flushed when it ends. */
#ifndef RUNNER_JSON_H
#define RUNNER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From here on the lines go where standard output went, and what anybody else prints there goes nowhere: a peer's words
 * amid a line would damage it. */
void json_apart(void);

void json_begin(const char *event);                   /* {"event":"...", */
void json_string(const char *key, const char *value); /* NULL is null */
void json_int(const char *key, int64_t value);
void json_uint(const char *key, uint64_t value);
void json_double(const char *key, double value); /* NaN and infinities are null */
void json_bool(const char *key, bool value);
void json_doubles(const char *key, const double *values, size_t count);
void json_open(const char *key); /* nested object; key NULL inside an array */
void json_close(void);
void json_open_array(const char *key);
void json_close_array(void);
void json_end(void); /* }\n and flush; exits with a clear line on stderr when the output cannot be written */

#endif
