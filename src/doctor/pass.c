/* SPDX-License-Identifier: Apache-2.0
 *
 * From a question to the values of a call: arrays in the subject's layout and
 * type, options in the form that it takes. */
#include "doctor/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "doctor/fused.h"

/* -------------------------------------------------------------- tensors */

static void store(void *data, attn_dtype dtype, int64_t at, double x)
{
    if (dtype == ATTN_F64)
        ((double *)data)[at] = x;
    else if (dtype == ATTN_F32)
        ((float *)data)[at] = (float)x;
    else if (dtype == ATTN_F16)
        ((uint16_t *)data)[at] = attn__f16_of_f64(x);
    else if (dtype == ATTN_I64)
        ((int64_t *)data)[at] = (int64_t)x;
    else
        ((unsigned char *)data)[at] = x != 0;
}

static int64_t product(const int64_t *shape, int32_t rank)
{
    int64_t n = 1;

    for (int32_t a = 0; a < rank; a++)
        n *= shape[a];
    return n;
}

/* Where element x of a dense array of this shape lies in the view's memory. */
static int64_t place(attn__view view, int32_t rank, const int64_t *shape,
                     int64_t x)
{
    if (view == VIEW_STRIDED)
        return 2 * x;
    if (view == VIEW_TURNED && rank >= 2) {
        const int64_t cols = shape[rank - 1], rows = shape[rank - 2];
        const int64_t col = x % cols, row = x / cols % rows;

        return x / cols / rows * rows * cols + col * rows + row;
    }
    return x;
}

static void set_strides(attn_input *t, attn__view view)
{
    if (view == VIEW_STRIDED) {
        for (int32_t a = 0; a < t->rank; a++)
            t->stride[a] *= 2;
    }
    if (view == VIEW_TURNED && t->rank >= 2) {
        t->stride[t->rank - 1] = t->shape[t->rank - 2];
        t->stride[t->rank - 2] = 1;
    }
}

/* A tensor of `dtype` with the n = product(shape) numbers of `x`. */
static attn_input tensor(const attn__call *c, attn_dtype dtype,
                         const double *x, int32_t rank, const int64_t *shape)
{
    const int64_t n = product(shape, rank);
    void *data =
        attn__arena_take(c->arena, 2 * n + 1, attn_dtype_size(dtype));
    const bool leading = rank > 4;
    attn_input t = attn_in_dense(data, dtype, rank - leading, shape + leading);

    for (int64_t e = 0; data && e < n; e++)
        store(data, dtype, place(c->view, rank, shape, e), x[e]);
    set_strides(&t, c->view);
    return t;
}

attn_input attn__tensor(const attn__call *c, const double *x, int32_t rank,
                        const int64_t *shape)
{
    return tensor(c, c->binding->dtype, x, rank, shape);
}

/* The first axis, or the first two, repeat one element: see
 * attn__same_for_all. */
static attn_input broadcast(const attn__call *c, attn_input t)
{
    const attn__layout_facts *f = attn__layout_facts_of(c->binding->layout);

    if (f->length_first)
        return t;
    if (c->view == VIEW_BROADCAST && t.rank >= 3 &&
        (f->batch || f->heads_first))
        t.stride[0] = 0;
    if (c->view == VIEW_BROADCAST && t.rank == 4 && f->heads_first)
        t.stride[1] = 0;
    return t;
}

/* (batch, heads, len, dim) in a layout. */
static attn_input arranged(const attn__call *c, attn__layout layout,
                           const double *x, int64_t heads, int64_t len,
                           int64_t dim)
{
    const int64_t n[4] = {c->question->n.batch, heads, len, dim};
    const int64_t count = product(n, 4);
    double *y = attn__arena_doubles(c->arena, count + 1);
    int64_t shape[4];
    const int32_t rank = attn__layout_shape(layout, n, shape);

    for (int64_t e = 0; y && e < count; e++)
        y[attn__layout_at(layout, n, e)] = x[e];
    return y ? tensor(c, c->binding->dtype, y, rank, shape) : (attn_input){0};
}

static attn_input activation(const attn__call *c, const double *x,
                             int64_t heads, int64_t len, int64_t dim)
{
    return arranged(c, c->binding->layout, x, heads, len, dim);
}

