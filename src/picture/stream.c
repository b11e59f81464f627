/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffered bytes to one of two places. */
#include "picture/stream.h"

#include <string.h>

#include "core/alloc.h"
#include "picture/ticks.h"

static void fail(attn__stream *s, attn_status status)
{
    if (s->status == ATTN_OK)
        s->status = status;
}

void attn__stream_open(attn__stream *s, const char *path)
{
    s->to_file = path != NULL;
    s->memory = NULL;
    s->size = s->room = s->buffered = 0;
    s->status = attn__ok(&s->diag);
    if (path)
        fail(s, attn__output_open(&s->output, path, &s->diag));
}

static void to_memory(attn__stream *s, const void *data, size_t n)
{
    size_t need;

    /* One more, for the zero at the end. */
    if (!attn__add_size(s->size, n, &need) || !attn__add_size(need, 1, &need)) {
        fail(s, attn__fail(&s->diag, ATTN_E_OVERFLOW, "size", "too large"));
        return;
    }
    if (need > s->room) {
        size_t room = need;
        unsigned char *grown;

        if (need <= SIZE_MAX / 2)
            room = 2 * need;
        grown = attn_realloc(s->memory, room);
        if (!grown) {
            fail(s, attn__fail(&s->diag, ATTN_E_NOMEM, "data",
                               "no memory for %lld bytes", (long long)room));
            return;
        }
        s->memory = grown;
        s->room = room;
    }
    memcpy(s->memory + s->size, data, n);
    s->size += n;
    s->memory[s->size] = 0;
}

static void flush(attn__stream *s)
{
    if (s->status == ATTN_OK && s->to_file)
        fail(s, attn__output_write(&s->output, s->buffer, s->buffered,
                                   &s->diag));
    else if (s->status == ATTN_OK)
        to_memory(s, s->buffer, s->buffered);
    s->buffered = 0;
}

void attn__stream_put(attn__stream *s, const void *data, size_t n)
{
    const unsigned char *at = data;

    while (n > 0) {
        const size_t free = ATTN__STREAM_BUFFER - s->buffered;
        const size_t now = n < free ? n : free;

        memcpy(s->buffer + s->buffered, at, now);
        s->buffered += now;
        at += now;
        n -= now;
        if (s->buffered == ATTN__STREAM_BUFFER)
            flush(s);
    }
}

void attn__stream_text(attn__stream *s, const char *text)
{
    attn__stream_put(s, text, strlen(text));
}

void attn__stream_number(attn__stream *s, double value)
{
    char text[ATTN__NUMBER_SIZE];
    size_t n;

    attn__format(text, value, 2);
    n = strlen(text);
    if (strchr(text, '.')) {
        while (text[n - 1] == '0')
            n--;
        n -= text[n - 1] == '.';
    }
    attn__stream_put(s, text, n);
}

attn_status attn__stream_close(attn__stream *s, void **data, size_t *size,
                               attn_diag *diag)
{
    flush(s);
    if (s->to_file) {
        if (s->status == ATTN_OK)
            fail(s, attn__output_commit(&s->output, &s->diag));
        attn__output_end(&s->output);
    } else if (s->status == ATTN_OK) {
        *data = s->memory;
        *size = s->size;
    } else {
        attn__free(s->memory);
    }
    if (diag)
        *diag = s->diag;
    return s->status;
}
