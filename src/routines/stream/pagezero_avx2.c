/* pagezero_avx2: zeroes the lines that are not zero with 32-byte vectors; the algorithm is in pagezero.tmpl.h. */
#define VEC_BYTES 32
#define PAGEZERO wherry_routine_pagezero_avx2
#include "pagezero.tmpl.h"
