/* What control groups below ROOT leave to a process of which /proc says what standard input does: bytes, or none. */
#include <stdint.h>
#include <stdio.h>

#include "measure/group.h"

int main(int argc, char **argv)
{
    char groups[8192];
    const size_t length = fread(groups, 1, sizeof groups - 1, stdin);
    groups[length] = '\0';
    const size_t left = group_memory_left(argc > 1 ? argv[1] : "", groups);
    if (left == SIZE_MAX)
        puts("none");
    else
        printf("%zu\n", left);
    return 0;
}
