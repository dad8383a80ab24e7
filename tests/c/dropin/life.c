/* A life with threads, forks, exec and signals: handlers that interrupt copies and copy themselves, in every thread.
 *   dropin-life [THREADS FORKS MILLISECONDS]
 */
#include "exercise.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

static atomic_int wrong, done, handled;

static void on_signal(int signo)
{
    unsigned char room[EXERCISE_ROOM];
    (void)signo;
    if (!exercise(room, 700))
        atomic_store(&wrong, 1);
    atomic_fetch_add(&handled, 1);
}

static void *work(void *unused)
{
    unsigned char *room = malloc(EXERCISE_ROOM);
    while (!atomic_load(&done))
        if (!exercise(room, 9000))
            atomic_store(&wrong, 1);
    free(room);
    return unused;
}

int main(int count, char **words)
{
    static unsigned char room[EXERCISE_ROOM];
    if (count == 2) /* the exec'd child */
        return !exercise(room, 9000);
    int threads = count == 4 ? atoi(words[1]) : 4, forks = count == 4 ? atoi(words[2]) : 8;
    int milliseconds = count == 4 ? atoi(words[3]) : 400;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {.it_interval = {0, 700}, .it_value = {0, 700}};
    setitimer(ITIMER_PROF, &every, NULL);

    pthread_t thread[MOST_THREADS];
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 3;
    for (int i = 0; i < forks; i++) {
        const struct timespec pause = {0, milliseconds * 1000000L / forks};
        nanosleep(&pause, NULL);
        if (threads)
            pthread_kill(thread[i % threads], SIGUSR1);
        pid_t child = fork();
        if (child == 0) {
            if (i % 2)
                execl("/proc/self/exe", words[0], "child", (char *)NULL);
            _exit(!exercise(room, 9000));
        }
        int status = -1;
        while (waitpid(child, &status, 0) < 0) {
        }
        if (status != 0)
            atomic_store(&wrong, 1);
    }
    atomic_store(&done, 1);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("signals %d wrong %d\n", atomic_load(&handled), atomic_load(&wrong));
    return atomic_load(&wrong) || (threads && atomic_load(&handled) == 0);
}
