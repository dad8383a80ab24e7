/* A file that no directory names, so that nothing is left behind however the process ends. */
#ifndef RUNNER_UNNAMED_H
#define RUNNER_UNNAMED_H

/* Open for reading and writing, on the file system of `directory`; -1: see errno. */
int unnamed_file(const char *directory);

#endif
