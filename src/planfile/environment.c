/* The library has the C library beside it, which knows whether its process gained privileges. */
#include "planfile/planfile.h"

#include <stdlib.h>

const char *wherry_planfile_environment(void)
{
    const char *path = secure_getenv("WHERRY_PLAN");
    return path && *path ? path : NULL;
}
