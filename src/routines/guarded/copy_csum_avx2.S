#define VEC_BYTES 32
#define SYMBOL wherry_guarded_copy_csum_avx2
#define AT(name) .L##name
#include "copy_csum.tmpl.S"
