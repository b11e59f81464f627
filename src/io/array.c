/* SPDX-License-Identifier: Apache-2.0
 *
 * An array that owns its memory. */
#include "attn_io.h"

#include "core/alloc.h"

void attn_array_free(attn_array *array)
{
    if (!array)
        return;
    attn__free(array->name);
    attn__free(array->data);
    attn__free(array->text);
    memset(array, 0, sizeof *array);
}
