#define VEC_BYTES 32
#define CRC32C wherry_routine_copy_crc32c_vpclmul_avx2
#define COPY

#include "crc32c.tmpl.h"
