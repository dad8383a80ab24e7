#include "json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool need_comma;
static FILE *apart; /* NULL: lines go to standard output */

static FILE *out(void) { return apart ? apart : stdout; }

void json_apart(void)
{
    int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *file = own >= 0 && nothing >= 0 ? fdopen(own, "w") : NULL;
    if (file && fflush(stdout) == 0 && dup2(nothing, STDOUT_FILENO) >= 0)
        apart = file;
    else if (file)
        fclose(file);
    else if (own >= 0)
        close(own);
    if (nothing >= 0)
        close(nothing);
}

static void put_quoted(const char *text)
{
    putc('"', out());
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out(), "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(out(), "\\u%04x", *p);
        else
            putc(*p, out());
    }
    putc('"', out());
}

static void put_key(const char *key)
{
    if (need_comma)
        putc(',', out());
    need_comma = true;
    if (key) {
        put_quoted(key);
        putc(':', out());
    }
}

static void put_double(double value)
{
    if (isfinite(value))
        fprintf(out(), "%.10g", value);
    else
        fputs("null", out());
}

void json_begin(const char *event)
{
    putc('{', out());
    need_comma = false;
    json_string("event", event);
}

void json_string(const char *key, const char *value)
{
    put_key(key);
    if (value)
        put_quoted(value);
    else
        fputs("null", out());
}

void json_int(const char *key, int64_t value)
{
    put_key(key);
    fprintf(out(), "%" PRId64, value);
}

void json_uint(const char *key, uint64_t value)
{
    put_key(key);
    fprintf(out(), "%" PRIu64, value);
}

void json_double(const char *key, double value)
{
    put_key(key);
    put_double(value);
}

void json_bool(const char *key, bool value)
{
    put_key(key);
    fputs(value ? "true" : "false", out());
}

void json_doubles(const char *key, const double *values, size_t count)
{
    put_key(key);
    putc('[', out());
    for (size_t i = 0; i < count; i++) {
        if (i)
            putc(',', out());
        put_double(values[i]);
    }
    putc(']', out());
}

void json_open(const char *key)
{
    put_key(key);
    putc('{', out());
    need_comma = false;
}

void json_close(void)
{
    putc('}', out());
    need_comma = true;
}

void json_open_array(const char *key)
{
    put_key(key);
    putc('[', out());
    need_comma = false;
}

void json_close_array(void)
{
    putc(']', out());
    need_comma = true;
}

void json_end(void)
{
    fputs("}\n", out());
    if (fflush(out()) != 0 || ferror(out())) {
        perror("wherry-run: cannot write to standard output");
        exit(1);
    }
}
