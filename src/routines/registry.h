/* The registry as C sees it: one row a routine, generated from registry.def. */
#ifndef WHERRY_REGISTRY_H
#define WHERRY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wherry_op {
    WHERRY_OP_copy,
    WHERRY_OP_move,
    WHERRY_OP_set,
    WHERRY_OP_zero,
    WHERRY_OP_csum,
    WHERRY_OP_copy_csum,
    WHERRY_OP_crc32c,
    WHERRY_OP_copy_crc32c,
    WHERRY_OP_iszero,
    WHERRY_OP_pagezero,
    WHERRY_OP_COUNT
};

/* What a routine needs of the CPU, as a tier; plan/ maps it to CPU features. */
enum wherry_needs {
    WHERRY_NEEDS_BASE,
    WHERRY_NEEDS_AVX2,
    WHERRY_NEEDS_AVX512,
    WHERRY_NEEDS_CRC32,
    WHERRY_NEEDS_VPCLMUL,
    WHERRY_NEEDS_VNNI,
    WHERRY_NEEDS_VPCLMUL_AVX2,
    WHERRY_NEEDS_CLZERO
};

enum wherry_trait {
    TRAIT_REP = 1 << 0,         /* a string instruction does the bulk */
    TRAIT_X87 = 1 << 1,         /* uses x87 registers; saves and restores what was in them */
    TRAIT_X87_CLOBBER = 1 << 2, /* uses x87 registers, leaves them empty as the ABI asks */
    TRAIT_MMX_CLOBBER = 1
        << 3,          /* uses MMX registers and ends with emms: x87/MMX contents are lost, the stack is empty */
    TRAIT_NT = 1 << 4, /* non-temporal stores, fenced before return */
    TRAIT_READS_FIRST = 1 << 5, /* reads the destination before it writes */
    TRAIT_PREFETCH = 1 << 6,    /* asks for lines ahead */
    TRAIT_CALLS_LIBC = 1 << 7,  /* hands large sizes to the stock routine */
};

/* The prototypes, one for each way to be called; registry.def says which op has which. */
typedef void *wherry_copy_fn(void *dst, const void *src, size_t n);
typedef void *wherry_set_fn(void *dst, int c, size_t n);
typedef uint32_t wherry_csum_fn(const void *src, size_t n, uint32_t sum);
typedef uint32_t wherry_copy_csum_fn(void *dst, const void *src, size_t n, uint32_t sum);
typedef uint32_t wherry_crc32c_fn(uint32_t crc, const void *src, size_t n);
typedef uint32_t wherry_copy_crc32c_fn(uint32_t crc, void *dst, const void *src, size_t n);
typedef bool wherry_iszero_fn(const void *p, size_t n);
typedef void wherry_pagezero_fn(void *page, size_t n);

struct wherry_routine {
    const char *name;
    enum wherry_op op;
    enum wherry_needs needs;
    unsigned traits;  /* OR of enum wherry_trait */
    size_t quantum;   /* n must be a multiple, in bytes */
    int era;          /* year of the idea */
    const char *file; /* below src/routines */
    const char *source;
    const char *idea;
    union {
        wherry_copy_fn *copy; /* copy, move */
        wherry_set_fn *set;   /* set, zero */
        wherry_csum_fn *csum;
        wherry_copy_csum_fn *copy_csum;
        wherry_crc32c_fn *crc32c;
        wherry_copy_crc32c_fn *copy_crc32c;
        wherry_iszero_fn *iszero;
        wherry_pagezero_fn *pagezero;
        void (*any)(void);
    };
};

extern const struct wherry_routine wherry_routines[];
extern const size_t wherry_routine_count;

extern const char *const wherry_op_names[WHERRY_OP_COUNT];

/* The row with this name, or NULL. */
const struct wherry_routine *wherry_routine_find(const char *name);

#endif
