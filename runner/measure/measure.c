#include "commands.h"
int command_measure(int argc, char **argv) { (void)argc; (void)argv; return misuse("being built"); }
int command_sizes(int argc, char **argv) { (void)argc; (void)argv; return misuse("being built"); }
