/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows without any visible key, NaN under the mask, long sums. */
#include <math.h>
#include <string.h>

#include "doctor/stress.h"

/* ------------------------------------------------------------ empty rows */

/* A question in which some rows see nothing, by mask, lengths or causality;
 * NULL if the subject takes none. */
static attn__question *with_empty_rows(attn__attempt *a)
{
    attn__interview *in = a->interview;
    const uint32_t takes = a->binding.takes;
    attn__sizes n = attn__sizes_general(in);
    attn__question *q = NULL;

    if (takes & ASK_MASK) {
        unsigned char *mask;
        int64_t count;

        q = attn__aside(a, n, ASK_MASK);
        if (!q)
            return NULL;
        count = q->mask_shape[0] * q->mask_shape[1] * q->mask_shape[2] *
                q->mask_shape[3];
        mask = attn__arena_take(in->arena, count, 1);
        for (int64_t e = 0; mask && e < count; e++)
            mask[e] = (e >= q->mask_shape[3] && q->mask[e]) !=
                      a->meaning.mask_hides;
        q->mask = mask;
    } else if ((takes & ASK_CAUSAL || a->meaning.always) &&
               in->sizes & ASK_CROSS &&
               a->meaning.corner == ATTN_CAUSAL_BOTTOM_RIGHT) {
        n.len_q = n.len_k + 2;
        q = attn__aside(a, n, takes & ASK_CAUSAL);
    }
    if (!q && takes & ASK_LENGTHS) {
        int64_t *lengths =
            attn__arena_take(in->arena, n.batch, sizeof *lengths);

        q = attn__aside(a, n, ASK_LENGTHS);
        for (int64_t b = 1; lengths && b < n.batch; b++)
            lengths[b] = n.len_k;
        if (q)
            q->lengths = lengths;
    }
    return in->arena->failed ? NULL : q;
}

typedef enum empty_answer { ROWS_NONE, ROWS_ZERO, ROWS_NAN, ROWS_MEAN,
                            ROWS_OTHER } empty_answer;

/* What the row's o is: 0, NaN, or the mean of all values of its head. */
static empty_answer kind_of_row(const attn__work *w, const attn__question *q,
                                const attn__pairs *row)
{
    const int64_t dim = q->n.dim_v;
    const double *o = q->answer + row->index * dim;
    bool zero = true, nan = true, mean = true;

    for (int64_t c = 0; c < dim; c++) {
        double sum = 0;

        for (int64_t j = 0; j < q->n.len_k; j++)
            sum += attn__value(w, row, j)[c];
        zero &= o[c] == 0;
        nan &= isnan(o[c]);
        mean &= fabs(o[c] - sum / (double)q->n.len_k) < 1e-3;
    }
    return zero ? ROWS_ZERO : nan ? ROWS_NAN : mean ? ROWS_MEAN : ROWS_OTHER;
}

static empty_answer kind_of_rows(attn__exam *exam, const attn__attempt *a,
                                 const attn__question *q)
{
    const attn__work *w = &exam->work;
    empty_answer kind = ROWS_NONE;

    attn__is_met(exam, a, q); /* leaves the prediction in w */
    ATTN__FOR_ROWS(w, row) {
        bool empty = true;

        for (int64_t j = 0; j < q->n.len_k; j++)
            empty &= !row.visible[j];
        if (!empty)
            continue;
        if (kind == ROWS_NONE)
            kind = kind_of_row(w, q, &row);
        else if (kind != kind_of_row(w, q, &row))
            kind = ROWS_OTHER;
    }
    return kind;
}

void attn__stress_empty_rows(attn__exam *exam, attn__attempt *a)
{
    static const char *const words[] = {"", "zero", "nan", "mean", "other"};
    const attn__empty wanted = exam->expect.empty_rows;
    attn__question *q = with_empty_rows(a);
    attn_report *r = exam->report;
    empty_answer kind;

    if (a->meaning.sinks || !q || q->d_o || q->layer.x ||
        !attn__put_aside(a, q))
        return;
    kind = kind_of_rows(exam, a, q);
    if (kind == ROWS_NONE)
        return;
    attn__add_fact(r, "empty_rows", "%s", words[kind]);
    if (wanted == EMPTY_ANY || (wanted == EMPTY_ZERO && kind == ROWS_ZERO) ||
        (wanted == EMPTY_NAN && kind == ROWS_NAN))
        return;
    attn__add_fault(r, kind == ROWS_NAN ? "empty-row-nan" : "empty-row-mean",
                    kind == ROWS_ZERO ? "It is 0, and NaN is wanted" : "")
        ->evidence = "a question whose first row sees no key";
}

