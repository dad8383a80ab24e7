/* Says which object each function comes from in this process, by each road that leads to it, and whether it works.
 *   dropin-where                 call, dlsym, and memcpy's elder version
 *   dropin-where --dlopen PATH   PATH loaded for nobody else: dlsym finds its functions, the program keeps its own
 */
#include "exercise.h"

#include "relatives.h"

#include <dlfcn.h>
#include <stdio.h>

extern void *elder_memcpy(void *, const void *, size_t);
__asm__(".symver elder_memcpy, memcpy@GLIBC_2.2.5");

static const char *object_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fname : "nowhere";
}

static int says(const char *road, const char *name, const void *address)
{
    return printf("%s %s %s\n", road, name, object_of(address)) < 0;
}

#define FUNCTIONS(X) X(memcpy) X(memmove) X(mempcpy) X(memset) X(bcopy) X(bzero) RELATIVES(X)

static int loaded_apart(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fprintf(stderr, "%s\n", dlerror()) > 0;
    unsigned char from[3000], to[sizeof from];
    int wrong = 0;
#define X(name) wrong |= says("handle", #name, dlsym(handle, #name));
    FUNCTIONS(X)
#undef X
#define X(name) wrong |= says("program", #name, dlsym(RTLD_DEFAULT, #name));
    FUNCTIONS(X)
#undef X
    void *(*copy)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))dlsym(handle, "memcpy");
    for (size_t n = 0; n < sizeof from; n++)
        from[n] = (unsigned char)(n * 7);
    wrong |= copy(to, from, sizeof from) != to || memcmp(to, from, sizeof from) != 0;
    return wrong | dlclose(handle);
}

int main(int count, char **words)
{
    static unsigned char room[EXERCISE_ROOM];
    if (count == 3 && strcmp(words[1], "--dlopen") == 0)
        return loaded_apart(words[2]);
    int wrong = 0;
#define X(name) wrong |= says("call", #name, (const void *)name);
    FUNCTIONS(X)
#undef X
#define X(name) wrong |= says("dlsym", #name, dlsym(RTLD_DEFAULT, #name));
    FUNCTIONS(X)
#undef X
    wrong |= says("elder", "memcpy", (const void *)elder_memcpy);
    char text[] = "elder", copy[sizeof text];
    wrong |= elder_memcpy(copy, text, sizeof text) != copy || strcmp(copy, text) != 0;
    int right = exercise(room, 9000);
    printf("right %d\n", right);
    return wrong || !right;
}
