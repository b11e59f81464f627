/* SPDX-License-Identifier: Apache-2.0
 *
 * Which questions: every option alone and every pair, on sizes that are
 * pairwise different, and on sizes that coincide, where some bugs live. */
#include "doctor/interview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- sizes */

/* Made to fit the layout (no batch, one head) and the abilities. */
static attn__sizes narrowed(const attn__interview *in, attn__sizes n)
{
    const attn__layout_facts *f = attn__layout_facts_of(in->binding->layout);

    if (in->equal)
        n = (attn__sizes){4, 4, 4, 4, 4, 4, 4};
    if (in->heads > 0)
        n.heads_q = n.heads_kv = in->heads;
    if (in->kv_heads > 0)
        n.heads_kv = in->kv_heads;
    if (!f->batch)
        n.batch = 1;
    if (!f->heads)
        n.heads_q = n.heads_kv = 1;
    if (!(in->sizes & ASK_GROUPS) && in->kv_heads == 0)
        n.heads_kv = n.heads_q;
    if (!(in->sizes & ASK_DIMS))
        n.dim_v = n.dim_qk;
    if (in->varlen) {
        n.len_q = n.len_q < 9 ? 9 : n.len_q;
        n.len_k = n.len_k < 9 ? 9 : n.len_k;
    }
    if (in->decode || in->binding->q_flat)
        n.len_q = 1;
    else if (in->layer)
        n.len_k = n.len_q;
    else if (!(in->sizes & ASK_CROSS))
        n.len_q = n.len_k;
    return n;
}

/* Pairwise different: batch, heads, KV heads, group, lengths, dims. No length
 * is a multiple of a group: code that knows no groups shall not find a shape
 * that lets it pass. */
attn__sizes attn__sizes_general(const attn__interview *in)
{
    return narrowed(in, (attn__sizes){4, 6, 2, 5, 11, 7, 8});
}

attn__sizes attn__sizes_square(const attn__interview *in)
{
    return narrowed(in, (attn__sizes){2, 6, 2, 10, 10, 5, 8});
}

/* A second head dimension, above every small power of two. */
attn__sizes attn__sizes_wide(const attn__interview *in)
{
    return narrowed(in, (attn__sizes){2, 3, 1, 6, 11, 20, 13});
}

/* As many KV heads as heads, and many of both. */
attn__sizes attn__sizes_headed(const attn__interview *in)
{
    return narrowed(in, (attn__sizes){1, 6, 6, 7, 9, 5, 4});
}

attn__sizes attn__sizes_long(const attn__interview *in, int64_t len)
{
    return narrowed(in, (attn__sizes){1, 2, 2, len, len, 6, 6});
}

attn__sizes attn__sizes_equal(const attn__interview *in)
{
    return narrowed(in, (attn__sizes){4, 4, 4, 4, 4, 4, 4});
}

attn__sizes attn__sizes_single(const attn__interview *in, int64_t len)
{
    return narrowed(in, (attn__sizes){1, 1, 1, len, len, 3, 3});
}

/* -------------------------------------------------------------- abilities */

static bool answers(attn__interview *in, uint32_t sizes, uint32_t asked)
{
    attn__question *q;

    in->lost |= in->wasted + in->binding->seconds > in->budget / 2;
    if (in->lost)
        return false;
    in->sizes = sizes;
    q = attn__compose(in, "first contact", attn__sizes_general(in), asked);
    return q && attn__put(in, q);
}

/* The widest abilities with which a plain question is answered: subsets of
 * what is possible, the larger ones first; at last, all sizes equal. */
bool attn__first_contact(attn__interview *in)
{
    for (int count = __builtin_popcount(in->possible); count >= 0; count--) {
        uint32_t subset = in->possible;

        for (;;) {
            if (__builtin_popcount(subset) == count && answers(in, subset, 0))
                return true;
            if (subset == 0)
                break;
            subset = (subset - 1) & in->possible;
        }
    }
    in->equal = !in->lost;
    return in->equal && answers(in, 0, 0);
}