/* -------------------------------------------------------------- hidden NaN */

/* The last two keys are hidden from every row and hold NaN, in k or in v. */
static attn__question *with_hidden_nan(attn__attempt *a, bool in_v)
{
    attn__interview *in = a->interview;
    const attn__sizes n = attn__sizes_general(in);
    const bool masks = a->binding.takes & ASK_MASK;
    attn__question *q = attn__aside(a, n, masks ? ASK_MASK : ASK_LENGTHS);
    const int64_t dim = in_v ? n.dim_v : n.dim_qk;
    const int64_t count = n.batch * n.heads_kv * n.len_k * dim;
    double *x = attn__arena_doubles(in->arena, count);
    int64_t *lengths = attn__arena_take(in->arena, n.batch, sizeof *lengths);

    if (!q || !x || !lengths)
        return NULL;
    for (int64_t e = 0; e < count; e++)
        x[e] = e / dim % n.len_k >= n.len_k - 2 ? NAN : (in_v ? q->v : q->k)[e];
    for (int64_t b = 0; b < n.batch; b++)
        lengths[b] = n.len_k - 2;
    *(in_v ? &q->v : &q->k) = x;
    if (masks) {
        const int64_t m = q->mask_shape[0] * q->mask_shape[1] *
                          q->mask_shape[2] * q->mask_shape[3];
        unsigned char *mask = attn__arena_take(in->arena, m, 1);

        for (int64_t e = 0; mask && e < m; e++)
            mask[e] = (e % n.len_k < n.len_k - 2) != a->meaning.mask_hides;
        q->mask = mask;
    } else {
        q->lengths = lengths;
    }
    return in->arena->failed ? NULL : q;
}

static bool has_nan(const attn__question *q)
{
    for (int64_t x = 0; x < q->n_answer; x++) {
        if (!isfinite(q->answer[x]))
            return true;
    }
    return false;
}

void attn__stress_hidden_nan(attn__exam *exam, attn__attempt *a)
{
    bool leaks[2] = {false, false};

    if (!(a->binding.takes & (ASK_MASK | ASK_LENGTHS)) ||
        a->binding.mask_adds)
        return;
    for (int in_v = 0; in_v < 2; in_v++) {
        attn__question *q = with_hidden_nan(a, in_v);

        leaks[in_v] = q && attn__put_aside(a, q) && has_nan(q);
    }
    if (leaks[0] || leaks[1])
        attn__add_limit(exam->report, "masked-nan-leak", "")->evidence =
            leaks[0] && leaks[1]
                ? "NaN in hidden keys and in hidden values reaches the result"
            : leaks[0] ? "NaN in hidden keys reaches the result"
                       : "NaN in hidden values reaches the result";
}

/* ------------------------------------------------------------------- sums */

/* Uniform weights over 5000 keys, values 1 and then 1.7: a sum kept in 16
 * bits stalls. */
void attn__stress_sums(attn__exam *exam, attn__attempt *a)
{
    const int64_t len = 5000;
    attn__question *q;
    double *k, *v, worst = 0;

    if (a->tier != TIER_F16 || !(a->interview->sizes & ASK_CROSS))
        return;
    q = attn__aside(a, (attn__sizes){1, 1, 1, 2, len, 2, 2}, 0);
    k = attn__arena_doubles(a->interview->arena, len * 2);
    v = attn__arena_doubles(a->interview->arena, len * 2);
    if (!q || !k || !v)
        return;
    for (int64_t e = 0; e < len * 2; e++)
        v[e] = e < len ? 1 : 1.7;
    q->k = k;
    q->v = v;
    if (!attn__put_aside(a, q))
        return;
    for (int64_t x = 0; x < q->n_answer; x++)
        worst = fmax(worst, fabs(q->answer[x] - 1.35));
    if (worst < 0.02)
        return;
    attn__add_fault(exam->report, "accumulate-16bit", "")->evidence =
        attn__arena_text(&exam->report->arena,
                         "the mean of 5000 values, 1 and 1.7 by halves, is "
                         "off by %.3g",
                         worst);
}
