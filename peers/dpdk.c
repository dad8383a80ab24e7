/* DPDK's rte_memcpy exists in a header only: here it becomes a function with the plain name, which a peer needs. */
#include <rte_memcpy.h>
#include <stddef.h>

__attribute__((visibility("default"), aligned(64))) void *memcpy(void *dst, const void *src, size_t n)
{
    return rte_memcpy(dst, src, n);
}