/* The layout of k, where it is given transposed. */
static attn__layout turned(attn__layout layout)
{
    switch (layout) {
    case LAYOUT_BHSD:
        return LAYOUT_BHDS;
    case LAYOUT_HSD:
        return LAYOUT_HDS;
    case LAYOUT_BSD:
        return LAYOUT_BDS;
    case LAYOUT_SD:
        return LAYOUT_DS;
    default:
        return layout;
    }
}

/* The layout of k and v: that of q, or without its axis of heads. */
static attn__layout layout_of_keys(const attn__binding *b)
{
    if (!b->kv_single)
        return b->layout;
    return attn__layout_facts_of(b->layout)->batch ? LAYOUT_BSD : LAYOUT_SD;
}

static attn_input key_tensor(const attn__call *c)
{
    const attn__layout layout = layout_of_keys(c->binding);
    const attn__sizes *n = &c->question->n;

    return arranged(c, c->binding->k_turned ? turned(layout) : layout,
                    c->question->k, n->heads_kv, n->len_k, n->dim_qk);
}

static attn_input value_tensor(const attn__call *c)
{
    const attn__sizes *n = &c->question->n;

    return arranged(c, layout_of_keys(c->binding), c->question->v,
                    n->heads_kv, n->len_k, n->dim_v);
}

/* ----------------------------------------------------------------- masks */

/* The axes of a (batch, heads, len_q, len_k) array that the subject's rank
 * has; leading axes of length 1 are left out unless it wants them all. */
static int32_t pair_axes(const attn__call *c, const int64_t of[4],
                         int64_t shape[4])
{
    const attn__layout_facts *f = attn__layout_facts_of(c->binding->layout);
    int32_t rank = 0;

    if (f->batch)
        shape[rank++] = of[0];
    if (f->heads && !(c->binding->mask_batched && of[1] == 1))
        shape[rank++] = of[1];
    shape[rank++] = of[2];
    shape[rank++] = of[3];
    while (!c->binding->mask_full && rank > 2 && shape[0] == 1) {
        memmove(shape, shape + 1, (size_t)(rank - 1) * sizeof *shape);
        rank--;
    }
    return rank;
}

static attn_input mask_tensor(const attn__call *c)
{
    const attn__question *q = c->question;
    const bool adds = c->binding->mask_adds;
    const int64_t n = product(q->mask_shape, 4);
    double *x = attn__arena_doubles(c->arena, n + 1);
    int64_t shape[4];
    const int32_t rank = pair_axes(c, q->mask_shape, shape);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = adds ? (q->mask[e] ? 0 : -INFINITY) : q->mask[e];
    if (!x)
        return (attn_input){0};
    return broadcast(
        c, tensor(c, adds ? c->binding->dtype : ATTN_BOOL, x, rank, shape));
}

/* A mask of keys alone: (batch, len_k), or (len_k) without a batch. */
static attn_input key_mask_tensor(const attn__call *c)
{
    const attn__question *q = c->question;
    const int64_t shape[2] = {q->mask_shape[0], q->mask_shape[3]};
    const bool batch = attn__layout_facts_of(c->binding->layout)->batch;
    const int64_t n = product(shape, 2);
    double *x = attn__arena_doubles(c->arena, n + 1);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = q->mask[e];
    if (!x)
        return (attn_input){0};
    return tensor(c, ATTN_BOOL, x, batch ? 2 : 1, batch ? shape : shape + 1);
}

static attn_input bias_tensor(const attn__call *c)
{
    int64_t shape[4];
    const int32_t rank = pair_axes(c, c->question->bias_shape, shape);

    return tensor(c, c->binding->dtype, c->question->bias, rank, shape);
}

static attn_input vector(const attn__call *c, const double *x, int64_t n)
{
    return tensor(c, c->binding->dtype, x, 1, &n);
}

static attn_input integers(const attn__call *c, const int64_t *x, int64_t n)
{
    double *y = attn__arena_doubles(c->arena, n + 1);

    for (int64_t e = 0; y && e < n; e++)
        y[e] = (double)x[e];
    return y ? tensor(c, ATTN_I64, y, 1, &n) : (attn_input){0};
}

/* --------------------------------------------------------------- matrices */

