/* Which instructions are stores that a fence has to follow, by their bytes: also those that this CPU lacks. */
#include <stdio.h>

#include "verify/stores.h"

enum { LONGEST = 15 };

static const struct {
    const char *text;
    uint8_t bytes[LONGEST];
    enum store_kind kind;
} cases[] = {
    {"movnti %rax,(%rdi)", {0x48, 0x0f, 0xc3, 0x07}, STORE_WEAK},
    {"movntq %mm0,(%rdi)", {0x0f, 0xe7, 0x07}, STORE_WEAK},
    {"movntps %xmm8,(%rdi)", {0x44, 0x0f, 0x2b, 0x07}, STORE_WEAK},
    {"movntdq %xmm0,(%edi)", {0x67, 0x66, 0x0f, 0xe7, 0x07}, STORE_WEAK},
    {"vmovntdq %ymm0,(%rdi)", {0xc5, 0xfd, 0xe7, 0x07}, STORE_WEAK},
    {"vmovntdq %ymm0,(%r8)", {0xc4, 0xc1, 0x7d, 0xe7, 0x00}, STORE_WEAK},
    {"vmovntdq %zmm0,(%rdi)", {0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x07}, STORE_WEAK},
    {"maskmovq %mm1,%mm0", {0x0f, 0xf7, 0xc1}, STORE_WEAK},
    {"maskmovdqu %xmm1,%xmm0", {0x66, 0x0f, 0xf7, 0xc1}, STORE_WEAK},
    {"vmaskmovdqu %xmm1,%xmm0", {0xc5, 0xf9, 0xf7, 0xc1}, STORE_WEAK},
    {"vmaskmovdqu %xmm9,%xmm0", {0xc4, 0xc1, 0x79, 0xf7, 0xc1}, STORE_WEAK},
    {"clzero", {0x0f, 0x01, 0xfc}, STORE_WEAK},
    {"movdiri %rax,(%rdi)", {0x48, 0x0f, 0x38, 0xf9, 0x07}, STORE_WEAK},
    {"movdiri %eax,(%rdi)", {0x0f, 0x38, 0xf9, 0x07}, STORE_WEAK},
    {"movdir64b (%rsi),%rdi", {0x66, 0x0f, 0x38, 0xf8, 0x3e}, STORE_WEAK},
    {"sfence", {0x0f, 0xae, 0xf8}, STORE_FENCE},
    {"mfence", {0x0f, 0xae, 0xf0}, STORE_FENCE},
    {"lock orl $0,(%rsp)", {0xf0, 0x83, 0x0c, 0x24, 0x00}, STORE_FENCE},
    {"xchg %rax,(%rdi)", {0x48, 0x87, 0x07}, STORE_FENCE},
    {"rep movsb", {0xf3, 0xa4}, STORE_REPEATED},
    {"rep stosq", {0xf3, 0x48, 0xab}, STORE_REPEATED},
    {"xchg %rax,%rdi", {0x48, 0x87, 0xc7}, STORE_PLAIN},
    {"lfence", {0x0f, 0xae, 0xe8}, STORE_PLAIN},
    {"rdtscp", {0x0f, 0x01, 0xf9}, STORE_PLAIN},
    {"pshufb %xmm1,%xmm0", {0x66, 0x0f, 0x38, 0x00, 0xc1}, STORE_PLAIN},
    {"vpshufb %xmm1,%xmm0,%xmm0", {0xc4, 0xe2, 0x79, 0x00, 0xc1}, STORE_PLAIN},
    {"sarx %eax,(%rdi),%ecx", {0xc4, 0xe2, 0x7a, 0xf7, 0x0f}, STORE_PLAIN},
    {"movdqu %xmm0,(%rdi)", {0xf3, 0x0f, 0x7f, 0x07}, STORE_PLAIN},
    {"vmovdqa %ymm0,(%rdi)", {0xc5, 0xfd, 0x7f, 0x07}, STORE_PLAIN},
    {"mov %rax,(%rdi)", {0x48, 0x89, 0x07}, STORE_PLAIN},
};

int main(void)
{
    static const char *const names[] = {"plain", "weak", "a fence", "repeated"};
    int wrong = 0;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const enum store_kind kind = store_kind(cases[i].bytes);
        if (kind == cases[i].kind)
            continue;
        printf("%s: %s, and not %s\n", cases[i].text, names[kind], names[cases[i].kind]);
        wrong++;
    }
    return wrong != 0;
}
