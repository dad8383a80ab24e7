#define VEC_BYTES 16
#define CRC32C wherry_routine_copy_crc32c_pclmul
#define COPY

#include "crc32c.tmpl.h"
