/* The names beside the six, some of which no header declares. */
#ifndef RELATIVES_H
#define RELATIVES_H

#include <stddef.h>
#include <string.h>
#include <wchar.h>

extern void *__mempcpy(void *, const void *, size_t);
extern void __bzero(void *, size_t);
extern void *__memcpy_chk(void *, const void *, size_t, size_t);
extern void *__memmove_chk(void *, const void *, size_t, size_t);
extern void *__mempcpy_chk(void *, const void *, size_t, size_t);
extern void *__memset_chk(void *, int, size_t, size_t);
extern void __explicit_bzero_chk(void *, size_t, size_t);
extern wchar_t *__wmemcpy_chk(wchar_t *, const wchar_t *, size_t, size_t);
extern wchar_t *__wmemmove_chk(wchar_t *, const wchar_t *, size_t, size_t);
extern wchar_t *__wmempcpy_chk(wchar_t *, const wchar_t *, size_t, size_t);
extern wchar_t *__wmemset_chk(wchar_t *, wchar_t, size_t, size_t);

#define RELATIVES(X)                                                                                                   \
    X(__mempcpy)                                                                                                       \
    X(__bzero)                                                                                                         \
    X(explicit_bzero)                                                                                                  \
    X(wmemcpy)                                                                                                         \
    X(wmemmove)                                                                                                        \
    X(wmempcpy)                                                                                                        \
    X(wmemset)                                                                                                         \
    X(__memcpy_chk)                                                                                                    \
    X(__memmove_chk)                                                                                                   \
    X(__mempcpy_chk)                                                                                                   \
    X(__memset_chk)                                                                                                    \
    X(__explicit_bzero_chk)                                                                                            \
    X(__wmemcpy_chk)                                                                                                   \
    X(__wmemmove_chk)                                                                                                  \
    X(__wmempcpy_chk)                                                                                                  \
    X(__wmemset_chk)

#endif
