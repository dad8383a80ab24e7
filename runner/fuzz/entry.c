/* The entry that libFuzzer and AFL++ call: one input, every function that this CPU can run. Never returns after a
 * finding: abort() is how both of them learn of one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void begin(void)
{
    static struct target_list list;
    targets_init();
    targets_add_routines(&list);
    targets_add_public(&list, false);
    const struct target **all = calloc(list.count, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; all && i < list.count; i++)
        if (op_is_plain(list.items[i].op) && !target_unavailable(&list.items[i]))
            all[count++] = &list.items[i];
    if (count == 0)
        abort();
    fuzz_targets(all, count);
    fuzz_init();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    if (!begun)
        begin();
    begun = true;
    struct finding f;
    if (fuzz_execute(data, size, false, &f))
        return 0;
    fuzz_attribute(data, size, &f);
    char message[1024], repeat[4800];
    fuzz_message(message, sizeof message, &f);
    fuzz_case(repeat, sizeof repeat, &f);
    fprintf(stderr, "%s\n%s%s", message, repeat, *repeat ? "\n" : "");
    signal(SIGABRT, SIG_DFL);
    abort();
}
