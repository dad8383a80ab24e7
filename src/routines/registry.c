#include "registry.h"

#include <string.h>

#define SIGNATURE_copy(symbol) void *symbol(void *, const void *, size_t);
#define SIGNATURE_move(symbol) void *symbol(void *, const void *, size_t);
#define SIGNATURE_set(symbol) void *symbol(void *, int, size_t);
#define SIGNATURE_zero(symbol) void *symbol(void *, int, size_t);
#define SIGNATURE_csum(symbol) uint32_t symbol(const void *, size_t, uint32_t);
#define SIGNATURE_copy_csum(symbol) uint32_t symbol(void *, const void *, size_t, uint32_t);
#define SIGNATURE_crc32c(symbol) uint32_t symbol(uint32_t, const void *, size_t);
#define SIGNATURE_copy_crc32c(symbol) uint32_t symbol(uint32_t, void *, const void *, size_t);
#define SIGNATURE_iszero(symbol) bool symbol(const void *, size_t);
#define SIGNATURE_pagezero(symbol) void symbol(void *, size_t);
#define ROUTINE(name, op, needs, traits, quantum, era, file, source, idea) SIGNATURE_##op(wherry_routine_##name)
#include "registry.def"
#undef ROUTINE

#define MEMBER_copy(symbol) .copy = symbol
#define MEMBER_move(symbol) .copy = symbol
#define MEMBER_set(symbol) .set = symbol
#define MEMBER_zero(symbol) .set = symbol
#define MEMBER_csum(symbol) .csum = symbol
#define MEMBER_copy_csum(symbol) .copy_csum = symbol
#define MEMBER_crc32c(symbol) .crc32c = symbol
#define MEMBER_copy_crc32c(symbol) .copy_crc32c = symbol
#define MEMBER_iszero(symbol) .iszero = symbol
#define MEMBER_pagezero(symbol) .pagezero = symbol

const struct wherry_routine wherry_routines[] = {
#define ROUTINE(n, o, need, trait, quant, year, path, src, text)                                                       \
    {.name = #n,                                                                                                       \
     .op = WHERRY_OP_##o,                                                                                              \
     .needs = WHERRY_NEEDS_##need,                                                                                     \
     .traits = (trait),                                                                                                \
     .quantum = (quant),                                                                                               \
     .era = (year),                                                                                                    \
     .file = #path,                                                                                                    \
     .source = (src),                                                                                                  \
     .idea = (text),                                                                                                   \
     MEMBER_##o(wherry_routine_##n)},
#include "registry.def"
#undef ROUTINE
};

const size_t wherry_routine_count = sizeof wherry_routines / sizeof wherry_routines[0];

const char *const wherry_op_names[WHERRY_OP_COUNT] = {
    "copy", "move", "set", "zero", "csum", "copy_csum", "crc32c", "copy_crc32c", "iszero", "pagezero",
};

const struct wherry_routine *wherry_routine_find(const char *name)
{
    for (size_t i = 0; i < wherry_routine_count; i++)
        if (strcmp(wherry_routines[i].name, name) == 0)
            return &wherry_routines[i];
    return NULL;
}
