/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of one message, while it is written or read. */
#ifndef ATTN_SUBJECT_MESSAGE_H
#define ATTN_SUBJECT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct attn__message {
    unsigned char *data; /* from attn__alloc */
    size_t length, at;   /* `at`: how far it has been read */
} attn__message;

void attn__message_free(attn__message *message);

/* Append; false if memory is short. */
bool attn__append(attn__message *message, const void *data, size_t size);
/* Take the next `size` bytes; false, having taken none, if there are fewer. */
bool attn__take(attn__message *message, void *data, size_t size);
/* A u32 length and so many bytes, into text[size], cut and terminated. */
bool attn__take_text(attn__message *message, char *text, size_t size);

#endif
