/* SPDX-License-Identifier: Apache-2.0
 *
 * Composing a question: random arrays with scores of about +-3, masks that
 * leave every row something, and whatever options it asks. */
#include <math.h>
#include <string.h>

#include "doctor/interview.h"

double *attn__identity(attn__arena *arena, const attn__sizes *n)
{
    const int64_t len = n->len_k;
    double *v = attn__arena_doubles(arena, attn__count_v(n) + 1);

    for (int64_t x = 0; v && x < attn__count_v(n); x++)
        v[x] = x / len % len == x % len;
    return v;
}

static double *normals(attn__interview *in, int64_t n, double deviation)
{
    double *x = attn__arena_doubles(in->arena, n);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = attn__normal(&in->random, deviation);
    return x;
}

/* About 3 of 5 kept; key 0 always, so that no row is empty with causal. */
static unsigned char *random_mask(attn__interview *in, const int64_t shape[4])
{
    const int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
    unsigned char *mask = attn__arena_take(in->arena, n, 1);

    for (int64_t e = 0; mask && e < n; e++)
        mask[e] = e % shape[3] == 0 || attn__uniform(&in->random) < 0.6;
    return mask;
}

static void add_mask(attn__interview *in, attn__question *q,
                     const int64_t shape[4])
{
    memcpy(q->mask_shape, shape, sizeof q->mask_shape);
    q->mask = random_mask(in, shape);
}

static void add_bias(attn__interview *in, attn__question *q,
                     const int64_t shape[4])
{
    memcpy(q->bias_shape, shape, sizeof q->bias_shape);
    q->bias = normals(in, shape[0] * shape[1] * shape[2] * shape[3], 1.25);
}

/* 1/2, 3/8, 1/4, 3/16 ...: different for every head, no table of anybody. */
static double *slopes(attn__interview *in, int64_t n)
{
    double *x = attn__arena_doubles(in->arena, n);

    for (int64_t h = 0; x && h < n; h++)
        x[h] = (h % 2 ? 0.375 : 0.5) / (double)(INT64_C(1) << h / 2);
    return x;
}

static int64_t *random_integers(attn__interview *in, int64_t n, int64_t least,
                                int64_t most)
{
    int64_t *x = attn__arena_take(in->arena, n, sizeof *x);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = least + (e * 3 + attn__below(&in->random, 2)) %
                           (most - least + 1);
    return x;
}

static int64_t *same_number(attn__interview *in, int64_t number, int64_t n)
{
    int64_t *x = attn__arena_take(in->arena, n, sizeof *x);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = number;
    return x;
}

static void add_options(attn__interview *in, attn__question *q)
{
    const attn__sizes *n = &q->n;

    if (q->asked & ASK_BIAS)
        add_bias(in, q, (int64_t[]){1, n->heads_q, n->len_q, n->len_k});
    if (q->asked & ASK_SCALE)
        q->scale = 0.34375;
    if (q->asked & ASK_SOFTCAP)
        q->softcap = 1.75;
    if (q->asked & ASK_WINDOW) {
        q->window[0] = 2;
        q->window[1] = q->asked & ASK_CAUSAL || in->binding->window_is_number
                           ? 0
                           : 1;
    }
    if (q->asked & ASK_ALIBI)
        q->slopes = slopes(in, n->heads_q);
    if (q->asked & ASK_SINKS)
        q->sinks = normals(in, n->heads_q, 1.25);
    if (q->asked & ASK_LENGTHS)
        q->lengths =
            random_integers(in, in->binding->one_length ? 1 : n->batch,
                            n->len_k / 2 + 1, n->len_k);
    if (q->lengths && in->binding->one_length)
        q->lengths = same_number(in, q->lengths[0], n->batch);
    if (q->asked & ASK_OFFSET)
        q->offset = random_integers(
            in, q->cu_q ? q->n_sequences : n->batch, 1, n->len_k - 1);
}

