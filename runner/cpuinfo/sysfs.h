/* The kernel's view of the caches of CPU 0. */
#ifndef RUNNER_SYSFS_H
#define RUNNER_SYSFS_H

#include "cpu/caches.h"

void sysfs_caches(struct wherry_caches *caches); /* fills the source WHERRY_CACHES_SYSFS; absent files: absent */

#endif
