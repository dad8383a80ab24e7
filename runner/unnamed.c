#include "unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int unnamed_file(const char *directory)
{
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    /* Some file systems have no such files: one whose name goes at once. */
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/wherry-XXXXXX", directory) >= (int)sizeof path)
        errno = ENAMETOOLONG;
    else if ((file = mkostemp(path, O_CLOEXEC)) >= 0)
        unlink(path);
    return file;
}