/* Matrices whose products keep the size of what they meet. */
static void add_layer(attn__interview *in, attn__question *q)
{
    const attn__sizes *n = &q->n;
    const bool free = in->sizes & ASK_MODEL;
    const bool packed = attn__parameter_of(in->binding, ROLE_B_QKV) >= 0;
    const int64_t model = free ? 10 : attn__width_q(n);
    const double size = 1.25 / sqrt((double)model);
    attn__projections *l = &q->layer;

    *l = (attn__projections){.model = model};
    l->x = normals(in, n->batch * n->len_q * model, 1.25);
    l->w_q = normals(in, model * attn__width_q(n), size);
    l->w_k = normals(in, model * attn__width_k(n), size);
    l->w_v = normals(in, model * attn__width_v(n), size);
    if (attn__parameter_of(in->binding, ROLE_W_O) >= 0)
        l->w_o = normals(in, attn__width_o(n) * model, size);
    if (packed || attn__parameter_of(in->binding, ROLE_B_Q) >= 0)
        l->b_q = normals(in, attn__width_q(n), 0.5);
    if (packed || attn__parameter_of(in->binding, ROLE_B_K) >= 0)
        l->b_k = normals(in, attn__width_k(n), 0.5);
    if (packed || attn__parameter_of(in->binding, ROLE_B_V) >= 0)
        l->b_v = normals(in, attn__width_v(n), 0.5);
    if (attn__parameter_of(in->binding, ROLE_B_O) >= 0)
        l->b_o = normals(in, model, 0.5);
    q->asked |= ASK_LAYER | (free ? ASK_MODEL : 0);
    if (attn__parameter_of(in->binding, ROLE_W_QKV) >= 0)
        q->asked |= ASK_PACKED;
}

/* What a forward pass would have left: o and lse. */
static void add_forward(attn__interview *in, attn__question *q)
{
    const size_t n_o = (size_t)attn__count_o(&q->n);
    const size_t n_rows = (size_t)attn__count_rows(&q->n);
    double *o = attn__arena_doubles(in->arena, (int64_t)n_o);
    double *lse = attn__arena_doubles(in->arena, (int64_t)n_rows);
    attn__question forward = *q;
    attn__model right;

    if (!o || !lse)
        return;
    forward.d_o = NULL;
    attn__model_init(&right);
    attn__predict(in->work, &right, &in->meaning, &forward);
    memcpy(o, in->work->answer, n_o * sizeof *o);
    memcpy(lse, in->work->lse, n_rows * sizeof *lse);
    q->o = o;
    q->lse_in = lse;
}

/* Three sequences of pairwise different lengths, no length the same for
 * queries and keys where those may differ. */
static void add_sequences(attn__interview *in, attn__question *q)
{
    const int64_t n_q = q->n.len_q, n_k = q->n.len_k;
    int64_t *cu = attn__arena_take(in->arena, 8, sizeof *cu);

    if (!cu)
        return;
    cu[1] = n_q / 4 + 1;
    cu[2] = n_q / 2 + 1;
    cu[3] = n_q;
    cu[5] = n_k == n_q ? cu[1] : n_k / 3;
    cu[6] = n_k == n_q ? cu[2] : n_k / 2 + 2;
    cu[7] = n_k;
    q->cu_q = cu;
    q->cu_k = cu + 4;
    q->n_sequences = 3;
    q->asked |= ASK_VARLEN;
}

/* Can the model run on arrays of these sizes? */
static bool has_room(const attn__work *w, const attn__sizes *n)
{
    return attn__count_pairs(n) <= w->n_spare &&
           attn__count_q(n) <= w->n_room && attn__count_k(n) <= w->n_room &&
           attn__count_v(n) <= w->n_room && attn__count_o(n) <= w->n_room;
}

static attn__question *compose(attn__interview *in, const char *title,
                               attn__sizes sizes, uint32_t asked)
{
    attn__question *q = &in->questions[in->n];
    /* x scores high with itself: no higher than others with each other */
    const bool self = in->binding->shared == SHARED_ALL;

    if (in->n >= ATTN__MAX_QUESTIONS)
        return NULL;
    if (in->binding->shared == NO_VALUES)
        sizes.dim_v = sizes.len_k;
    if (!has_room(in->work, &sizes))
        return NULL;
    asked |= in->always;
    if (in->decode && !in->binding->whole)
        asked |= ASK_LENGTHS;
    *q = (attn__question){
        .title = title,
        .asked = asked | attn__sizes_asked(&sizes),
        .n = sizes,
        .window = {-1, -1},
    };
    q->q = normals(in, attn__count_q(&sizes), 1.25);
    q->k = normals(in, attn__count_k(&sizes), self ? 0.9 : 1.25);
    q->v = in->binding->shared == NO_VALUES
               ? attn__identity(in->arena, &sizes)
               : normals(in, attn__count_v(&sizes), 1.5);
    attn__share(in->binding, q);
    if (in->binding->fusion != FUSION_NONE)
        q->asked |= attn__parameter_of(in->binding, ROLE_QKV) >= 0
                        ? ASK_PACKED
                        : ASK_PAIRED;
    if (in->varlen)
        add_sequences(in, q);
    if (in->layer)
        add_layer(in, q);
    if (in->backward) {
        q->d_o = normals(in, attn__count_o(&sizes), 1.25);
        q->asked |= ASK_BACKWARD;
    }
    add_options(in, q);
    return q;
}