/* ------------------------------------------------------------- the list */

static void ask(attn__interview *in, const char *title, attn__sizes sizes,
                uint32_t asked)
{
    attn__question *q = attn__compose(in, title, sizes, asked);

    if (q)
        attn__put(in, q);
}

static const uint32_t options[] = {
    ASK_SCALE, ASK_CAUSAL, ASK_MASK,  ASK_WINDOW,  ASK_BIAS, ASK_SOFTCAP,
    ASK_ALIBI, ASK_SINKS,  ASK_LENGTHS, ASK_OFFSET, ASK_EXTRA,
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

static bool is_slow(const attn__interview *in)
{
    return in->binding->seconds > in->budget / 2;
}

/* Masks come in several shapes; the last two axes alone is the plain one. */
static void ask_masks(attn__interview *in, attn__sizes sizes)
{
    const int64_t b = sizes.batch, h = sizes.heads_q;
    const int64_t shapes[][4] = {
        {1, 1, sizes.len_q, sizes.len_k},
        {b, 1, 1, sizes.len_k},
        {b, h, sizes.len_q, sizes.len_k},
        {b, 1, sizes.len_q, sizes.len_k},
    };

    const bool keys_only = attn__parameter_of(in->binding, ROLE_MASK) < 0;

    for (size_t x = 0; x < sizeof shapes / sizeof shapes[0]; x++) {
        attn__question *q =
            attn__compose_mask(in, "mask", sizes, ASK_MASK, shapes[x]);

        if (q && (!keys_only || shapes[x][2] == 1))
            attn__put(in, q);
    }
}

/* A bias with all axes: some code takes it for scratch space. */
static void ask_full_bias(attn__interview *in, attn__sizes n)
{
    attn__question *q = attn__compose_bias(
        in, "bias", n, (int64_t[]){n.batch, n.heads_q, n.len_q, n.len_k});

    if (q)
        attn__put(in, q);
}

static void ask_options(attn__interview *in)
{
    const uint32_t takes = in->binding->takes;

    for (int x = 0; x < N_OPTIONS; x++) {
        if (!(takes & options[x]))
            continue;
        if (options[x] == ASK_MASK) {
            ask_masks(in, attn__sizes_general(in));
            ask_masks(in, attn__sizes_square(in));
            continue;
        }
        if (options[x] == ASK_BIAS)
            ask_full_bias(in, attn__sizes_general(in));
        ask(in, "option", attn__sizes_square(in), options[x]);
        ask(in, "option", attn__sizes_general(in), options[x]);
    }
    if (takes & ASK_WINDOW && in->strict) {
        attn__question *q = attn__compose(in, "window of one key",
                                          attn__sizes_general(in), ASK_WINDOW);
        if (q) {
            q->window[0] = q->window[1] = 0;
            attn__put(in, q);
        }
    }
    if (takes & ASK_SCALE) {
        attn__question *q = attn__compose(in, "negative scale",
                                          attn__sizes_general(in), ASK_SCALE);
        if (q) {
            q->scale = -0.3125;
            attn__put(in, q);
        }
    }
}

static void ask_pairs(attn__interview *in)
{
    const uint32_t takes = in->binding->takes;

    for (int x = 0; x < N_OPTIONS; x++) {
        for (int y = x + 1; y < N_OPTIONS && !is_slow(in); y++) {
            const uint32_t both = options[x] | options[y];

            if ((takes & both) == both)
                ask(in, "pair", attn__sizes_general(in), both);
            if ((takes & both) == both && both & ASK_CAUSAL)
                ask(in, "pair", attn__sizes_square(in), both);
        }
    }
}

/* Matrices that are square hide a transpose that should not be there. */
static void ask_square_matrices(attn__interview *in)
{
    const uint32_t sizes = in->sizes;

    if (!in->layer || !(sizes & ASK_MODEL))
        return;
    in->sizes &= ~(uint32_t)ASK_MODEL;
    ask(in, "square matrices", narrowed(in, (attn__sizes){2, 3, 3, 5, 5, 4, 4}),
        0);
    in->sizes = sizes;
}

static void ask_coincidences(attn__interview *in)
{
    const uint32_t causal = in->binding->takes & ASK_CAUSAL;

    ask(in, "equal sizes", attn__sizes_equal(in), 0);
    if (in->equal)
        return;
    ask_square_matrices(in);
    ask(in, "one head", attn__sizes_single(in, 6), 0);
    ask(in, "one key", (attn__sizes){1, 1, 1, 1, 1, 3, 3}, 0);
    if (causal)
        ask(in, "one head", attn__sizes_single(in, 6), causal);
    if (in->binding->takes & ASK_MASK) {
        const attn__sizes n = attn__sizes_equal(in);
        const bool keys_only =
            attn__parameter_of(in->binding, ROLE_MASK) < 0;
        const int64_t shape[4] = {n.batch, 1, keys_only ? 1 : n.len_q,
                                  n.len_k};
        attn__question *q =
            attn__compose_mask(in, "equal sizes", n, ASK_MASK, shape);

        if (q)
            attn__put(in, q);
    }
}

/* A call, by its keys and the seconds that it took. */
typedef struct timed {
    int64_t len;
    double seconds;
} timed;

/* What a call with `len` keys will take: as it grew from the first call that
 * took any time to the last, but no faster than loops within loops within
 * loops. */
static double expected_seconds(timed first, timed last, int64_t len)
{
    double power = 3;

    if (last.len == 0)
        return 0;
    if (2 * last.len >= 3 * first.len)
        power = log(last.seconds / first.seconds) /
                log((double)last.len / (double)first.len);
    return last.seconds *
           pow((double)len / (double)last.len, fmin(fmax(power, 0), 3));
}

static timed ask_length(attn__interview *in, int64_t len, uint32_t asked)
{
    const double before = in->binding->seconds;

    ask(in, "length", attn__sizes_long(in, len), asked);
    return (timed){len, in->binding->seconds - before};
}

static void ask_lengths(attn__interview *in)
{
    static const int64_t lens[] = {2,  3,  5,  8,  13, 16, 17,
                                   31, 33, 37, 64, 65, 70, 130};
    const uint32_t causal = in->binding->takes & ASK_CAUSAL;
    timed first = {0}, last = {0};

    for (size_t x = 0; x < sizeof lens / sizeof lens[0]; x++) {
        timed call;

        if (is_slow(in) || in->equal || in->varlen ||
            expected_seconds(first, last, lens[x]) > in->budget / 8)
            return;
        call = ask_length(in, lens[x], 0);
        if (call.seconds > 1e-3) {
            last = call;
            first = first.len == 0 ? call : first;
        }
        if (causal && lens[x] > 30 && lens[x] < 40)
            ask_length(in, lens[x], causal);
    }
}

void attn__ask_all(attn__interview *in)
{
    ask(in, "plain", attn__sizes_square(in), 0);
    ask(in, "plain again", attn__sizes_general(in), 0);
    ask(in, "plain", attn__sizes_wide(in), 0);
    ask(in, "plain", attn__sizes_headed(in), 0);
    ask_options(in);
    ask_coincidences(in);
    ask_pairs(in);
    ask_lengths(in);
}

/* --------------------------------------------------------------- sorting */

/* Options weigh more than any size. */
static int64_t difficulty(const attn__question *q)
{
    const uint32_t bits = q->asked & (ASK_GROUPS - 1);

    return ((int64_t)__builtin_popcount(bits) << 32) +
           attn__count_pairs(&q->n) * (q->n.dim_qk + q->n.dim_v);
}

static int compare(const void *x, const void *y)
{
    const int64_t a = difficulty(x), b = difficulty(y);

    return (a > b) - (a < b);
}

void attn__sort_questions(attn__interview *in)
{
    qsort(in->questions, (size_t)in->n, sizeof in->questions[0], compare);
}
