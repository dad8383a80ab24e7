/* Which plan the drop-in is given. */
#include "planfile/planfile.h"

#include "given.h"

const char *wherry_planfile_environment(void) { return given("WHERRY_PLAN"); }
