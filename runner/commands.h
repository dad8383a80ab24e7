/* The subcommands of wherry-run. Each gets its own argv (argv[0] is the subcommand) and returns the exit status:
 * 0 all right, 1 a check failed, 2 misuse. */
#ifndef RUNNER_COMMANDS_H
#define RUNNER_COMMANDS_H

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_MISUSE = 2 };

int command_list(int argc, char **argv);
int command_cpu(int argc, char **argv);
int command_sharing(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_fuzz(int argc, char **argv);
int command_measure(int argc, char **argv);
int command_system(int argc, char **argv);
int command_hold(int argc, char **argv);
int command_timed(int argc, char **argv);
int command_entered(int argc, char **argv);
int command_rehearse(int argc, char **argv);
int command_sizes(int argc, char **argv);

/* Prints "wherry-run: " and the message as one line to standard error, what is not printable in it as \xNN, and returns
 * EXIT_MISUSE. */
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void complain(const char *format, ...) __attribute__((format(printf, 1, 2))); /* the same of what is no misuse */

#endif
