/* Reads records from a mapped file that somebody else truncates meanwhile, 1,000 times over.
 *
 *   cc truncated_file.c -o truncated_file $(pkg-config --cflags --libs wherry) -pthread && ./truncated_file
 *
 * With memcpy the first read behind the new end of the file kills the process with SIGBUS. wherry_copy_nofault says how
 * many bytes it could not copy instead, and those before them are right. docs/nofault.md walks through it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wherry.h>

enum { TURNS = 1000, FILE_BYTES = 1 << 20 };

static int file;
static atomic_int turn; /* the turn in which the file is whole; the other thread then truncates it */
static unsigned char record[FILE_BYTES];

static unsigned char byte_at(size_t offset, int of_turn)
{
    return (unsigned char)(offset * 31 + offset / 4096 + (unsigned)of_turn * 7 + 1);
}

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* Writes the file anew for this turn. */
static void make_whole(int of_turn)
{
    for (size_t i = 0; i < FILE_BYTES; i++)
        record[i] = byte_at(i, of_turn);
    if (pwrite(file, record, FILE_BYTES, 0) != FILE_BYTES)
        give_up("pwrite");
}

/* The other component: it knows nothing of readers. */
static void *truncates(void *unused)
{
    (void)unused;
    unsigned state = 12345;
    for (int seen = 0; seen < TURNS;) {
        const int now = atomic_load(&turn);
        if (now == seen)
            continue;
        seen = now;
        state = state * 1664525 + 1013904223;
        for (volatile unsigned pause = state >> 15; pause > 0; pause--)
            continue; /* so that the end arrives before, within and after the copy */
        if (ftruncate(file, (off_t)(state >> 8) % FILE_BYTES) != 0)
            give_up("ftruncate");
    }
    return NULL;
}

static off_t size_now(void)
{
    struct stat now;
    if (fstat(file, &now) != 0)
        give_up("fstat");
    return now.st_size;
}

int main(void)
{
    unsigned long cut = 0, whole = 0, bytes = 0;
    pthread_t other;

    /* Once, early: from here on faults of these copies are ours, and all others go where they went before. */
    const int error = wherry_nofault_init();
    struct wherry_nofault_status status;
    wherry_nofault_status(&status);
    printf("wherry_nofault_init: %d; %s\n", error, status.message);

    char name[] = "/tmp/wherry-example-XXXXXX";
    file = mkstemp(name);
    if (file < 0)
        give_up("mkstemp");
    unlink(name);
    make_whole(0);
    const unsigned char *mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        give_up("mmap");
    if (pthread_create(&other, NULL, truncates, NULL) != 0)
        give_up("pthread_create");

    for (int i = 1; i <= TURNS; i++) {
        make_whole(i);
        atomic_store(&turn, i);
        while (i % 5 == 0 && size_now() == FILE_BYTES)
            continue; /* some have been truncated before, however busy the machine is */

        struct wherry_fault fault;
        const size_t left = wherry_copy_nofault(record, mapped, FILE_BYTES, &fault);
        size_t usable = FILE_BYTES - left;
        if (left > 0) {
            cut++;
            if (fault.writing || fault.addr != mapped + usable) {
                fprintf(stderr, "turn %d: a fault elsewhere, at %p\n", i, fault.addr);
                return 1;
            }
        } else {
            whole++;
        }

        /* The last page of a truncated file reads as zeros behind its end without any fault, so what the file holds now
         * decides how much of what was copied belonged to it. */
        const off_t size = size_now();
        if (usable > (size_t)size)
            usable = (size_t)size;
        for (size_t k = 0; k < usable; k++)
            if (record[k] != byte_at(k, i)) {
                fprintf(stderr, "turn %d: byte %zu of %zu is wrong\n", i, k, usable);
                return 1;
            }
        bytes += usable;

        /* Wait until it has been truncated, for the next turn writes it anew. */
        while (size_now() == FILE_BYTES)
            continue;
    }
    pthread_join(other, NULL);
    printf("%d reads: %lu cut short by a truncation, %lu before it; %.1f MB compared, no crash and no wrong byte\n",
           TURNS, cut, whole, (double)bytes / 1e6);
    return 0;
}
