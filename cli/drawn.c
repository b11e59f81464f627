/* SPDX-License-Identifier: Apache-2.0
 *
 * Getting the numbers of a picture: a head at a time, so that besides the
 * matrices that are drawn only one more is in memory, the scores that say
 * which keys are hidden. */
#include "drawn.h"
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- indices */

/* Append first to last. */
static int append(const char *name, int64_t first, int64_t last,
                  cli_indices *to)
{
    const int64_t more = last - first + 1;
    int64_t *grown;

    if (last < first)
        return cli_fail(CLI_USAGE, "--%s: %lld-%lld runs backwards", name,
                        (long long)first, (long long)last);
    if (more > INT64_C(1000000) - to->n)
        return cli_fail(CLI_USAGE, "--%s: more than a million", name);
    grown = realloc(to->at, (size_t)(to->n + more) * sizeof *grown);
    if (!grown)
        return cli_no_memory();
    to->at = grown;
    for (int64_t i = first; i <= last; i++)
        to->at[to->n++] = i;
    return CLI_GO;
}

/* One number or FIRST-LAST, of n characters. */
static int parse_range(const char *name, const char *text, size_t n,
                       cli_indices *to)
{
    char word[64], *dash;
    int64_t first, last;

    if (n >= sizeof word)
        return cli_fail(CLI_USAGE, "--%s: '%s' is no list of numbers", name,
                        text);
    memcpy(word, text, n);
    word[n] = '\0';
    dash = n > 0 ? strchr(word + 1, '-') : NULL;
    if (dash)
        *dash = '\0';
    if (cli_integer(name, word, 0, INT32_MAX, &first) != CLI_GO)
        return CLI_USAGE;
    last = first;
    if (dash && cli_integer(name, dash + 1, 0, INT32_MAX, &last) != CLI_GO)
        return CLI_USAGE;
    return append(name, first, last, to);
}

int cli_indices_parse(const char *name, const char *text, cli_indices *to)
{
    free(to->at);
    *to = (cli_indices){NULL, 0};
    for (;;) {
        const size_t n = strcspn(text, ",");
        const int code = parse_range(name, text, n, to);

        if (code != CLI_GO || !text[n])
            return code;
        text += n + 1;
    }
}

int cli_indices_resolve(const char *name, cli_indices *to, int64_t limit,
                        const char *what)
{
    if (!to->at && limit == 0)
        return cli_fail(CLI_USAGE, "there are no %s to draw", what);
    if (!to->at)
        return append(name, 0, limit - 1, to);
    for (int64_t i = 0; i < to->n; i++)
        if (to->at[i] >= limit)
            return cli_fail(CLI_USAGE, "--%s: there is no %lld; the %s are 0 "
                            "to %lld", name, (long long)to->at[i], what,
                            (long long)(limit - 1));
    return CLI_GO;
}

/* ------------------------------------------------------------------ memory */

static int resolve(cli_drawn *d)
{
    int code = CLI_GO;

    if (d->batch >= d->n_batch)
        return cli_fail(CLI_USAGE, "--batch: there is no %lld; there are %lld",
                        (long long)d->batch, (long long)d->n_batch);
    code = cli_indices_resolve("head", &d->heads, d->n_heads, "heads");
    if (code == CLI_GO)
        code = cli_indices_resolve("rows", &d->rows, d->len_q, "queries");
    if (code == CLI_GO && !d->entropy && d->len_k == 0)
        code = cli_fail(CLI_USAGE, "there are no keys to draw");
    return code;
}

/* Elements of one head. */
static size_t per_head(const cli_drawn *d)
{
    return (size_t)d->rows.n * (d->entropy ? 1 : (size_t)d->len_k);
}

static int make_values(cli_drawn *d)
{
    d->values = calloc((size_t)d->heads.n,
                       per_head(d) * attn_dtype_size(d->dtype));
    return d->values ? CLI_GO : cli_no_memory();
}

void cli_drawn_free(cli_drawn *d)
{
    free(d->heads.at);
    free(d->rows.at);
    free(d->values);
    free(d->shown);
    *d = (cli_drawn){.values = NULL};
}

/* -------------------------------------------------------------- one batch */

/* Keep index `batch` of the first of `rank` axes, if there is a choice. */
static void keep_batch(attn_input *t, int32_t rank, int64_t batch)
{
    if (t->dtype == ATTN_NONE || t->rank != rank || t->shape[0] == 1)
        return;
    t->data = (const char *)t->data +
              batch * t->stride[0] * (int64_t)attn_dtype_size(t->dtype);
    t->shape[0] = 1;
}

