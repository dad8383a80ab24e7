#include "commands.h"
int command_verify(int argc, char **argv) { (void)argc; (void)argv; return misuse("verify is being built"); }
