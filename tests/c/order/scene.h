/* What is done, and what comes between its instructions. */
#ifndef ORDER_SCENE_H
#define ORDER_SCENE_H

#include <stdbool.h>

enum { SKIPPED = 77 };

extern const char *order_plan; /* a file that is given; its name in it is "mine" */

struct scene {
    const char *name;
    void (*first)(void), (*stepped)(void);
    enum { THREAD, HANDLER } who;
    void (*between)(void);
    bool (*right)(void);
    bool goes_on;        /* else the child of a fork is alone with what was under way, or a handler never returns */
    unsigned last, each; /* of what is too long to be looked at whole: all of the last so many instructions, and of
                            those before one in so many */
};

/* Each ends with a name that is NULL. */
extern const struct scene scenes_of_owners[], scenes_of_looks[];

#endif
