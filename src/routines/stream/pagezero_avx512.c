/* pagezero_avx512: zeroes the lines that are not zero with 64-byte vectors; the algorithm is in pagezero.tmpl.h. */
#define VEC_BYTES 64
#define PAGEZERO wherry_routine_pagezero_avx512
#include "pagezero.tmpl.h"
