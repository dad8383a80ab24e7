/* Where to record. */
#include "recorder.h"

#include "../given.h"

const char *recorder_directory(void)
{
    const char *found = given("WHERRY_RECORD");
    return found && *found == '/' ? found : NULL;
}
