/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call brings against its plan, as a table: each tensor with its shape,
 * its type and whether it must be there. What shapes the scores is checked by
 * attention itself, before it writes anything. */
#include "layer/layer_steps.h"

#include <string.h>

#define MAX_VIEWS 48

typedef enum element_kind {
    SAME_TYPE, /* the layer's dtype */
    ANY_REAL,  /* f64, f32 or the layer's dtype */
    INDEX      /* int32 or int64 */
} element_kind;

/* Whether a tensor may, must or must not be there. */
typedef enum presence { OPTIONAL, NEEDED, REFUSED } presence;

typedef struct field {
    attn_input view;
    const char *name;
    element_kind kind;
    presence presence;
    int32_t rank; /* or, with `shorter`, one less: the last axes of shape */
    int32_t shorter;
    int64_t shape[4];
} field;

/* Every view of the call: inputs first, then outputs. */
typedef struct call_views {
    const attn__layer_plan *plan;
    attn_diag *diag;
    attn_input view[MAX_VIEWS];
    const char *name[MAX_VIEWS];
    int n, n_inputs;
} call_views;

static attn_status check_presence(const call_views *c, const field *f)
{
    const bool given = attn__given(&f->view);

    ATTN__REQUIRE(f->presence != NEEDED || given, c->diag, ATTN_E_ARG,
                  f->name, "is absent");
    ATTN__REQUIRE(f->presence != REFUSED || !given, c->diag, ATTN_E_MISMATCH,
                  f->name, "is given, but the plan or its tensor lacks it");
    return ATTN_OK;
}

static attn_status check_kind(const call_views *c, const field *f)
{
    const attn_dtype dtype = c->plan->desc.attention.dtype;
    const attn_dtype got = f->view.dtype;

    if (f->kind == INDEX)
        ATTN__REQUIRE(attn__is_index(got), c->diag, ATTN_E_DTYPE, f->name,
                      "is %s, must be i32 or i64", attn_dtype_name(got));
    if (f->kind == SAME_TYPE)
        ATTN__REQUIRE(got == dtype, c->diag, ATTN_E_DTYPE, f->name,
                      "is %s, must be %s, the layer's dtype",
                      attn_dtype_name(got), attn_dtype_name(dtype));
    if (f->kind == ANY_REAL)
        ATTN__REQUIRE(got == dtype || got == ATTN_F64 || got == ATTN_F32,
                      c->diag, ATTN_E_DTYPE, f->name,
                      "is %s, must be f64, f32 or the layer's dtype, %s",
                      attn_dtype_name(got), attn_dtype_name(dtype));
    return ATTN_OK;
}

static void remember(call_views *c, const attn_input *view, const char *name)
{
    c->view[c->n] = *view;
    c->name[c->n++] = name;
}

static attn_status check_fields(call_views *c, const field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const field *f = &fields[i];
        const int32_t less = f->shorter && f->view.rank == f->rank - 1;

        ATTN__TRY(check_presence(c, f));
        if (!attn__given(&f->view))
            continue;
        ATTN__TRY(attn__check_shape(&f->view, f->name, f->rank - less,
                                    f->shape + less, c->diag));
        ATTN__TRY(check_kind(c, f));
        remember(c, &f->view, f->name);
    }
    return ATTN_OK;
}

#define CHECK(c, ...)                                                         \
    check_fields((c), (const field[]){__VA_ARGS__},                           \
                 sizeof((const field[]){__VA_ARGS__}) / sizeof(field))

/* What attention checks itself, for a first look at the view. */
static attn_status remember_given(call_views *c, attn_input view,
                                  const char *name)
{
    if (!attn__given(&view))
        return ATTN_OK;
    ATTN__TRY(attn__check_view(&view, name, c->diag));
    remember(c, &view, name);
    return ATTN_OK;
}

/* ---------------------------------------------------------------- inputs */

static attn_status check_x(call_views *c, const attn_layer_args *args)
{
    const attn_layer_desc *d = &c->plan->desc;
    const attn_desc *a = &d->attention;

    return CHECK(
        c,
        {args->x, "x", SAME_TYPE, NEEDED, 3, 0, {a->batch, a->len_q, d->dim_x}},
        {args->x_kv, "x_kv", SAME_TYPE, d->dim_x_kv > 0 ? NEEDED : REFUSED, 3,
         0, {a->batch, a->len_k, d->dim_x_kv}});
}

