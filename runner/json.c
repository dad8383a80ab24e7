#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool need_comma;

static void put_quoted(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    }
    putchar('"');
}

static void put_key(const char *key)
{
    if (need_comma)
        putchar(',');
    need_comma = true;
    if (key) {
        put_quoted(key);
        putchar(':');
    }
}

static void put_double(double value)
{
    if (isfinite(value))
        printf("%.10g", value);
    else
        fputs("null", stdout);
}

void json_begin(const char *event)
{
    putchar('{');
    need_comma = false;
    json_string("event", event);
}

void json_string(const char *key, const char *value)
{
    put_key(key);
    if (value)
        put_quoted(value);
    else
        fputs("null", stdout);
}

void json_int(const char *key, int64_t value)
{
    put_key(key);
    printf("%" PRId64, value);
}

void json_uint(const char *key, uint64_t value)
{
    put_key(key);
    printf("%" PRIu64, value);
}

void json_double(const char *key, double value)
{
    put_key(key);
    put_double(value);
}

void json_bool(const char *key, bool value)
{
    put_key(key);
    fputs(value ? "true" : "false", stdout);
}

void json_doubles(const char *key, const double *values, size_t count)
{
    put_key(key);
    putchar('[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            putchar(',');
        put_double(values[i]);
    }
    putchar(']');
}

void json_open(const char *key)
{
    put_key(key);
    putchar('{');
    need_comma = false;
}

void json_close(void)
{
    putchar('}');
    need_comma = true;
}

void json_open_array(const char *key)
{
    put_key(key);
    putchar('[');
    need_comma = false;
}

void json_close_array(void)
{
    putchar(']');
    need_comma = true;
}

void json_end(void)
{
    fputs("}\n", stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("wherry-run: cannot write to standard output");
        exit(1);
    }
}
