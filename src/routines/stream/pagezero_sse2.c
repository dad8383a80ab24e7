/* pagezero_sse2: zeroes the lines that are not zero with 16-byte vectors; the algorithm is in pagezero.tmpl.h. */
#define VEC_BYTES 16
#define PAGEZERO wherry_routine_pagezero_sse2
#include "pagezero.tmpl.h"
