#define VEC_BYTES 16
#define CSUM wherry_routine_csum_sse2

#include "csum.tmpl.h"
