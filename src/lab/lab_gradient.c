/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of the loss half the square of Y, analytic against central
 * differences at every entry of W_q and V; and the loss while it descends. */
#include <math.h>
#include <string.h>

#include "lab/workbench.h"

#define STEPS 40

/* A loss as a function of w_q and v; the rest is the scene's. */
static bool loss_of(lab *l, const scene *s, const double *q, const double *v,
                    double *loss)
{
    void *mark = l->result->memory;
    attended a;
    bool ok = attn__lab_attend(l, s->len, s->dim, s->dim_v, q, s->k, v,
                               &(rules){.causal = true}, &a);

    *loss = 0;
    for (int64_t i = 0; ok && i < s->len * s->dim_v; i++)
        *loss += 0.5 * a.o[i] * a.o[i];
    /* Thousands of these would pile up. */
    while (l->result->memory != mark) {
        void *block = l->result->memory;

        memcpy(&l->result->memory, block, sizeof block);
        attn_free(block);
    }
    return ok;
}

/* dq and dv of the loss, by the library. */
static bool backward(lab *l, const scene *s, const double *q, const double *v,
                     double *dq, double *dv)
{
    const int64_t n = s->len;
    attn_desc desc;
    attn_args args;
    double *o = attn__lab_numbers(l, n, s->dim_v);
    double *lse = attn__lab_numbers(l, n, 1);
    const int64_t shape[3] = {1, 1, n};

    if (!o || !lse)
        return false;
    attn_desc_init(&desc, ATTN_F64, 1, 1, 1, n, n, s->dim, s->dim_v);
    desc.causal = ATTN_CAUSAL_TOP_LEFT;
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F64, 1, 1, n, s->dim);
    args.kv.k = attn_in_bhsd(s->k, ATTN_F64, 1, 1, n, s->dim);
    args.kv.v = attn_in_bhsd(v, ATTN_F64, 1, 1, n, s->dim_v);
    args.o = attn_bhsd(o, ATTN_F64, 1, 1, n, s->dim_v);
    args.lse = attn_dense(lse, ATTN_F64, 3, shape);
    args.d_o = attn_in(args.o); /* the gradient of half the square */
    args.dq = attn_bhsd(dq, ATTN_F64, 1, 1, n, s->dim);
    args.dv = attn_bhsd(dv, ATTN_F64, 1, 1, n, s->dim_v);
    l->status = attn_attention(&desc, &args, 1, l->diag);
    if (l->status == ATTN_OK)
        l->status = attn_attention_backward(&desc, &args, 1, l->diag);
    return l->status == ATTN_OK;
}

/* q of a W_q of which entry (r, c) is larger by `step`. */
static void shift_q(const scene *s, int64_t r, int64_t c, double step,
                    double *q)
{
    for (int64_t i = 0; i < s->len; i++)
        q[i * s->dim + c] += step * s->x[i * s->width + r];
}

/* The central difference at entry e of W_q. */
static bool difference_q(lab *l, const scene *s, int64_t e, double *q,
                         double *to)
{
    const int64_t r = e / s->dim, c = e % s->dim;
    const double h = 0x1p-17 * fmax(1, fabs(s->w_q[e]));
    const size_t bytes = (size_t)(s->len * s->dim) * sizeof *q;
    double above, below;

    memcpy(q, s->q, bytes);
    shift_q(s, r, c, h, q);
    if (!loss_of(l, s, q, s->v, &above))
        return false;
    memcpy(q, s->q, bytes);
    shift_q(s, r, c, -h, q);
    if (!loss_of(l, s, q, s->v, &below))
        return false;
    *to = (above - below) / (2 * h);
    return true;
}

/* The same at entry e of V. */
static bool difference_v(lab *l, const scene *s, int64_t e, double *v,
                         double *to)
{
    const double h = 0x1p-17 * fmax(1, fabs(s->v[e]));
    double above, below;

    memcpy(v, s->v, (size_t)(s->len * s->dim_v) * sizeof *v);
    v[e] = s->v[e] + h;
    if (!loss_of(l, s, s->q, v, &above))
        return false;
    v[e] = s->v[e] - h;
    if (!loss_of(l, s, s->q, v, &below))
        return false;
    *to = (above - below) / (2 * h);
    return true;
}

static bool differences(lab *l, const scene *s, double *numeric_w,
                        double *numeric_v)
{
    double *q = attn__lab_numbers(l, s->len, s->dim);
    double *v = attn__lab_numbers(l, s->len, s->dim_v);

    if (!q || !v)
        return false;
    for (int64_t e = 0; e < s->width * s->dim; e++)
        if (!difference_q(l, s, e, q, &numeric_w[e]))
            return false;
    for (int64_t e = 0; e < s->len * s->dim_v; e++)
        if (!difference_v(l, s, e, v, &numeric_v[e]))
            return false;
    return true;
}

