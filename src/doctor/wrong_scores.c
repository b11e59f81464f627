/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps from the product to the score: scale, dot, softcap, bias,
 * ALiBi. */
#include <math.h>

#include "doctor/wrong.h"

/* ----------------------------------------------------------------- scale */

void attn__scale_constant(attn__work *w, double param)
{
    w->scale = param;
}

static void scale_root(attn__work *w, int64_t n)
{
    w->scale = 1 / sqrt((double)n);
}

/* 1/sqrt(d_model) instead of 1/sqrt(head dim). */
void attn__scale_heads(attn__work *w, double param)
{
    (void)param;
    scale_root(w, w->n.heads_q * w->n.dim_qk);
}

void attn__scale_kv_heads(attn__work *w, double param)
{
    (void)param;
    scale_root(w, w->n.heads_kv * w->n.dim_qk);
}

/* param 0: of the keys, 1: of the queries. */
void attn__scale_length(attn__work *w, double param)
{
    scale_root(w, param > 0 ? w->n.len_q : w->n.len_k);
}

void attn__scale_value_dim(attn__work *w, double param)
{
    (void)param;
    scale_root(w, w->n.dim_v);
}

/* The width of x. */
void attn__scale_model(attn__work *w, double param)
{
    if (w->given->layer.x)
        scale_root(w, w->given->layer.model);
    else
        attn__right_scale(w, param);
}

/* D to the power of param. */
void attn__scale_power(attn__work *w, double param)
{
    w->scale = pow((double)w->n.dim_qk, param);
}

/* D rounded up to a multiple of param, or for 0 to a power of two. */
void attn__scale_padded(attn__work *w, double param)
{
    const double dim = (double)w->n.dim_qk;
    const double padded =
        param > 0 ? param * ceil(dim / param) : exp2(ceil(log2(dim)));

    w->scale = 1 / sqrt(padded);
}

void attn__scale_default(attn__work *w, double param)
{
    (void)param;
    scale_root(w, w->n.dim_qk);
}

void attn__scale_divides(attn__work *w, double param)
{
    attn__right_scale(w, param);
    w->scale = 1 / w->scale;
}

/* The wanted scale, and 1/sqrt(D) on top. */
void attn__scale_on_default(attn__work *w, double param)
{
    attn__right_scale(w, param);
    w->scale /= sqrt((double)w->n.dim_qk);
}

/* sqrt(scale) on q and on k. */
void attn__scale_root_negative(attn__work *w, double param)
{
    attn__right_scale(w, param);
    w->breaks = w->scale < 0;
}

/* ------------------------------------------------------------------- dot */

static bool is_square(const attn__work *w)
{
    return w->n.len_q == w->n.len_k && w->n.heads_q == w->n.heads_kv;
}

/* s_ij = <k_i, q_j>. */
void attn__dot_exchanged(attn__work *w, double param)
{
    const double *q = w->q;

    if (is_square(w)) {
        w->q = w->k;
        w->k = q;
    }
    attn__right_dot(w, param);
    w->k = w->q == q ? w->k : w->q;
    w->q = q;
}

/* k (len, dim) reshaped to (dim, len) instead of transposed. */
void attn__dot_reshaped_key(attn__work *w, double param)
{
    const int64_t n = w->n.len_k, dim = w->n.dim_qk;

    (void)param;
    ATTN__FOR_ROWS(w, row) {
        const double *q = attn__query(w, &row), *k = attn__key(w, &row, 0);

        for (int64_t j = 0; j < n; j++) {
            row.s[j] = 0;
            for (int64_t c = 0; c < dim; c++)
                row.s[j] += w->scale * q[c] * k[c * n + j];
        }
    }
}

/* Element `at` of k.T, all axes reversed, in its own order: (D, Lk, H, B). */
static double reversed_key(const attn__work *w, int64_t at)
{
    const int64_t b = at % w->n.batch, h = at / w->n.batch % w->n.heads_kv;
    const int64_t rest = at / w->n.batch / w->n.heads_kv;
    const int64_t j = rest % w->n.len_k, c = rest / w->n.len_k;

    return w->k[((b * w->n.heads_kv + h) * w->n.len_k + j) * w->n.dim_qk + c];
}

/* Can k.T take the place of a transpose as it is? */
static bool reverses_silently(const attn__work *w)
{
    const int64_t d = w->n.dim_qk;

    return is_square(w) && w->n.len_k == d && w->n.heads_kv == d &&
           (w->n.batch == d || w->n.batch == 1);
}

