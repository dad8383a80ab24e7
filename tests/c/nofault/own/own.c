/* Who owns SIGSEGV and SIGBUS, scene by scene: own SCENE. Exit status 0 when all was as it must be. */
#include "scenes.h"

unsigned char *edge;
sigjmp_buf escape;
volatile int calls;
volatile uintptr_t where, stack_of_handler;
sigset_t mask_seen;
bool briefly;

void host_jumps(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    int local;
    calls++;
    where = (uintptr_t)info->si_addr;
    stack_of_handler = (uintptr_t)&local;
    siglongjmp(escape, 1);
}

void host_jumps_plain(int signo)
{
    (void)signo;
    calls++;
    siglongjmp(escape, 1);
}

void host_looks(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    (void)context;
    sigprocmask(SIG_BLOCK, NULL, &mask_seen);
    siglongjmp(escape, 1);
}

void sent(void)
{
    raise(SIGSEGV);
    _exit(0);
}

int main(int argc, char **argv)
{
    const struct named_scene *const files[] = {scenes_of_faults, scenes_of_later_handlers, scenes_of_places};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (const struct named_scene *scene = files[i]; scene->name; scene++) {
            if (argc < 2) {
                puts(scene->name);
            } else if (strcmp(argv[1], scene->name) == 0) {
                edge = edge_of(false);
                briefly = argc > 2 && strcmp(argv[2], "briefly") == 0;
                scene->run();
                return 0;
            }
        }
    return argc < 2 ? 0 : 2;
}
