/* A program and everything that it starts, until the last of them has ended: what they used. */
#ifndef TIMED_TREE_H
#define TIMED_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct tree_order {
    char **argv;
    char **set; /* KEY=VALUE, or KEY alone to take it away; NULL at the end */
    double limit_s;
};

struct tree_figures {
    int start_error;     /* errno of the exec that failed, else 0 */
    int status;          /* as wait4 has it, of the program itself */
    bool timed_out;      /* ended by us after limit_s */
    bool interrupted;    /* ended by us because we were told to end */
    unsigned left;       /* processes that still ran a moment after the program had ended, and were ended by us */
    unsigned stops;      /* how often Ctrl-Z (SIGTSTP) stopped us, and with us the program's group */
    uint64_t elapsed_ns; /* until the program itself ended, without those stops */
    uint64_t user_us, system_us;
    uint64_t peak_bytes; /* of the largest process */
    uint64_t processes;  /* waited for by us: the program, and those whose parent ended before them */
};

/* Runs it with this process' own standard streams. Returns 0, or the errno of what kept it from being tried. */
int tree_run(const struct tree_order *order, struct tree_figures *figures);

#endif