/* s[b,h,i,j] = sum_c q[b,h,i,c] k.T[b,h,c,j]: param 0, as k.T is, where that
 * fits; 1, reshaped. Without a batch both are the same but for the heads. */
void attn__dot_reversed_key(attn__work *w, double param)
{
    const int64_t n = w->n.len_k, d = w->n.dim_qk;

    if (param == 0 && !reverses_silently(w)) {
        attn__right_dot(w, param);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        const double *q = attn__query(w, &row);
        const int64_t head = row.b * w->n.heads_kv + w->kv_head[row.h];

        for (int64_t j = 0; j < n; j++) {
            row.s[j] = 0;
            for (int64_t c = 0; c < d; c++)
                row.s[j] += w->scale * q[c] *
                            reversed_key(w, (head * d + c) * n + j);
        }
    }
}

/* --------------------------------------------------------------- softcap */

/* Minus infinity becomes minus the cap. */
void attn__cap_after_mask(attn__work *w, double param)
{
    (void)param;
    w->cap_late = true;
}

#define FOR_CAPPED(w, x)                                                      \
    for (int64_t x = 0; (w)->softcap > 0 && x < attn__count_pairs(&(w)->n);   \
         x++)

/* s tanh(s / cap). */
void attn__cap_product(attn__work *w, double param)
{
    (void)param;
    FOR_CAPPED(w, x)
        w->s[x] *= tanh(w->s[x] / w->softcap);
}

/* tanh(s / cap), the cap forgotten outside. */
void attn__cap_unscaled(attn__work *w, double param)
{
    (void)param;
    FOR_CAPPED(w, x)
        w->s[x] = tanh(w->s[x] / w->softcap);
}

/* cap tanh(s), forgotten inside. */
void attn__cap_inside(attn__work *w, double param)
{
    (void)param;
    FOR_CAPPED(w, x)
        w->s[x] = w->softcap * tanh(w->s[x]);
}

void attn__cap_clip(attn__work *w, double param)
{
    (void)param;
    FOR_CAPPED(w, x)
        w->s[x] = fmax(-w->softcap, fmin(w->softcap, w->s[x]));
}

/* The cap on the product before the scale. */
void attn__cap_before_scale(attn__work *w, double param)
{
    (void)param;
    FOR_CAPPED(w, x)
        w->s[x] =
            w->scale * w->softcap * tanh(w->s[x] / w->scale / w->softcap);
}

/* Another cap than the one that is asked for. */
void attn__cap_constant(attn__work *w, double param)
{
    FOR_CAPPED(w, x)
        w->s[x] = param * tanh(w->s[x] / param);
}

void attn__cap_factor(attn__work *w, double param)
{
    attn__cap_constant(w, param * w->softcap);
}

void attn__cap_twice(attn__work *w, double param)
{
    (void)param;
    attn__cap(w);
    attn__cap(w);
}

static void add_bias(attn__work *w, double factor)
{
    const attn__question *a = w->given;

    if (!a->bias)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] += factor *
                a->bias[attn__at(a->bias_shape, row.b, row.h, row.i, j)];
    }
}

/* Bias inside the cap. BIAS will add it again, so it is taken off here. */
void attn__cap_bias(attn__work *w, double param)
{
    (void)param;
    add_bias(w, 1);
    attn__cap(w);
    add_bias(w, -1);
}

/* The same of scale (q k + bias). */
void attn__cap_scaled_bias(attn__work *w, double param)
{
    (void)param;
    add_bias(w, w->scale);
    attn__cap(w);
    add_bias(w, -1);
}

/* ---------------------------------------------------------- bias, ALiBi */

/* scale (q k + bias). */
void attn__bias_scaled(attn__work *w, double param)
{
    (void)param;
    add_bias(w, w->scale);
}

/* + param bias. */
void attn__bias_times(attn__work *w, double param)
{
    add_bias(w, param);
}

/* Which pair's bias the pair (i, j) of a row gets; form: see below. */
static int64_t bias_place(const attn__work *w, const attn__pairs *row,
                          int64_t j, int form)
{
    const attn__question *a = w->given;
    const int64_t n = w->n.len_q, m = w->n.len_k;
    int64_t h = row->h, i = row->i;

    if (form == 0 && n == m) {
        i = j;
        j = row->i;
    }
    if (form == 1 || form == 2)
        j = (j + (form == 1 ? m - 1 : 1)) % m;
    if (form == 3 || form == 4)
        i = (i + (form == 3 ? n - 1 : 1)) % n;
    if (form == 5 || form == 7)
        j = m - 1 - j;
    if (form == 6 || form == 7)
        i = n - 1 - i;
    if (form == 8 || form == 9)
        h = form == 8 ? 0 : w->n.heads_q - 1 - h;
    return attn__at(a->bias_shape, row->b, h, i, j);
}

