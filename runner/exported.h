/* The names that a shared object exports, as its file has them. */
#ifndef RUNNER_EXPORTED_H
#define RUNNER_EXPORTED_H

#include <stdbool.h>
#include <stddef.h>

/* Puts into `found` the shortest name of an exported function for which `fits` says yes; false: there is none, or the
 * file does not tell. */
bool exported_name(const char *path, bool (*fits)(const char *name), char *found, size_t room);

#endif
