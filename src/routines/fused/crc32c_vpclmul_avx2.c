#define VEC_BYTES 32
#define CRC32C wherry_routine_crc32c_vpclmul_avx2

#include "crc32c.tmpl.h"
