/* Where to record. */
#include "recorder.h"

#include "../given.h"

bool recorder_is_trial(void) { return given("WHERRY_TRIAL") != 0; }

const char *recorder_directory(void)
{
    const char *found = given("WHERRY_RECORD");
    return found && *found == '/' ? found : NULL;
}
