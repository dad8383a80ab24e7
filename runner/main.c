#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "surroundings.h"
#include "target.h"
#include "wherry.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"verify", command_verify, "prove routines, public functions and peers right"},
    {"fuzz", command_fuzz, "call them with random sizes, places and overlaps until something is wrong"},
    {"sizes", command_sizes, "measure and print the size table"},
    {"measure", command_measure, "read rows from standard input, write measured cells as JSON lines"},
    {"system", command_system, "the same for a switch between processes and other whole systems"},
    {"hold", command_hold, "make scratch files for system's op=stripes and keep them as long as it is asked to"},
    {"timed", command_timed, "run a program once and tell what it and all it started used, as a JSON line"},
    {"entered", command_entered,
     "become a program, and have the kernel count how often libc's memory routines are entered"},
    {"rehearse", command_rehearse, "make small copies, moves and sets, cached, for a recorder to time"},
    {"list", command_list, "the routines there are"},
    {"cpu", command_cpu, "what this CPU is"},
    {"sharing", command_sharing, "which other CPUs slow this one down while they work"},
};

/* Words of the caller and of files may hold what a terminal would obey, or end the line: those bytes as \xNN. */
static void put_printable(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool of_utf8 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F */
        if (*at < 0x20 || *at == 0x7f || of_utf8)
            fprintf(stderr, "\\x%02x", of_utf8 ? *++at : *at);
        else
            fputc(*at, stderr);
    }
}

static void complain_of(const char *format, va_list arguments)
{
    char said[8192]; /* what is longer is cut: a name of a file has 4096 bytes at most */
    vsnprintf(said, sizeof said, format, arguments);
    fputs("wherry-run: ", stderr);
    put_printable(said);
    fputc('\n', stderr);
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain_of(format, arguments);
    va_end(arguments);
}

int misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain_of(format, arguments);
    va_end(arguments);
    return EXIT_MISUSE;
}

static void help(void)
{
    puts("wherry-run: verifies and measures memory routines, with no need of Python\n\n"
         "usage: wherry-run COMMAND [OPTION ...]\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    puts("\nwherry-run COMMAND --help tells more. Example: wherry-run sizes");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        help();
        return EXIT_MISUSE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help();
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("wherry-run %s\n", wherry_version());
        return EXIT_OK;
    }
    targets_init();
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            /* Ignored, it would keep from us how our children ended; somebody's program is to have it as it came. */
            if (commands[i].run != command_timed && commands[i].run != command_entered)
                signal(SIGCHLD, SIG_DFL);
            return commands[i].run(argc - 1, argv + 1);
        }
    return misuse("no command '%s'; wherry-run --help lists them", argv[1]);
}

/* What a command printed may still wait to be written; a disk that is full shows itself only now. */
int main(int argc, char **argv)
{
    surroundings_speak_plainly();
    int status = run(argc, argv);
    peers_end_with_us();
    bool lost = ferror(stdout);
    errno = 0;
    if (fflush(stdout) == 0 && !lost)
        return status;
    if (status == EXIT_OK) {
        fprintf(stderr, "wherry-run: cannot write to standard output: %s\n",
                errno ? strerror(errno) : "not all of it was taken");
        status = EXIT_FAILED;
    }
    return status;
}