/* x (batch, len, model), or (len, model) without a batch. */
static attn_input hidden_states(const attn__call *c)
{
    const attn__question *q = c->question;

    return arranged(c, c->binding->layout, q->layer.x, 1, q->n.len_q,
                    q->layer.model);
}

/* (d_in, d_out), or the transpose where the subject has it so. */
static attn_input matrix(const attn__call *c, const double *w, int64_t rows,
                         int64_t cols)
{
    const int64_t shape[2] = {rows, cols}, turned[2] = {cols, rows};
    double *y;

    if (!c->binding->weights_out)
        return tensor(c, c->binding->dtype, w, 2, shape);
    y = attn__arena_doubles(c->arena, rows * cols);
    for (int64_t e = 0; y && e < rows * cols; e++)
        y[e % cols * rows + e / cols] = w[e];
    return y ? tensor(c, c->binding->dtype, y, 2, turned) : (attn_input){0};
}

/* [Q | K | V] side by side. */
static attn_input packed_matrix(const attn__call *c)
{
    const attn__question *q = c->question;
    const attn__sizes *n = &q->n;
    const int64_t rows = q->layer.model;
    const int64_t width[3] = {attn__width_q(n), attn__width_k(n),
                              attn__width_v(n)};
    const double *w[3] = {q->layer.w_q, q->layer.w_k, q->layer.w_v};
    const int64_t cols = width[0] + width[1] + width[2];
    double *y = attn__arena_doubles(c->arena, rows * cols);
    int64_t at = 0;

    if (!y)
        return (attn_input){0};
    for (int x = 0; x < 3; x++) {
        for (int64_t e = 0; e < rows * width[x]; e++)
            y[e / width[x] * cols + at + e % width[x]] = w[x][e];
        at += width[x];
    }
    return matrix(c, y, rows, cols);
}

/* [b_q | b_k | b_v]. */
static attn_input packed_bias(const attn__call *c)
{
    const attn__projections *l = &c->question->layer;
    const attn__sizes *n = &c->question->n;
    const double *const b[3] = {l->b_q, l->b_k, l->b_v};
    const int64_t width[3] = {attn__width_q(n), attn__width_k(n),
                              attn__width_v(n)};
    const int64_t all = width[0] + width[1] + width[2];
    double *y = attn__arena_doubles(c->arena, all);
    int64_t at = 0;

    for (int x = 0; y && x < 3; x++) {
        memcpy(y + at, b[x], (size_t)width[x] * sizeof *y);
        at += width[x];
    }
    return y ? vector(c, y, all) : (attn_input){0};
}

/* ---------------------------------------------------------------- values */

static attn_value of_tensor(attn_input t)
{
    return (attn_value){.kind = ATTN_VALUE_TENSOR, .tensor = t};
}

static attn_value of_real(double x)
{
    return (attn_value){.kind = ATTN_VALUE_REAL, .real = x};
}

static attn_value of_integer(int64_t x)
{
    return (attn_value){.kind = ATTN_VALUE_INTEGER, .integer = {x}};
}

static attn_value of_boolean(bool x)
{
    return (attn_value){.kind = ATTN_VALUE_BOOLEAN, .integer = {x}};
}

static attn_value none(void)
{
    return (attn_value){.kind = ATTN_VALUE_NONE};
}

static int64_t longest(const int64_t *cu, int64_t n)
{
    int64_t most = 0;

    for (int64_t s = 0; s < n; s++)
        most = cu[s + 1] - cu[s] > most ? cu[s + 1] - cu[s] : most;
    return most;
}

/* Per batch element: an array, or one number where there is no batch. */
static attn_value per_batch(const attn__call *c, const int64_t *x)
{
    const bool batch = attn__layout_facts_of(c->binding->layout)->batch &&
                       !c->binding->one_length;

    return batch ? of_tensor(integers(c, x, c->question->n.batch))
                 : of_integer(x[0]);
}

/* How many keys are valid: or without the one that is new, or the index of
 * the last. */
static attn_value lengths_value(const attn__call *c)
{
    const attn__question *q = c->question;
    const int64_t less = c->binding->appends || c->binding->by_position;
    int64_t *x = attn__arena_take(c->arena, q->n.batch, sizeof *x);

    for (int64_t b = 0; x && b < q->n.batch; b++)
        x[b] = q->lengths[b] - less;
    return x ? per_batch(c, x) : none();
}

