#include "commands.h"
int command_cpu(int argc, char **argv) { (void)argc; (void)argv; return misuse("cpu is being built"); }
