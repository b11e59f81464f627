/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the doctor's children: whatever follows the protocol is written
 * again with the same bytes, whatever does not leaves nothing behind. The
 * first byte chooses hello, call or answer. */
#include "fuzz.h"

#include <string.h>

#include "core/alloc.h"
#include "subject/protocol.h"

enum { MOST_VALUES = 16 };

static attn__message reading(const uint8_t *data, size_t size)
{
    return (attn__message){.data = (unsigned char *)(uintptr_t)data,
                           .length = size};
}

/* What was written is how `from` begins, as far as it was read. */
static void compare(attn__message *written, const attn__message *from)
{
    PROPERTY(written->length <= from->at);
    PROPERTY(memcmp(written->data, from->data, written->length) == 0);
    attn__message_free(written);
}

static void hello(attn__message *m)
{
    static attn__hello h;
    char message[160];

    if (!attn__decode_hello(m, &h, message, sizeof message)) {
        PROPERTY(memchr(message, '\0', sizeof message));
        return;
    }
    PROPERTY(h.n >= 0 && h.n <= ATTN__MOST_PARAMETERS);
    for (int32_t x = 0; x < h.n; x++)
        PROPERTY(memchr(h.parameters[x].name, '\0', sizeof h.names[0]));
}

static void call(attn__message *m)
{
    attn_value values[MOST_VALUES];
    attn__message written;
    const int32_t n = attn__decode_call(m, values, MOST_VALUES);

    PROPERTY(n >= -1 && n <= MOST_VALUES);
    if (n < 0)
        return;
    PROPERTY(attn__encode_call(&written, values, n));
    attn__message_free(&written);
    attn__free_values(values, n);
}

static void answer(attn__message *m)
{
    attn_answer a = {0};
    attn__message written = {0};
    const attn_outcome outcome = attn__decode_answer(m, &a);

    if (outcome == ATTN_ANSWERED) {
        double seconds;

        memcpy(&seconds, m->data + 1, sizeof seconds);
        PROPERTY(a.n_results >= 0 && a.n_results <= ATTN_RESULTS_MAX);
        PROPERTY(attn__encode_answer(&written, &a));
        if (memcmp(&seconds, &a.seconds, sizeof seconds) == 0)
            compare(&written, m);
        attn__message_free(&written);
    } else {
        PROPERTY(memchr(a.message, '\0', sizeof a.message));
        PROPERTY(a.n_results == 0);
    }
    for (int32_t x = 0; x < a.n_results; x++)
        attn__free(a.results[x].data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(attn__message *) = {hello, call, answer};
    attn__message m;

    if (size < 1)
        return 0;
    fuzz_count_memory(size * 64 + (1 << 16));
    m = reading(data + 1, size - 1);
    readers[data[0] % 3](&m);
    PROPERTY(fuzz_live_blocks() == 0);
    return 0;
}