static attn_value window_value(const attn__call *c)
{
    const int64_t *w = c->question->window;

    if (c->binding->window_is_number)
        return of_integer(w[0] + 1);
    return (attn_value){.kind = ATTN_VALUE_PAIR, .integer = {w[0], w[1]}};
}

/* q, or what has its shape, without the axis of length where it has none. */
static attn_input query_like(const attn__call *c, const double *x, int64_t dim)
{
    const attn__sizes *n = &c->question->n;
    const attn__layout_facts *f = attn__layout_facts_of(c->binding->layout);
    const attn__layout layout = c->binding->fusion != FUSION_FLAT
                                    ? c->binding->layout
                                : f->batch ? LAYOUT_BSE
                                           : LAYOUT_SE;
    attn_input t = arranged(c, layout, x, n->heads_q, n->len_q, dim);
    const int32_t axis = f->batch + (f->heads && f->heads_first);

    if (!c->binding->q_flat || n->len_q != 1)
        return t;
    for (int32_t a = axis; a + 1 < t.rank; a++) {
        t.shape[a] = t.shape[a + 1];
        t.stride[a] = t.stride[a + 1];
    }
    t.rank--;
    return t;
}

/* The last valid row of a batch element. */
static int64_t last_row(const attn__question *q, int64_t b)
{
    return (q->lengths ? q->lengths[b] : q->n.len_k) - 1;
}

/* The row of k or v that is new: the last valid one of each batch element. */
static attn_input newest(const attn__call *c, const double *x, int64_t dim)
{
    const attn__sizes *n = &c->question->n;
    const int64_t rows = n->batch * n->heads_kv;
    double *y = attn__arena_doubles(c->arena, rows * dim + 1);
    attn__question one = *c->question;
    attn__call of = *c;

    for (int64_t r = 0; y && r < rows; r++) {
        const int64_t last = last_row(c->question, r / n->heads_kv);

        memcpy(y + r * dim, x + (r * n->len_k + last) * dim,
               (size_t)dim * sizeof *y);
    }
    one.n.heads_q = n->heads_kv;
    of.question = &one;
    return y ? query_like(&of, y, dim) : (attn_input){0};
}

/* The rows of k or v before the last one. */
static attn_input past(const attn__call *c, const double *x, int64_t dim)
{
    const attn__sizes *n = &c->question->n;
    const int64_t rows = n->batch * n->heads_kv, size = (n->len_k - 1) * dim;
    double *y = attn__arena_doubles(c->arena, rows * size + 1);

    for (int64_t r = 0; y && r < rows; r++)
        memcpy(y + r * size, x + r * n->len_k * dim,
               (size_t)size * sizeof *y);
    return y ? activation(c, y, n->heads_kv, n->len_k - 1, dim)
             : (attn_input){0};
}

/* The cache before the new row is in it: without room for it, or with. */
static attn_input cache_before(const attn__call *c, const double *x,
                               int64_t dim)
{
    const attn__sizes *n = &c->question->n;
    const int64_t rows = n->batch * n->heads_kv, size = n->len_k * dim;
    double *y;

    if (c->binding->whole)
        return past(c, x, dim);
    y = attn__arena_copy(c->arena, x, rows * size, sizeof *x);
    if (!y)
        return (attn_input){0};
    for (int64_t r = 0; r < rows; r++) {
        const int64_t last = last_row(c->question, r / n->heads_kv);

        for (int64_t e = 0; e < dim; e++)
            y[r * size + last * dim + e] = 3.25;
    }
    return activation(c, y, n->heads_kv, n->len_k, dim);
}

/* (batch, heads, len_q) less the axes that q lacks. */
static attn_input row_statistic(const attn__call *c, const double *x)
{
    const attn__layout_facts *f = attn__layout_facts_of(c->binding->layout);
    const attn__sizes *n = &c->question->n;
    int64_t shape[3];
    int32_t rank = 0;

    if (f->batch)
        shape[rank++] = n->batch;
    if (f->heads)
        shape[rank++] = n->heads_q;
    shape[rank++] = n->len_q;
    return tensor(c, c->binding->dtype, x, rank, shape);
}