static void choose_batch(cli_problem *p, int64_t batch)
{
    attn_args *a = &p->args;

    keep_batch(&a->q, 4, batch);
    keep_batch(&a->kv.k, 4, batch);
    keep_batch(&a->kv.v, 4, batch);
    keep_batch(&a->mask, 4, batch);
    keep_batch(&a->bias, 4, batch);
    keep_batch(&a->alibi_slopes, 2, batch);
    keep_batch(&a->kv.k_lengths, 1, batch);
    keep_batch(&a->q_offset, 1, batch);
    p->desc.batch = 1;
}

/* --------------------------------------------------------------- computing */

typedef struct machine {
    attn_plan plan;
    attn_exec exec;
    attn_pool *pool;
    void *memory;
} machine;

static int start(machine *m, const cli_problem *p)
{
    const int64_t threads = p->options->threads;
    attn_workspace need;
    attn_diag diag;

    memset(m, 0, sizeof *m);
    if (attn_plan_init(&m->plan, &p->desc, &diag) != ATTN_OK ||
        attn_plan_workspace(&m->plan, ATTN_WEIGHTS, threads, &need, &diag) !=
            ATTN_OK)
        return cli_refused(&diag);
    m->pool = attn_pool_create(threads);
    if (posix_memalign(&m->memory, need.alignment < sizeof(void *)
                                       ? sizeof(void *)
                                       : need.alignment, need.size + 1) != 0)
        m->memory = NULL;
    if (!m->pool || !m->memory)
        return cli_no_memory();
    attn_exec_init(&m->exec);
    m->exec.workspace = m->memory;
    m->exec.workspace_size = need.size;
    m->exec.threads = threads;
    m->exec.parallel_for = attn_pool_parallel_for;
    m->exec.ctx = m->pool;
    return CLI_GO;
}

static void stop(machine *m)
{
    attn_pool_destroy(m->pool);
    free(m->memory);
}

/* One head of a stage into to[rows, keys]. */
static int one_head(const machine *m, const cli_drawn *d, const cli_problem *p,
                    int64_t head, attn_stage stage, void *to)
{
    const int64_t shape[4] = {1, 1, d->rows.n, d->len_k};
    const attn_rows chosen = {&head, d->rows.at, 1, d->rows.n};
    attn_diag diag;

    return attn_weights(&m->plan, &p->args, stage, &chosen,
                        attn_dense(to, d->dtype, 4, shape), &m->exec, &diag) ==
                   ATTN_OK
               ? CLI_GO
               : cli_refused(&diag);
}

/* Which keys are hidden: those whose biased score is -inf. */
static void look_for_hidden(const cli_drawn *d, const void *scores,
                            uint8_t *shown)
{
    const size_t n = per_head(d);

    for (size_t i = 0; i < n; i++)
        shown[i] = (d->dtype == ATTN_F64
                        ? ((const double *)scores)[i]
                        : (double)((const float *)scores)[i]) == -INFINITY
                       ? 0
                       : 1;
}

static int compute_heads(cli_drawn *d, const cli_problem *p, const machine *m,
                         void *scores)
{
    const size_t n = per_head(d), size = attn_dtype_size(d->dtype);
    int code = CLI_GO;

    for (int64_t h = 0; h < d->heads.n && code == CLI_GO; h++) {
        void *to = (char *)d->values + (size_t)h * n * size;

        cli_progress("head", h, d->heads.n);
        code = one_head(m, d, p, d->heads.at[h], ATTN_STAGE_BIASED, scores);
        if (code != CLI_GO)
            break;
        look_for_hidden(d, scores, d->shown + (size_t)h * n);
        if (d->stage == ATTN_STAGE_BIASED)
            memcpy(to, scores, n * size);
        else
            code = one_head(m, d, p, d->heads.at[h], d->stage, to);
    }
    return code;
}

static int compute_matrices(cli_drawn *d, cli_problem *p)
{
    const size_t n = per_head(d);
    void *scores = malloc(n * attn_dtype_size(d->dtype));
    machine m;
    int code = start(&m, p);

    d->shown = calloc((size_t)d->heads.n, n);
    if (code == CLI_GO && (!scores || !d->shown))
        code = cli_no_memory();
    if (code == CLI_GO)
        code = make_values(d);
    if (code == CLI_GO)
        code = compute_heads(d, p, &m, scores);
    stop(&m);
    free(scores);
    return code;
}