/* dW_q = x^T dq */
static void through_x(const scene *s, const double *dq, double *dw)
{
    for (int64_t r = 0; r < s->width; r++)
        for (int64_t c = 0; c < s->dim; c++) {
            dw[r * s->dim + c] = 0;
            for (int64_t i = 0; i < s->len; i++)
                dw[r * s->dim + c] += s->x[i * s->width + r] *
                                      dq[i * s->dim + c];
        }
}

static bool tell(lab *l, const char *name, int64_t first, int64_t rows,
                 int64_t columns, const double *analytic,
                 const double *numeric)
{
    for (int64_t e = 0; e < rows * columns; e++) {
        const char *entry = attn__lab_text(l, "%s[%lld,%lld]", name,
                                           (long long)(e / columns),
                                           (long long)(e % columns));

        if (!entry)
            return false;
        attn__lab_word(l, first + e, 0, entry);
        attn__lab_number(l, first + e, 1, analytic[e]);
        attn__lab_number(l, first + e, 2, numeric[e]);
        attn__lab_number(l, first + e, 3, fabs(analytic[e] - numeric[e]));
    }
    return true;
}

/* The loss while W_q and V go down their gradients. */
static bool descend(lab *l, const scene *s, double *losses)
{
    double *w = attn__lab_numbers(l, s->width, s->dim);
    double *v = attn__lab_numbers(l, s->len, s->dim_v);
    double *dq = attn__lab_numbers(l, s->len, s->dim);
    double *dv = attn__lab_numbers(l, s->len, s->dim_v);
    double *dw = attn__lab_numbers(l, s->width, s->dim);

    if (!w || !v || !dq || !dv || !dw)
        return false;
    memcpy(w, s->w_q, (size_t)(s->width * s->dim) * sizeof *w);
    memcpy(v, s->v, (size_t)(s->len * s->dim_v) * sizeof *v);
    for (int64_t t = 0; t < STEPS; t++) {
        double *q = attn__lab_product(l, s->x, w, s->len, s->width, s->dim);

        if (!q || !loss_of(l, s, q, v, &losses[t]) ||
            !backward(l, s, q, v, dq, dv))
            return false;
        through_x(s, dq, dw);
        for (int64_t e = 0; e < s->width * s->dim; e++)
            w[e] -= 0.1 * dw[e];
        for (int64_t e = 0; e < s->len * s->dim_v; e++)
            v[e] -= 0.1 * dv[e];
    }
    return true;
}

/* The largest difference, as a part of the largest gradient. */
static double relative(const double *a, const double *b, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    return attn__lab_apart(a, b, n) / (most > 0 ? most : 1);
}

bool attn__lab_gradient(lab *l)
{
    static const char *const columns[] = {"entry", "analytic", "difference",
                                          "apart", NULL};
    double *dq, *dv, *dw, *near_w, *near_v, *losses;
    int64_t of_w, of_v;
    scene s;

    if (!attn__lab_scene(l, 4, 3, &s))
        return false;
    of_w = s.width * s.dim;
    of_v = s.len * s.dim_v;
    if (of_w + of_v > 4096)
        return attn__lab_refuse(l, ATTN_E_LIMIT, "len", "W_q and V have more "
                                "than 4096 entries to check");
    dq = attn__lab_numbers(l, s.len, s.dim);
    dv = attn__lab_numbers(l, s.len, s.dim_v);
    dw = attn__lab_numbers(l, s.width, s.dim);
    near_w = attn__lab_numbers(l, s.width, s.dim);
    near_v = attn__lab_numbers(l, s.len, s.dim_v);
    losses = attn__lab_numbers(l, STEPS, 1);
    if (!dq || !dv || !dw || !near_w || !near_v || !losses ||
        !backward(l, &s, s.q, s.v, dq, dv) ||
        !differences(l, &s, near_w, near_v) || !descend(l, &s, losses) ||
        !attn__lab_table(l, "Gradients of half the square of Y, causal",
                         columns, of_w + of_v))
        return false;
    through_x(&s, dq, dw);
    if (!tell(l, s.given_q ? "dQ" : "dW_q", 0, s.width, s.dim, dw, near_w) ||
        !tell(l, "dV", of_w, s.len, s.dim_v, dv, near_v))
        return false;
    attn__lab_curve(l, "loss", STEPS, losses);
    l->result->conclusion = attn__lab_text(
        l, "All %lld entries agree with central differences to %.0e of the "
        "largest gradient or better. Going down these gradients brings the "
        "loss from %.4g to %.4g in %d steps.", (long long)(of_w + of_v),
        pow(10, ceil(log10(fmax(1e-12, fmax(relative(dw, near_w, of_w),
                                            relative(dv, near_v, of_v)))))),
        losses[0], losses[STEPS - 1], STEPS - 1);
    return l->result->conclusion != NULL;
}