static attn_status check_weights(call_views *c, const attn_layer_args *args)
{
    const attn_layer_desc *d = &c->plan->desc;
    const attn_desc *a = &d->attention;
    const presence out = d->dim_y > 0 ? NEEDED : REFUSED;
    const presence out_bias = d->dim_y > 0 ? OPTIONAL : REFUSED;
    const int64_t x_kv = d->dim_x_kv > 0 ? d->dim_x_kv : d->dim_x;
    const int64_t q = a->heads_q * a->dim_qk, k = a->heads_kv * a->dim_qk;
    const int64_t v = a->heads_kv * a->dim_v, o = a->heads_q * a->dim_v;

    return CHECK(
        c, {args->w_q, "w_q", SAME_TYPE, NEEDED, 2, 0, {d->dim_x, q}},
        {args->w_k, "w_k", SAME_TYPE, NEEDED, 2, 0, {x_kv, k}},
        {args->w_v, "w_v", SAME_TYPE, NEEDED, 2, 0, {x_kv, v}},
        {args->w_o, "w_o", SAME_TYPE, out, 2, 0, {o, d->dim_y}},
        {args->b_q, "b_q", ANY_REAL, OPTIONAL, 1, 0, {q}},
        {args->b_k, "b_k", ANY_REAL, OPTIONAL, 1, 0, {k}},
        {args->b_v, "b_v", ANY_REAL, OPTIONAL, 1, 0, {v}},
        {args->b_o, "b_o", ANY_REAL, out_bias, 1, 0, {d->dim_y}});
}

static attn_status check_norm_and_rope(call_views *c,
                                       const attn_layer_args *args)
{
    const attn_layer_desc *d = &c->plan->desc;
    const attn_desc *a = &d->attention;
    const presence gains = d->qk_norm ? OPTIONAL : REFUSED;
    const presence places = d->rotary ? OPTIONAL : REFUSED;

    return CHECK(
        c, {args->g_q, "g_q", ANY_REAL, gains, 2, 1, {a->heads_q, a->dim_qk}},
        {args->g_k, "g_k", ANY_REAL, gains, 2, 1, {a->heads_kv, a->dim_qk}},
        {args->positions, "positions", INDEX, places, 2, 1,
         {a->batch, a->len_q}},
        {args->positions_kv, "positions_kv", INDEX, places, 2, 1,
         {a->batch, a->len_k}});
}

/* The layer makes these itself. */
static attn_status check_own(const call_views *c, const attn_args *a)
{
    const struct {
        bool given;
        const char *name;
    } own[] = {{attn__given(&a->q), "q"},
               {attn__given(&a->kv.k), "k"},
               {attn__given(&a->kv.v), "v"},
               {attn__given(&a->d_o), "d_o"},
               {attn__asked(&a->o), "o"},
               {attn__asked(&a->dq), "dq"},
               {attn__asked(&a->dk), "dk"},
               {attn__asked(&a->dv), "dv"}};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        ATTN__REQUIRE(!own[i].given, c->diag, ATTN_E_MISMATCH, "attention",
                      "its %s is the layer's own and must be absent",
                      own[i].name);
    return ATTN_OK;
}

static attn_status check_attention(call_views *c, const attn_args *a)
{
    ATTN__REQUIRE(a->size == sizeof *a, c->diag, ATTN_E_ARG, "attention",
                  "its size, %u, is not that of attn_args; use "
                  "attn_layer_args_init",
                  (unsigned)a->size);
    ATTN__TRY(check_own(c, a));
    ATTN__TRY(remember_given(c, a->kv.k_lengths, "k_lengths"));
    ATTN__TRY(remember_given(c, a->mask, "mask"));
    ATTN__TRY(remember_given(c, a->bias, "bias"));
    ATTN__TRY(remember_given(c, a->alibi_slopes, "alibi_slopes"));
    ATTN__TRY(remember_given(c, a->sinks, "sinks"));
    return remember_given(c, a->q_offset, "q_offset");
}

/* --------------------------------------------------------------- outputs */

static int64_t width_of_y(const attn_layer_desc *d)
{
    return d->dim_y > 0 ? d->dim_y
                        : d->attention.heads_q * d->attention.dim_v;
}

