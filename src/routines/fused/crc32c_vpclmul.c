#define VEC_BYTES 64
#define CRC32C wherry_routine_crc32c_vpclmul

#include "crc32c.tmpl.h"
