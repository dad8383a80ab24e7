/* One line of text, put together piece by piece; what does not fit is cut off. */
#ifndef WHERRY_PLANFILE_LINE_H
#define WHERRY_PLANFILE_LINE_H

#include <stddef.h>
#include <stdint.h>

struct wherry_line {
    char *text;
    size_t room, used; /* used < room: the zero at the end has its place */
};

static inline void wherry_line_begin(struct wherry_line *line, char *text, size_t room)
{
    *line = (struct wherry_line){.text = text, .room = room};
    text[0] = '\0';
}

/* What is no printable ASCII becomes a question mark: paths and names are anybody's. */
static inline void wherry_line_add(struct wherry_line *line, const char *text)
{
    for (; *text && line->used + 1 < line->room; text++)
        line->text[line->used++] = *text >= ' ' && *text <= '~' ? *text : '?';
    line->text[line->used] = '\0';
}

static inline void wherry_line_number(struct wherry_line *line, uint64_t value)
{
    char digits[21];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    wherry_line_add(line, at);
}

#endif
