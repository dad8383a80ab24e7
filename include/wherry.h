/* Wherry: memory routines at the limit of the machine.
 *
 * SPDX-License-Identifier: MIT
 *
 * All sizes and offsets are in bytes. No function sets errno, allocates, takes a lock or uses thread-local storage;
 * all are async-signal-safe and safe to call from any thread. They need nothing set up first. Pointers may be
 * anything, NULL included, when n is 0; otherwise [dst, dst + n) must be writable and [src, src + n) readable, and
 * nothing outside these is read or written. Which routine serves a call depends on the CPU (see wherry_isa).
 */
#ifndef WHERRY_H
#define WHERRY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies n bytes from src to dst. Also right when the two overlap. Returns dst. After ISO C memcpy. */
void *wherry_memcpy(void *dst, const void *src, size_t n);

/* Copies n bytes from src to dst, which may overlap in any way. Returns dst. After ISO C memmove. */
void *wherry_memmove(void *dst, const void *src, size_t n);

/* Copies n bytes from src to dst, which may overlap. Returns dst + n. After GNU mempcpy. */
void *wherry_mempcpy(void *dst, const void *src, size_t n);

/* Sets n bytes at dst to (unsigned char)c. Returns dst. After ISO C memset. */
void *wherry_memset(void *dst, int c, size_t n);

/* Copies n bytes from src to dst, which may overlap. Mind the order of the arguments. After 4.3BSD bcopy. */
void wherry_bcopy(const void *src, void *dst, size_t n);

/* Sets n bytes at dst to zero. After 4.3BSD bzero. */
void wherry_bzero(void *dst, size_t n);

/* The version of the library, "MAJOR.MINOR.PATCH"; a static string. */
const char *wherry_version(void);

/* The instruction-set tier that serves the calls above on this CPU: "sse2", "avx2" or "avx512"; a static string. */
const char *wherry_isa(void);

#ifdef __cplusplus
}
#endif

#endif