/* The inputs that every kind has. */
static bool input_value(const attn__call *c, attn__role role, attn_value *v)
{
    const attn__question *q = c->question;
    const attn__sizes *n = &q->n;

    if (role == ROLE_QKV || role == ROLE_KV)
        *v = attn__fused_value(c);
    else if (role == ROLE_Q)
        *v = of_tensor(query_like(c, q->q, n->dim_qk));
    else if (role == ROLE_K && c->binding->appends)
        *v = of_tensor(newest(c, q->k, n->dim_qk));
    else if (role == ROLE_V && c->binding->appends)
        *v = of_tensor(newest(c, q->v, n->dim_v));
    else if (role == ROLE_K_CACHE)
        *v = of_tensor(cache_before(c, q->k, n->dim_qk));
    else if (role == ROLE_V_CACHE)
        *v = of_tensor(cache_before(c, q->v, n->dim_v));
    else if (role == ROLE_K)
        *v = of_tensor(broadcast(c, key_tensor(c)));
    else if (role == ROLE_V)
        *v = of_tensor(broadcast(c, value_tensor(c)));
    else if (role == ROLE_D_O && q->d_o)
        *v = of_tensor(activation(c, q->d_o, n->heads_q, n->len_q, n->dim_v));
    else if (role == ROLE_O && q->o)
        *v = of_tensor(activation(c, q->o, n->heads_q, n->len_q, n->dim_v));
    else if (role == ROLE_LSE && q->lse_in)
        *v = of_tensor(row_statistic(c, q->lse_in));
    else if (role == ROLE_HEADS)
        *v = of_integer(n->heads_q);
    else if (role == ROLE_KV_HEADS)
        *v = of_integer(n->heads_kv);
    else
        return false;
    return true;
}

/* The inputs of a layer. */
static bool layer_value(const attn__call *c, attn__role role, attn_value *v)
{
    const attn__question *q = c->question;
    const attn__projections *l = &q->layer;
    const attn__sizes *n = &q->n;

    if (!l->x)
        return false;
    if (role == ROLE_X || role == ROLE_CONTEXT)
        *v = of_tensor(hidden_states(c));
    else if (role == ROLE_W_Q)
        *v = of_tensor(matrix(c, l->w_q, l->model, attn__width_q(n)));
    else if (role == ROLE_W_K)
        *v = of_tensor(matrix(c, l->w_k, l->model, attn__width_k(n)));
    else if (role == ROLE_W_V)
        *v = of_tensor(matrix(c, l->w_v, l->model, attn__width_v(n)));
    else if (role == ROLE_W_O && l->w_o)
        *v = of_tensor(matrix(c, l->w_o, attn__width_o(n), l->model));
    else if (role == ROLE_W_QKV)
        *v = of_tensor(packed_matrix(c));
    else if (role == ROLE_B_Q && l->b_q)
        *v = of_tensor(vector(c, l->b_q, attn__width_q(n)));
    else if (role == ROLE_B_K && l->b_k)
        *v = of_tensor(vector(c, l->b_k, attn__width_k(n)));
    else if (role == ROLE_B_V && l->b_v)
        *v = of_tensor(vector(c, l->b_v, attn__width_v(n)));
    else if (role == ROLE_B_QKV && l->b_q && l->b_k && l->b_v)
        *v = of_tensor(packed_bias(c));
    else if (role == ROLE_B_O && l->b_o)
        *v = of_tensor(vector(c, l->b_o, l->model));
    else
        return false;
    return true;
}

double attn__default_dropout(const attn__binding *b)
{
    const int x = attn__parameter_of(b, ROLE_DROPOUT);
    const char *fallback = x >= 0 ? b->subject->parameters[x].fallback : NULL;

    if (!fallback)
        return 0;
    return strcmp(fallback, "True") == 0 ? 1 : atof(fallback);
}

