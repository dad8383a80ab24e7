/* What can be preloaded and has none of the functions that are recorded. */
int recorder_nothing(void);

__attribute__((visibility("default"))) int recorder_nothing(void) { return 0; }