/* Entropy comes with the whole forward pass, of all heads. */
static int compute_entropy(cli_drawn *d, cli_problem *p)
{
    const int64_t o_shape[4] = {1, d->n_heads, d->len_q, p->desc.dim_v};
    const int64_t shape[3] = {1, d->n_heads, d->len_q};
    attn_array o = {0}, all = {0};
    attn_diag diag;
    int code = CLI_GO;

    d->dtype = ATTN_F64;
    if (attn_array_init(&o, "o", p->desc.dtype, 4, o_shape, &diag) != ATTN_OK ||
        attn_array_init(&all, "entropy", d->dtype, 3, shape, &diag) != ATTN_OK)
        code = cli_refused(&diag);
    p->args.o = attn_dense(o.data, o.dtype, 4, o_shape);
    p->args.entropy = attn_dense(all.data, d->dtype, 3, shape);
    if (code == CLI_GO && attn_attention(&p->desc, &p->args,
                                         p->options->threads, &diag) != ATTN_OK)
        code = cli_refused(&diag);
    if (code == CLI_GO)
        code = make_values(d);
    for (int64_t h = 0; h < d->heads.n && code == CLI_GO; h++)
        for (int64_t i = 0; i < d->rows.n; i++)
            ((double *)d->values)[h * d->rows.n + i] = attn_array_value(
                &all, d->heads.at[h] * d->len_q + d->rows.at[i]);
    attn_array_free(&o);
    attn_array_free(&all);
    return code;
}

/* What a layer makes of x: the q and k that its attention reads, and no v,
 * which weights do not need. */
static int project(cli_problem *p, cli_layer *layer)
{
    int code = cli_layer_keep(layer, "qk");

    if (code == CLI_GO)
        code = cli_layer_compute(layer, false);
    p->args.q = attn_in(layer->args.q);
    p->args.kv.k = attn_in(layer->args.k);
    p->args.kv.v = p->args.kv.k;
    p->args.kv.v.shape[3] = p->desc.dim_v = 0;
    return code;
}

int cli_drawn_compute(cli_drawn *d, cli_problem *p, cli_layer *layer)
{
    int code;

    if (p->packed)
        return cli_fail(CLI_USAGE, "cu_seqlens_q: packed sequences have no "
                        "matrix of weights");
    d->n_batch = p->desc.batch;
    d->n_heads = p->desc.heads_q;
    d->len_q = p->desc.len_q;
    d->len_k = p->desc.len_k;
    d->dtype = p->desc.dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    code = resolve(d);
    if (code == CLI_GO)
        code = layer ? project(p, layer) : cli_rotate(p, false);
    if (code != CLI_GO)
        return code;
    choose_batch(p, d->batch);
    return d->entropy ? compute_entropy(d, p) : compute_matrices(d, p);
}

/* ------------------------------------------------------------------ taking */

/* The axes of `array`, of which the last `own` are rows and keys. */
static int measure(cli_drawn *d, const attn_array *array, int own)
{
    const int64_t *end = array->shape + array->rank;

    if (array->dtype == ATTN_NONE)
        return cli_fail(CLI_USAGE, "%s: holds text", array->name);
    if (array->rank < own || array->rank > own + 2)
        return cli_fail(CLI_USAGE, "%s: is %d-D; it must be %s", array->name,
                        (int)array->rank,
                        own == 2 ? "2-D (Lq, Lk), 3-D (H, Lq, Lk) or 4-D (B, "
                                   "H, Lq, Lk)"
                                 : "1-D (Lq), 2-D (H, Lq) or 3-D (B, H, Lq)");
    d->len_k = own == 2 ? end[-1] : 0;
    d->len_q = end[-own];
    d->n_heads = array->rank > own ? end[-own - 1] : 1;
    d->n_batch = array->rank > own + 1 ? end[-own - 2] : 1;
    return CLI_GO;
}

int cli_drawn_take(cli_drawn *d, const attn_array *array)
{
    const int64_t n = d->entropy ? 1 : 0;
    int code = measure(d, array, d->entropy ? 1 : 2);
    int64_t keys;
    double *to;

    d->dtype = ATTN_F64;
    if (code == CLI_GO)
        code = resolve(d);
    if (code == CLI_GO)
        code = make_values(d);
    keys = n ? n : d->len_k;
    to = d->values;
    for (int64_t h = 0; h < d->heads.n && code == CLI_GO; h++)
        for (int64_t i = 0; i < d->rows.n; i++) {
            const int64_t row = (d->batch * d->n_heads + d->heads.at[h]) *
                                    d->len_q + d->rows.at[i];

            for (int64_t j = 0; j < keys; j++)
                *to++ = attn_array_value(array, row * keys + j);
        }
    return code;
}
