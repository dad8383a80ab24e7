/* What the paths go through: an end to give bytes to, and one to take them from. */
#ifndef RUNNER_USERCOPY_ENDS_H
#define RUNNER_USERCOPY_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum end { END_PIPE, END_FILE, END_UNIX, END_TCP, END_ZERO, END_ITSELF, END_NONE, END_COUNT };

struct ends {
    int in, out; /* descriptors: bytes are written to in and read from out */
    int nowhere; /* /dev/null, to which a pipe is emptied */
    bool open;
    char problem[160]; /* why it could not be opened */
};

/* Opens an end, or says in its problem why not. */
const struct ends *ends_open(enum end which);

#endif
