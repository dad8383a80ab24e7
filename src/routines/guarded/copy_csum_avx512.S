#define VEC_BYTES 64
#define SYMBOL wherry_guarded_copy_csum_avx512
#define AT(name) .L##name
#include "copy_csum.tmpl.S"
