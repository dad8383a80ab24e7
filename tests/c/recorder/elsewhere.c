/* Copies for others, so that the caller is in a file of its own. */
#include <string.h>

__attribute__((visibility("default"))) void copy_elsewhere(void *to, const void *from, size_t n, unsigned calls)
{
    while (calls-- > 0)
        memcpy(to, from, n);
}
