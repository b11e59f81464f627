/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that are appended, and taken again with every length checked. */
#include "subject/message.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

void attn__message_free(attn__message *message)
{
    attn__free(message->data);
    *message = (attn__message){0};
}

bool attn__append(attn__message *message, const void *data, size_t size)
{
    unsigned char *grown =
        attn__realloc_array(message->data, message->length + size + 1, 1);

    if (!grown)
        return false;
    if (size > 0)
        memcpy(grown + message->length, data, size);
    message->data = grown;
    message->length += size;
    return true;
}

bool attn__take(attn__message *message, void *data, size_t size)
{
    if (size > message->length - message->at)
        return false;
    if (size > 0)
        memcpy(data, message->data + message->at, size);
    message->at += size;
    return true;
}

bool attn__take_text(attn__message *message, char *text, size_t size)
{
    uint32_t length;

    if (!attn__take(message, &length, sizeof length) ||
        length > message->length - message->at)
        return false;
    snprintf(text, size, "%.*s", (int)length,
             (const char *)message->data + message->at);
    message->at += length;
    return true;
}
