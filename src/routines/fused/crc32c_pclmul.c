#define VEC_BYTES 16
#define CRC32C wherry_routine_crc32c_pclmul

#include "crc32c.tmpl.h"
