/* Whether the holder of a lock may still be at it (guard/holder.h). */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/holder.h"

static int wrong;

static void expect(const char *what, bool is)
{
    if (!is) {
        printf("not so: %s\n", what);
        wrong = 1;
    }
}

static pthread_barrier_t meeting;
static uint64_t other;

static void *stays(void *unused)
{
    (void)unused;
    other = holder_self();
    pthread_barrier_wait(&meeting); /* it is here */
    pthread_barrier_wait(&meeting); /* and has been looked at */
    return NULL;
}

int main(void)
{
    const uint64_t self = holder_self();
    expect("this thread is no other", !holder_is_another_here(self, self));
    expect("another process is not here", !holder_is_another_here(self + ((uint64_t)1 << 32), self));
    pthread_t thread;
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&thread, NULL, stays, NULL);
    pthread_barrier_wait(&meeting);
    expect("another thread is here", holder_is_another_here(other, self));
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    /* A child in a PID namespace of its own has its parent's number, if that has one, and finds there a thread that is
     * not its own. The kernel may still be taking the thread out of its list. */
    for (int i = 0; i < 1000 && holder_is_another_here(other, self); i++)
        usleep(1000);
    expect("a thread that has ended is not here", !holder_is_another_here(other, self));
    puts(wrong ? "wrong" : "right");
    return wrong;
}
