#define VEC_BYTES 64
#define CRC32C wherry_routine_copy_crc32c_vpclmul
#define COPY

#include "crc32c.tmpl.h"