/* What the question asks by this role. */
static bool asked_value(const attn__call *c, attn__role role, attn_value *v)
{
    const attn__question *q = c->question;
    const bool keys_only = q->mask && q->mask_shape[1] == 1 &&
                           q->mask_shape[2] == 1;
    const bool split_masks =
        attn__parameter_of(c->binding, ROLE_MASK) >= 0;

    if (role == ROLE_MASK && q->mask)
        *v = of_tensor(mask_tensor(c));
    else if (role == ROLE_MASK && q->bias && c->binding->mask_adds &&
             attn__parameter_of(c->binding, ROLE_BIAS) < 0)
        *v = of_tensor(bias_tensor(c));
    else if (role == ROLE_KEY_MASK && q->mask && keys_only && !split_masks)
        *v = of_tensor(key_mask_tensor(c));
    else if (role == ROLE_BIAS && q->bias)
        *v = of_tensor(bias_tensor(c));
    else if (role == ROLE_SCALE && q->asked & ASK_SCALE)
        *v = of_real(q->scale);
    else if (role == ROLE_CAUSAL)
        *v = of_boolean(q->asked & ASK_CAUSAL);
    else if (role == ROLE_WINDOW && q->asked & ASK_WINDOW)
        *v = window_value(c);
    else if (role == ROLE_WINDOW_LEFT && q->asked & ASK_WINDOW)
        *v = of_integer(q->window[0]);
    else if (role == ROLE_WINDOW_RIGHT && q->asked & ASK_WINDOW)
        *v = of_integer(q->window[1]);
    else if (role == ROLE_SOFTCAP && q->asked & ASK_SOFTCAP)
        *v = of_real(q->softcap);
    else if (role == ROLE_SLOPES && q->slopes)
        *v = of_tensor(vector(c, q->slopes, q->n.heads_q));
    else if (role == ROLE_SINKS && q->sinks)
        *v = of_tensor(vector(c, q->sinks, q->n.heads_q));
    else if ((role == ROLE_LENGTHS ||
              (role == ROLE_POSITIONS && c->binding->by_position)) &&
             q->lengths)
        *v = lengths_value(c);
    else if (role == ROLE_CU_Q && q->cu_q)
        *v = of_tensor(integers(c, q->cu_q, q->n_sequences + 1));
    else if (role == ROLE_CU_K && q->cu_k)
        *v = of_tensor(integers(c, q->cu_k, q->n_sequences + 1));
    else if (role == ROLE_MAX_Q && q->cu_q)
        *v = of_integer(longest(q->cu_q, q->n_sequences));
    else if (role == ROLE_MAX_K && q->cu_k)
        *v = of_integer(longest(q->cu_k, q->n_sequences));
    else if (role == ROLE_HEAD_DIM)
        *v = of_integer(q->n.dim_qk);
    else if (role == ROLE_D_MODEL)
        *v = of_integer(q->layer.x ? q->layer.model
                                   : attn__width_q(&q->n));
    else if (role == ROLE_DROPOUT && c->binding->drop_off)
        *v = of_real(0);
    else if (role == ROLE_OFFSET && q->offset)
        *v = q->cu_q ? of_tensor(integers(c, q->offset, q->n_sequences))
                     : per_batch(c, q->offset);
    else if (role == ROLE_EXTRA && q->asked & ASK_EXTRA)
        *v = of_boolean(true);
    else if (role == ROLE_TRAINING)
        *v = of_boolean(false);
    else if (role == ROLE_EVALUATION)
        *v = of_boolean(true);
    else if (role == ROLE_GROUPED && q->n.heads_q != q->n.heads_kv)
        *v = of_boolean(true);
    else
        return false;
    return true;
}

/* A parameter that must be given and that the question does not ask. */
static attn_value neutral_value(const attn__call *c, attn__role role)
{
    const attn__question *q = c->question;

    if (role == ROLE_SCALE)
        return of_real(1 / sqrt((double)q->n.dim_qk));
    if (role == ROLE_SOFTCAP || role == ROLE_DROPOUT)
        return of_real(0);
    if (role == ROLE_EXTRA)
        return of_boolean(false);
    if (role == ROLE_OFFSET)
        return of_integer(0);
    if (role == ROLE_WINDOW_LEFT || role == ROLE_WINDOW_RIGHT)
        return of_integer(-1);
    return none();
}

void attn__pass(attn__call *c)
{
    const attn_subject *s = c->binding->subject;

    c->n = 0;
    for (int x = 0; x < s->n_parameters; x++) {
        const attn__role role = c->binding->role[x];
        attn_value value;

        if (!layer_value(c, role, &value) && !input_value(c, role, &value) &&
            !asked_value(c, role, &value)) {
            if (s->parameters[x].optional)
                continue;
            value = neutral_value(c, role);
        }
        value.parameter = x;
        c->values[c->n++] = value;
    }
}