attn__question *attn__compose(attn__interview *in, const char *title,
                              attn__sizes sizes, uint32_t asked)
{
    attn__question *q = compose(in, title, sizes, asked);
    const bool keys_only =
        attn__parameter_of(in->binding, ROLE_MASK) < 0;
    const int64_t shape[4] = {keys_only ? sizes.batch : 1, 1,
                              keys_only ? 1 : sizes.len_q, sizes.len_k};

    if (q && q->asked & ASK_MASK)
        add_mask(in, q, shape);
    if (q && q->d_o && !in->arena->failed)
        add_forward(in, q);
    return in->arena->failed ? NULL : q;
}

attn__question *attn__compose_mask(attn__interview *in, const char *title,
                                   attn__sizes sizes, uint32_t asked,
                                   const int64_t shape[4])
{
    attn__question *q = compose(in, title, sizes, asked);

    if (q)
        add_mask(in, q, shape);
    if (q && q->d_o && !in->arena->failed)
        add_forward(in, q);
    return in->arena->failed ? NULL : q;
}

attn__question *attn__compose_bias(attn__interview *in, const char *title,
                                   attn__sizes sizes, const int64_t shape[4])
{
    attn__question *q = attn__compose(in, title, sizes, ASK_BIAS);

    if (q)
        add_bias(in, q, shape);
    if (q && q->d_o && !in->arena->failed)
        add_forward(in, q);
    return in->arena->failed ? NULL : q;
}

/* The first n numbers of x, over and over, `count` in all. */
static double *repeated(attn__interview *in, const double *x, int64_t n,
                        int64_t count)
{
    double *y = attn__arena_doubles(in->arena, count);

    for (int64_t e = 0; y && e < count; e++)
        y[e] = x[e % n];
    return y;
}

attn__question *attn__same_for_all(attn__interview *in,
                                   const attn__question *question)
{
    attn__question *q = attn__arena_take(in->arena, 1, sizeof *q);
    const attn__sizes *n = &question->n;
    const int64_t pairs = n->len_q * n->len_k;
    unsigned char *mask;

    if (!q)
        return NULL;
    *q = *question;
    q->k = repeated(in, q->k, n->len_k * n->dim_qk, attn__count_k(n));
    q->v = repeated(in, q->v, n->len_k * n->dim_v, attn__count_v(n));
    attn__share(in->binding, q);
    if (q->mask && q->mask_shape[2] == 1) { /* of keys */
        const int64_t count = q->mask_shape[0] * q->mask_shape[1] * n->len_k;

        mask = attn__arena_take(in->arena, count, 1);
        for (int64_t e = 0; mask && e < count; e++)
            mask[e] = q->mask[e % n->len_k];
        q->mask = mask;
    } else if (q->mask && q->mask_shape[2] == n->len_q) {
        mask = attn__arena_take(in->arena, attn__count_pairs(n), 1);
        for (int64_t e = 0; mask && e < attn__count_pairs(n); e++)
            mask[e] = q->mask[e % pairs];
        q->mask = mask;
        memcpy(q->mask_shape,
               (int64_t[]){n->batch, n->heads_q, n->len_q, n->len_k},
               sizeof q->mask_shape);
    }
    return in->arena->failed ? NULL : q;
}

/* One crash may be about some sizes; two rule this way of calling out, and
 * those that are left should not wait for more. */
enum { MOST_ENDS = 2 };

bool attn__put(attn__interview *in, attn__question *q)
{
    if (in->ends >= MOST_ENDS) {
        in->refused |= q->asked;
        return false;
    }
    if (!attn__ask(in->binding, q, VIEW_PLAIN, in->arena))
        return false;
    if (q->outcome == ATTN_ANSWERED) {
        in->n++;
        return true;
    }
    in->refused |= q->asked;
    if (in->ends == 0 && !(in->wrong_shape && !q->wrong_shape))
        in->refusal = q->refusal;
    in->wrong_shape |= q->wrong_shape;
    in->ends += q->outcome == ATTN_CRASHED || q->outcome == ATTN_TIMED_OUT;
    in->lost |= q->outcome == ATTN_LOST;
    return false;
}