static attn_status check_forward(call_views *c, const attn_layer_args *args)
{
    const attn_layer_desc *d = &c->plan->desc;
    const attn_desc *a = &d->attention;

    ATTN__TRY(CHECK(
        c,
        {attn_in(args->y), "y", SAME_TYPE, OPTIONAL, 3, 0,
         {a->batch, a->len_q, width_of_y(d)}},
        {attn_in(args->q), "q", SAME_TYPE, OPTIONAL, 4, 0,
         {a->batch, a->heads_q, a->len_q, a->dim_qk}},
        {attn_in(args->k), "k", SAME_TYPE, OPTIONAL, 4, 0,
         {a->batch, a->heads_kv, a->len_k, a->dim_qk}},
        {attn_in(args->v), "v", SAME_TYPE, OPTIONAL, 4, 0,
         {a->batch, a->heads_kv, a->len_k, a->dim_v}},
        {attn_in(args->o), "o", SAME_TYPE, OPTIONAL, 4, 0,
         {a->batch, a->heads_q, a->len_q, a->dim_v}}));
    ATTN__TRY(remember_given(c, attn_in(args->attention.lse), "lse"));
    ATTN__TRY(remember_given(c, attn_in(args->attention.weights), "weights"));
    ATTN__TRY(remember_given(c, attn_in(args->attention.entropy), "entropy"));
    ATTN__REQUIRE(c->n > c->n_inputs, c->diag, ATTN_E_ARG, "y",
                  "no output is asked for");
    return ATTN_OK;
}

/* A gradient has the shape of its tensor; without it, it is refused. */
static field gradient(attn_tensor t, const char *name, element_kind kind,
                      const attn_input *of)
{
    field f = {attn_in(t), name, kind,
               attn__given(of) ? OPTIONAL : REFUSED, of->rank, 0, {0}};

    memcpy(f.shape, of->shape, sizeof f.shape);
    return f;
}

static attn_status check_gradients(call_views *c, const attn_layer_args *g)
{
    ATTN__TRY(CHECK(c, gradient(g->dx, "dx", SAME_TYPE, &g->x),
                    gradient(g->dx_kv, "dx_kv", SAME_TYPE, &g->x_kv),
                    gradient(g->dw_q, "dw_q", ANY_REAL, &g->w_q),
                    gradient(g->dw_k, "dw_k", ANY_REAL, &g->w_k),
                    gradient(g->dw_v, "dw_v", ANY_REAL, &g->w_v),
                    gradient(g->dw_o, "dw_o", ANY_REAL, &g->w_o),
                    gradient(g->db_q, "db_q", ANY_REAL, &g->b_q),
                    gradient(g->db_k, "db_k", ANY_REAL, &g->b_k),
                    gradient(g->db_v, "db_v", ANY_REAL, &g->b_v),
                    gradient(g->db_o, "db_o", ANY_REAL, &g->b_o),
                    gradient(g->dg_q, "dg_q", ANY_REAL, &g->g_q),
                    gradient(g->dg_k, "dg_k", ANY_REAL, &g->g_k)));
    ATTN__TRY(remember_given(c, attn_in(g->attention.dbias), "dbias"));
    ATTN__TRY(remember_given(c, attn_in(g->attention.dsinks), "dsinks"));
    return remember_given(c, attn_in(g->attention.dslopes), "dslopes");
}

static attn_status check_d_y(call_views *c, const attn_layer_args *args)
{
    const attn_layer_desc *d = &c->plan->desc;
    const attn_desc *a = &d->attention;

    ATTN__TRY(CHECK(c, {args->d_y, "d_y", SAME_TYPE, NEEDED, 3, 0,
                        {a->batch, a->len_q, width_of_y(d)}}));
    return remember_given(c, args->attention.dlse, "dlse");
}

static attn_status check_apart(const call_views *c)
{
    for (int i = c->n_inputs; i < c->n; i++) {
        ATTN__REQUIRE(!attn__self_overlaps(&c->view[i]), c->diag, ATTN_E_ARG,
                      c->name[i],
                      "is an output whose strides give elements one address");
        for (int k = 0; k < i; k++)
            ATTN__REQUIRE(!attn__overlaps(&c->view[i], &c->view[k]), c->diag,
                          ATTN_E_ARG, c->name[i],
                          "is an output that shares memory with %s",
                          c->name[k]);
    }
    return ATTN_OK;
}

attn_status attn__layer_check(const attn__layer_plan *plan,
                              const attn_layer_args *args, attn_pass pass,
                              attn_diag *diag)
{
    call_views c = {.plan = plan, .diag = diag};

    ATTN__REQUIRE(args, diag, ATTN_E_ARG, "args", "must not be NULL");
    ATTN__REQUIRE(args->size == sizeof *args, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_layer_args; use "
                  "attn_layer_args_init",
                  (unsigned)args->size);
    ATTN__TRY(check_x(&c, args));
    ATTN__TRY(check_weights(&c, args));
    ATTN__TRY(check_norm_and_rope(&c, args));
    ATTN__TRY(check_attention(&c, &args->attention));
    if (pass == ATTN_BACKWARD)
        ATTN__TRY(check_d_y(&c, args));
    c.n_inputs = c.n;
    ATTN__TRY(pass == ATTN_FORWARD ? check_forward(&c, args)
                                   : check_gradients(&c, args));
    return check_apart(&c);
}