/* The bias of another pair. param: 0 transposed, 1 2 rolled along the keys,
 * 3 4 along the queries, 5 6 7 reversed, 8 head 0, 9 heads reversed. */
void attn__bias_moved(attn__work *w, double param)
{
    if (!w->given->bias)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] += w->given->bias[bias_place(w, &row, j, (int)param)];
    }
}

/* The bias one key or query further, 0 where nothing moves in. param: 0 to the
 * right, 1 to the left, 2 downwards, 3 upwards; 4 the relative shift: a column
 * of 0 in front, and the rows read on as if they were without it. */
void attn__bias_shifted(attn__work *w, double param)
{
    const attn__question *a = w->given;
    const int64_t n = w->n.len_q, m = w->n.len_k;

    if (!a->bias)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t x = 0; x < m; x++) {
            int64_t i = row.i + (param == 3) - (param == 2);
            int64_t j = x + (param == 1) - (param == 0);

            if (param == 4) {
                i = (n + row.i * m + x) / (m + 1);
                j = (n + row.i * m + x) % (m + 1) - 1;
            }
            if (i >= 0 && i < n && j >= 0 && j < m)
                row.s[x] +=
                    a->bias[attn__at(a->bias_shape, row.b, row.h, i, j)];
        }
    }
}

/* + slope |p - j|. */
void attn__alibi_sign(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] += w->slopes[row.h] * fabs((double)(row.position - j));
    }
}

/* param (p - j) slope: signed distance. */
void attn__alibi_signed(attn__work *w, double param)
{
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] += param * w->slopes[row.h] * (double)(row.position - j);
    }
}

/* |i - j|, the query's row instead of its position. */
void attn__alibi_local(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] -= w->slopes[row.h] * fabs((double)(row.i - j));
    }
}

/* The slope of head `h` in place of the row's own, to a power, times a
 * factor. */
static void alibi_of(attn__work *w, const attn__pairs *row, int64_t h,
                     double power, double factor)
{
    const double slope = pow(w->slopes[h], power) * factor;

    for (int64_t j = 0; j < w->n.len_k; j++)
        row->s[j] -= slope * fabs((double)(row->position - j));
}

/* Every head has the slope of the next (param 1) or the one before. */
void attn__alibi_next_head(attn__work *w, double param)
{
    const int64_t n = w->n.heads_q;

    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row)
        alibi_of(w, &row, (row.h + (int64_t)param + n) % n, 1, 1);
}

void attn__alibi_reversed(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row)
        alibi_of(w, &row, w->n.heads_q - 1 - row.h, 1, 1);
}

void attn__alibi_power(attn__work *w, double param)
{
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row)
        alibi_of(w, &row, row.h, param, 1);
}

void attn__alibi_squared(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++) {
            const double far = (double)(row.position - j);

            row.s[j] -= w->slopes[row.h] * far * far;
        }
    }
}

void attn__alibi_scaled(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row)
        alibi_of(w, &row, row.h, 1, w->scale);
}

/* Slopes of a table, whatever is wanted. 0: 2^(-8 (h + 1) / H); 1: the same
 * from h = 0; 2: for the next lower power of two, and the odd ones of twice
 * that; 3: 1 / 2^(h + 1); 4: 1 for every head. */
void attn__alibi_table(attn__work *w, double param)
{
    const int64_t n = w->n.heads_q;

    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        const double slope = attn__alibi_slope((int)param, row.h, n);

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] -= slope * fabs((double)(row.position - j));
    }
}

double attn__alibi_slope(int table, int64_t h, int64_t heads)
{
    const double n = (double)heads, at = (double)h;
    const double lower = exp2(floor(log2(n)));

    switch (table) {
    case 0:
        return exp2(-8 * (at + 1) / n);
    case 1:
        return exp2(-8 * at / n);
    case 2:
        return at < lower ? exp2(-8 * (at + 1) / lower)
                          : exp2(-4 * (2 * (at - lower) + 1) / lower);
    case 3:
        return exp2(-at - 1);
    default:
        return 1;
    }
}
