#define VEC_BYTES 16
#define SYMBOL wherry_guarded_copy_csum_sse2
#define AT(name) .L##name
#include "copy_csum.tmpl.S"
