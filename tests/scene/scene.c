/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and running a scene. */
#include "scene.h"

#include "core/element.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- numbers */

static uint64_t mix(uint64_t seed, uint64_t at)
{
    uint64_t z = seed * UINT64_C(0xd1342543de82ef95) +
                 (at + 1) * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t scene_below(uint64_t seed, uint64_t at, int64_t n)
{
    return (int64_t)(mix(seed, at) >> 1) % n;
}

/* The sum of four numbers of 16 bits has deviation 37838; over 2^15 that is
 * 1.15. */
double scene_normal(uint64_t seed, uint64_t at)
{
    const uint64_t bits = mix(seed, at);
    int64_t sum = -2 * 65535;

    for (int part = 0; part < 4; part++)
        sum += (int64_t)(bits >> 16 * part & 0xffff);
    return (double)sum * 0x1p-15;
}

/* --------------------------------------------------------------- elements */

int64_t scene_count(const attn_input *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

int64_t scene_offset(const attn_input *t, int64_t index)
{
    int64_t offset = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        offset += index % t->shape[a] * t->stride[a];
        index /= t->shape[a];
    }
    return offset;
}

double scene_read(const attn_input *t, int64_t index)
{
    const int64_t at = scene_offset(t, index);

    if (t->dtype == ATTN_BOOL)
        return ((const unsigned char *)t->data)[at];
    if (attn__is_index(t->dtype))
        return (double)attn__load_index(t->data, t->dtype, at);
    return attn__read(t->data, t->dtype, at);
}

void scene_write(attn_tensor *t, int64_t index, double value)
{
    const attn_input view = attn_in(*t);
    const int64_t at = scene_offset(&view, index);

    if (t->dtype == ATTN_BOOL)
        ((unsigned char *)t->data)[at] = (unsigned char)value;
    else if (t->dtype == ATTN_I32)
        ((int32_t *)t->data)[at] = (int32_t)value;
    else if (t->dtype == ATTN_I64)
        ((int64_t *)t->data)[at] = (int64_t)value;
    else
        attn__write(t->data, t->dtype, at, value);
}

attn_tensor scene_writable(const attn_input *t)
{
    attn_tensor w = attn_dense(NULL, t->dtype, t->rank, t->shape);

    memcpy(w.stride, t->stride, sizeof w.stride);
    memcpy(&w.data, &t->data, sizeof w.data);
    return w;
}

attn_tensor scene_dense(scene *s, attn_dtype dtype, int32_t rank,
                        const int64_t *shape)
{
    attn_tensor t = attn_dense(NULL, dtype, rank, shape);
    const attn_input view = attn_in(t);
    const size_t bytes =
        (size_t)scene_count(&view) * attn_dtype_size(dtype) + 1;

    t.data = malloc(bytes);
    if (!t.data || s->n_memory == SCENE_MEMORY)
        abort();
    memset(t.data, 0xa5, bytes);
    s->memory[s->n_memory++] = t.data;
    return t;
}

/* ----------------------------------------------------------------- inputs */

/* What a tensor's numbers are drawn for: its stream. */
typedef struct source {
    scene *s;
    uint64_t seed, stream;
} source;

static uint64_t next_stream(source *from)
{
    return mix(from->seed, ++from->stream);
}

static attn_input make_normal(source *from, attn_dtype dtype, int32_t rank,
                              const int64_t *shape)
{
    attn_tensor t = scene_dense(from->s, dtype, rank, shape);
    const attn_input view = attn_in(t);
    const uint64_t stream = next_stream(from);

    for (int64_t i = 0; i < scene_count(&view); i++)
        scene_write(&t, i, scene_normal(stream, (uint64_t)i));
    return attn_in(t);
}

static attn_input make_integers(source *from, int64_t n, int64_t low,
                                int64_t high)
{
    attn_tensor t = scene_dense(from->s, ATTN_I64, 1, &n);
    const uint64_t stream = next_stream(from);

    for (int64_t i = 0; i < n; i++)
        scene_write(&t, i,
                    (double)(low + scene_below(stream, (uint64_t)i,
                                               high - low + 1)));
    return attn_in(t);
}

/* The scores' shape, 1 at the axes that `has` lacks. */
static void pair_shape(const scene *s, const char *has, int64_t shape[4])
{
    const int64_t full[4] = {s->shape.batch, s->shape.heads_q,
                             s->shape.len_q, s->shape.len_k};

    for (int a = 0; a < 4; a++)
        shape[a] = strchr(has, "bhij"[a]) ? full[a] : 1;
}

static void make_shapers(source *from)
{
    scene *s = from->s;
    attn_args *args = &s->args;
    int64_t shape[4];

    if (s->shape.mask) {
        pair_shape(s, s->shape.mask, shape);
        attn_tensor t = scene_dense(s, ATTN_BOOL, 4, shape);
        const attn_input view = attn_in(t);
        const uint64_t stream = next_stream(from);

        for (int64_t i = 0; i < scene_count(&view); i++)
            scene_write(&t, i, scene_below(stream, (uint64_t)i, 3) > 0);
        args->mask = attn_in(t);
    }
    if (s->shape.bias) {
        pair_shape(s, s->shape.bias, shape);
        args->bias = make_normal(from, s->desc.dtype, 4, shape);
        attn_tensor t = scene_writable(&args->bias);
        const uint64_t stream = next_stream(from);

        for (int64_t i = 0; i < scene_count(&args->bias); i++)
            if (s->shape.bias_hides &&
                scene_below(stream, (uint64_t)i, 5) == 0)
                scene_write(&t, i, -(double)INFINITY);
    }
    if (s->shape.slopes) {
        const int64_t heads[2] = {s->shape.batch, s->shape.heads_q};
        const int32_t rank = (int32_t)strlen(s->shape.slopes);

        args->alibi_slopes =
            make_normal(from, ATTN_F32, rank, heads + 2 - rank);
    }
    if (s->desc.inputs & ATTN_WITH_SINKS)
        args->sinks = make_normal(from, ATTN_F32, 1, &s->shape.heads_q);
}

/* Lengths of at most `most`, the first that long; their running sums. */
static attn_input make_cu_seqlens(source *from, int64_t most)
{
    const int64_t n = from->s->shape.batch + 1;
    attn_tensor t = scene_dense(from->s, ATTN_I32, 1, &n);
    const uint64_t stream = next_stream(from);
    int64_t total = 0;

    scene_write(&t, 0, 0);
    for (int64_t b = 1; b < n; b++) {
        total += b == 1 ? most : scene_below(stream, (uint64_t)b, most + 1);
        scene_write(&t, b, (double)total);
    }
    return attn_in(t);
}

static int64_t last_of(const attn_input *t)
{
    return (int64_t)scene_read(t, t->shape[0] - 1);
}

static attn_input make_rows(source *from, const attn_input *cu, int64_t heads,
                            int64_t len, int64_t dim)
{
    const attn_dtype dtype = from->s->desc.dtype;

    if (cu->dtype != ATTN_NONE)
        return make_normal(from, dtype, 3,
                           (int64_t[]){last_of(cu), heads, dim});
    return make_normal(from, dtype, 4,
                       (int64_t[]){from->s->shape.batch, heads, len, dim});
}

/* Pages of 7 keys, every entry's own, in an order that is no order. */
static void make_pages(source *from)
{
    const scene_shape *shape = &from->s->shape;
    attn_kv *kv = &from->s->args.kv;
    const int64_t size = 7, columns = (shape->len_k + size - 1) / size;
    const int64_t pages = shape->batch * columns + 2;
    attn_tensor table = scene_dense(from->s, ATTN_I32, 2,
                                    (int64_t[]){shape->batch, columns});

    for (int64_t i = 0; i < shape->batch * columns; i++)
        scene_write(&table, i, (double)(pages - 1 - i));
    kv->block_table = attn_in(table);
    kv->k = make_normal(from, from->s->desc.dtype, 4,
                        (int64_t[]){pages, shape->heads_kv, size,
                                    shape->dim_qk});
    kv->v = make_normal(from, from->s->desc.dtype, 4,
                        (int64_t[]){pages, shape->heads_kv, size,
                                    shape->dim_v});
}

static void make_inputs(source *from)
{
    const scene_shape *shape = &from->s->shape;
    attn_args *args = &from->s->args;
    const uint32_t inputs = from->s->desc.inputs;

    if (inputs & ATTN_WITH_VARLEN) {
        args->cu_seqlens_q = make_cu_seqlens(from, shape->len_q);
        if (!(inputs & ATTN_WITH_PAGES))
            args->cu_seqlens_k = make_cu_seqlens(from, shape->len_k);
    }
    args->q = make_rows(from, &args->cu_seqlens_q, shape->heads_q,
                        shape->len_q, shape->dim_qk);
    if (inputs & ATTN_WITH_PAGES) {
        make_pages(from);
    } else {
        args->kv.k = make_rows(from, &args->cu_seqlens_k, shape->heads_kv,
                               shape->len_k, shape->dim_qk);
        args->kv.v = make_rows(from, &args->cu_seqlens_k, shape->heads_kv,
                               shape->len_k, shape->dim_v);
    }
    if (inputs & ATTN_WITH_K_LENGTHS)
        args->kv.k_lengths = make_integers(from, shape->batch,
                                           shape->len_k / 2, shape->len_k);
    if (inputs & ATTN_WITH_Q_OFFSET)
        args->q_offset = make_integers(from, shape->batch, -5, shape->len_k);
    make_shapers(from);
    args->d_o = make_rows(from, &args->cu_seqlens_q, shape->heads_q,
                          shape->len_q, shape->dim_v);
}

/* ---------------------------------------------------------------- outputs */

static attn_tensor dense_like(scene *s, const attn_input *t, attn_dtype dtype)
{
    if (t->dtype == ATTN_NONE)
        return (attn_tensor){0};
    return scene_dense(s, dtype, t->rank, t->shape);
}

static void make_statistics(scene *s)
{
    const attn_input *q = &s->args.q;
    int64_t shape[4] = {s->shape.heads_q, q->shape[0]};

    if (q->rank == 3) {
        s->args.lse = scene_dense(s, ATTN_F64, 2, shape);
        return;
    }
    memcpy(shape, q->shape, sizeof shape);
    s->args.lse = scene_dense(s, ATTN_F64, 3, shape);
    s->args.entropy = scene_dense(s, ATTN_F64, 3, shape);
    shape[3] = s->shape.len_k;
    if (s->desc.inputs & ATTN_WITH_PAGES)
        shape[3] = s->args.kv.k.shape[2] * s->args.kv.block_table.shape[1];
    s->args.weights = scene_dense(s, s->desc.dtype, 4, shape);
    s->scores = scene_dense(s, ATTN_F32, 4, shape);
    s->stage = ATTN_STAGE_BIASED;
}

static void make_outputs(source *from)
{
    scene *s = from->s;
    attn_args *a = &s->args;

    a->o = dense_like(s, &a->d_o, s->desc.dtype);
    make_statistics(s);
    if (s->shape.dlse)
        a->dlse = make_normal(from, ATTN_F64, a->lse.rank, a->lse.shape);
    a->dq = dense_like(s, &a->q, s->desc.dtype);
    a->dk = dense_like(s, &a->kv.k, s->desc.dtype);
    a->dv = dense_like(s, &a->kv.v, s->desc.dtype);
    a->dbias = dense_like(s, &a->bias, a->bias.dtype);
    a->dsinks = dense_like(s, &a->sinks, ATTN_F64);
    a->dslopes = dense_like(s, &a->alibi_slopes, ATTN_F64);
}

void scene_open(scene *s, const scene_shape *shape, attn_dtype dtype,
                uint64_t seed)
{
    source from = {s, seed, 0};
    attn_desc *d = &s->desc;

    memset(s, 0, sizeof *s);
    s->shape = *shape;
    attn_args_init(&s->args);
    attn_desc_init(d, dtype, shape->batch, shape->heads_q, shape->heads_kv,
                   shape->len_q, shape->len_k, shape->dim_qk, shape->dim_v);
    d->causal = shape->causal;
    d->window_left = shape->left - 1;
    d->window_right = shape->right - 1;
    d->softcap = shape->softcap;
    d->dropout_p = shape->dropout;
    d->empty_rows = shape->empty_nan ? ATTN_EMPTY_NAN : ATTN_EMPTY_ZERO;
    if (shape->scale != 0)
        d->scale = shape->scale;
    d->inputs = shape->inputs | (shape->mask ? ATTN_WITH_MASK : 0) |
                (shape->bias ? ATTN_WITH_BIAS : 0) |
                (shape->slopes ? ATTN_WITH_ALIBI : 0);
    make_inputs(&from);
    make_outputs(&from);
    s->args.seed = next_stream(&from);
    s->args.offset = (uint32_t)next_stream(&from);
}

void scene_close(scene *s)
{
    while (s->n_memory > 0)
        free(s->memory[--s->n_memory]);
}

/* -------------------------------------------------------------------- run */

static void require(const scene *s, attn_status status, const attn_diag *diag)
{
    if (status == ATTN_OK)
        return;
    fprintf(stderr, "%s: %s: %s: %s\n", s->shape.name,
            attn_status_name(status), diag->field, diag->message);
    abort();
}

/* A pass with every kernel that is right here, whether or not it pays. */
static void run_pass(scene *s, attn_pass pass, int64_t threads)
{
    attn_pool *pool = threads > 1 ? attn_pool_create(threads) : NULL;
    attn_plan plan;
    attn_workspace need;
    attn_exec exec;
    attn_diag diag;
    attn_status status;

    require(s, attn_plan_init(&plan, &s->desc, &diag), &diag);
    require(s, attn__plan_use_every_kernel(&plan, &diag), &diag);
    require(s, attn_plan_workspace(&plan, pass, threads, &need, &diag), &diag);
    attn_exec_init(&exec);
    exec.workspace = aligned_alloc(need.alignment, need.size + need.alignment);
    exec.workspace_size = need.size;
    exec.threads = threads;
    exec.parallel_for = pool ? attn_pool_parallel_for : NULL;
    exec.ctx = pool;
    if (!exec.workspace)
        abort();
    if (pass == ATTN_FORWARD)
        status = attn_forward(&plan, &s->args, &exec, &diag);
    else if (pass == ATTN_BACKWARD)
        status = attn_backward(&plan, &s->args, &exec, &diag);
    else
        status = attn_weights(&plan, &s->args, s->stage, NULL, s->scores,
                              &exec, &diag);
    require(s, status, &diag);
    free(exec.workspace);
    attn_pool_destroy(pool);
}

void scene_forward(scene *s, int64_t threads)
{
    run_pass(s, ATTN_FORWARD, threads);
    if (s->scores.dtype != ATTN_NONE)
        run_pass(s, ATTN_WEIGHTS, 1);
}

void scene_backward(scene *s, int64_t threads)
{
    run_pass(s, ATTN_BACKWARD, threads);
}

bool scene_has_backward(const scene *s)
{
    return s->desc.empty_rows == ATTN_EMPTY_ZERO;
}

void scene_run(scene *s, int64_t threads)
{
    scene_forward(s, threads);
    if (scene_has_backward(s))
        scene_backward(s, threads);
}
