/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing text, and strings as JSON has them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/report.h"

static bool grow(attn__text *t, size_t more)
{
    size_t size = t->size ? t->size : 1024;
    char *data;

    if (t->length + more < t->size)
        return true;
    while (size <= t->length + more)
        size *= 2;
    data = attn__arena_take(t->arena, (int64_t)size, 1);
    if (!data)
        return false;
    if (t->data)
        memcpy(data, t->data, t->length);
    t->data = data;
    t->size = size;
    return true;
}

void attn__write(attn__text *t, const char *format, ...)
{
    va_list args, again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && grow(t, (size_t)length + 1)) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void attn__write_json(attn__text *t, const char *string)
{
    attn__write(t, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\')
            attn__write(t, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            attn__write(t, "\\u%04x", *c);
        else
            attn__write(t, "%c", *c);
    }
    attn__write(t, "\"");
}
