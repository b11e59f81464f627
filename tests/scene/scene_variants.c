/* SPDX-License-Identifier: Apache-2.0
 *
 * The same scene in other memory, or a part of it, and comparing. */
#include "scene.h"

#include "core/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

attn_input *scene_input(scene *s, int n)
{
    attn_args *a = &s->args;
    attn_input *const all[SCENE_INPUTS] = {
        &a->q,        &a->kv.k,         &a->kv.v,
        &a->mask,     &a->bias,         &a->alibi_slopes,
        &a->sinks,    &a->kv.k_lengths, &a->kv.block_table,
        &a->q_offset, &a->cu_seqlens_q, &a->cu_seqlens_k,
        &a->d_o,      &a->dlse};

    return all[n];
}

attn_tensor *scene_output(scene *s, int n)
{
    attn_args *a = &s->args;
    attn_tensor *const all[SCENE_OUTPUTS] = {
        &a->o,  &a->lse, &a->weights, &a->entropy, &s->scores, &a->dq,
        &a->dk, &a->dv,  &a->dbias,   &a->dsinks,  &a->dslopes};

    return all[n];
}

const char *scene_output_name(int n)
{
    static const char *const names[SCENE_OUTPUTS] = {
        "o",  "lse", "weights", "entropy", "scores", "dq",
        "dk", "dv",  "dbias",   "dsinks",  "dslopes"};

    return names[n];
}

attn_input scene_slice(attn_input t, int32_t axis, int64_t from, int64_t n)
{
    if (t.dtype == ATTN_NONE || t.shape[axis] == 1)
        return t; /* absent, or broadcast */
    t.data = (const char *)t.data +
             from * t.stride[axis] * (int64_t)attn_dtype_size(t.dtype);
    t.shape[axis] = n;
    return t;
}

/* ----------------------------------------------------------------- layout */

/* Axes from the slowest to the fastest. */
static void axis_order(int32_t rank, scene_layout layout, int32_t order[4])
{
    for (int32_t a = 0; a < rank; a++)
        order[a] = layout == SCENE_COLUMNS ? rank - 1 - a : a;
    if (layout == SCENE_SWAPPED && rank >= 3) {
        order[rank - 3] = rank - 2;
        order[rank - 2] = rank - 3;
    }
}

/* Memory of that layout for elements of that shape, holding 0xa5. */
static attn_tensor lay(scene *s, attn_dtype dtype, int32_t rank,
                       const int64_t *shape, scene_layout layout)
{
    const int64_t gap = layout == SCENE_PADDED ? 3 : 0;
    attn_tensor t = attn_dense(NULL, dtype, rank, shape);
    int64_t step = gap ? 2 : 1, start = layout == SCENE_UNALIGNED;
    int32_t order[4];
    char *memory;

    axis_order(rank, layout, order);
    for (int32_t k = rank - 1; k >= 0; k--) {
        const int32_t a = order[k];

        t.stride[a] = layout == SCENE_NEGATIVE ? -step : step;
        if (layout == SCENE_NEGATIVE && shape[a] > 0)
            start += (shape[a] - 1) * step;
        step = step * (shape[a] > 0 ? shape[a] : 1) + gap;
    }
    memory = scene_dense(s, dtype, 1, (int64_t[]){step + 1}).data;
    t.data = memory + start * (int64_t)attn_dtype_size(dtype);
    return t;
}

static void copy_elements(attn_tensor *to, const attn_input *from)
{
    const attn_input view = attn_in(*to);
    const size_t size = attn_dtype_size(from->dtype);

    for (int64_t i = 0; i < scene_count(from); i++)
        memcpy((char *)to->data + scene_offset(&view, i) * (int64_t)size,
               (const char *)from->data +
                   scene_offset(from, i) * (int64_t)size,
               size);
}

static void start_variant(scene *to, const scene *from)
{
    *to = *from;
    to->n_memory = 0;
}

void scene_relaid(scene *to, scene *from, scene_layout layout)
{
    start_variant(to, from);
    for (int n = 0; n < SCENE_INPUTS; n++) {
        const attn_input *t = scene_input(from, n);
        attn_tensor copy;

        if (t->dtype == ATTN_NONE)
            continue;
        copy = lay(to, t->dtype, t->rank, t->shape, layout);
        copy_elements(&copy, t);
        *scene_input(to, n) = attn_in(copy);
    }
    for (int n = 0; n < SCENE_OUTPUTS; n++) {
        const attn_tensor *t = scene_output(from, n);

        if (t->dtype != ATTN_NONE)
            *scene_output(to, n) =
                lay(to, t->dtype, t->rank, t->shape, layout);
    }
}

void scene_clear(scene *s)
{
    for (int n = 0; n < SCENE_OUTPUTS; n++) {
        const attn_tensor *t = scene_output(s, n);
        const attn_input view = attn_in(*t);
        const size_t size = attn_dtype_size(t->dtype);

        for (int64_t i = 0; t->dtype != ATTN_NONE && i < scene_count(&view);
             i++)
            memset((char *)t->data + scene_offset(&view, i) * (int64_t)size,
                   0xa5, size);
    }
}

/* ------------------------------------------------------------------- part */

/* Rows of one sequence, of a tensor whose axis `axis` is packed. */
static attn_input sequence_of(attn_input t, int32_t axis,
                              const attn_input *cu, int64_t b)
{
    const int64_t from = (int64_t)scene_read(cu, b);

    t.data = (const char *)t.data +
             from * t.stride[axis] * (int64_t)attn_dtype_size(t.dtype);
    t.shape[axis] = (int64_t)scene_read(cu, b + 1) - from;
    return t;
}

/* q, k, v, o and the like: entry b (or its rows), heads [h, h + n). */
static attn_input rows_part(attn_input t, const attn_input *cu, int64_t b,
                            int64_t h, int64_t n)
{
    if (t.rank == 3)
        return scene_slice(sequence_of(t, 0, cu, b), 1, h, n);
    return scene_slice(scene_slice(t, 0, b, 1), 1, h, n);
}

static attn_input statistics_part(attn_input t, const attn_input *cu,
                                  int64_t b, int64_t h, int64_t n)
{
    if (t.rank == 2)
        return scene_slice(sequence_of(t, 1, cu, b), 0, h, n);
    return scene_slice(scene_slice(t, 0, b, 1), 1, h, n);
}

/* The cu_seqlens of that one sequence. */
static attn_input one_sequence(scene *to, const attn_input *rows)
{
    const int64_t two = 2;
    attn_tensor t = scene_dense(to, ATTN_I32, 1, &two);

    scene_write(&t, 0, 0);
    scene_write(&t, 1, (double)rows->shape[0]);
    return attn_in(t);
}

static void part_inputs(scene *to, const scene *from, int64_t b, int64_t h,
                        int64_t n)
{
    const int64_t group = from->desc.heads_q / from->desc.heads_kv;
    const int64_t g = h / group;
    const attn_args *f = &from->args;
    attn_args *a = &to->args;

    a->q = rows_part(f->q, &f->cu_seqlens_q, b, h, n);
    a->d_o = rows_part(f->d_o, &f->cu_seqlens_q, b, h, n);
    a->kv.k = rows_part(f->kv.k, &f->cu_seqlens_k, b, g, 1);
    a->kv.v = rows_part(f->kv.v, &f->cu_seqlens_k, b, g, 1);
    a->mask = scene_slice(scene_slice(f->mask, 0, b, 1), 1, h, n);
    a->bias = scene_slice(scene_slice(f->bias, 0, b, 1), 1, h, n);
    a->alibi_slopes =
        f->alibi_slopes.rank == 2
            ? scene_slice(scene_slice(f->alibi_slopes, 0, b, 1), 1, h, n)
            : scene_slice(f->alibi_slopes, 0, h, n);
    a->sinks = scene_slice(f->sinks, 0, h, n);
    a->kv.k_lengths = scene_slice(f->kv.k_lengths, 0, b, 1);
    a->q_offset = scene_slice(f->q_offset, 0, b, 1);
    if (f->dlse.dtype != ATTN_NONE)
        a->dlse = statistics_part(f->dlse, &f->cu_seqlens_q, b, h, n);
    if (f->cu_seqlens_q.dtype != ATTN_NONE) {
        a->cu_seqlens_q = one_sequence(to, &a->q);
        a->cu_seqlens_k = one_sequence(to, &a->kv.k);
    }
}

/* That part of output number i. */
static attn_input output_part(scene *whole, int i, int64_t b, int64_t h,
                              int64_t n)
{
    const int64_t group = whole->desc.heads_q / whole->desc.heads_kv;
    const attn_args *a = &whole->args;
    const attn_tensor *t = scene_output(whole, i);
    const attn_input view = attn_in(*t);

    if (t->dtype == ATTN_NONE)
        return view;
    if (t == &a->o || t == &a->dq)
        return rows_part(view, &a->cu_seqlens_q, b, h, n);
    if (t == &a->dk || t == &a->dv)
        return rows_part(view, &a->cu_seqlens_k, b, h / group, 1);
    if (t == &a->lse || t == &a->entropy)
        return statistics_part(view, &a->cu_seqlens_q, b, h, n);
    if (view.rank == 1) /* (heads): dsinks, dslopes */
        return scene_slice(view, 0, h, n);
    return scene_slice(scene_slice(view, 0, b, 1), 1, h, n);
}

/* Whether a part alone must give the bits of that part of the whole: not
 * where the whole is a sum over other entries or heads. */
static bool comparable(scene *whole, int i, int64_t n)
{
    const int64_t group = whole->desc.heads_q / whole->desc.heads_kv;
    const attn_args *a = &whole->args;
    const attn_tensor *t = scene_output(whole, i);

    if (t == &a->dk || t == &a->dv)
        return n == group;
    if (t == &a->dbias)
        return a->dbias.shape[0] == whole->desc.batch &&
               a->dbias.shape[1] == whole->desc.heads_q;
    if (t == &a->dsinks || t == &a->dslopes)
        return t->rank == 2 || whole->desc.batch == 1;
    return true;
}

void scene_part(scene *to, scene *from, int64_t b, int64_t head, int64_t n)
{
    start_variant(to, from);
    to->desc.batch = to->desc.heads_kv = 1;
    to->desc.heads_q = n;
    part_inputs(to, from, b, head, n);
    for (int i = 0; i < SCENE_OUTPUTS; i++) {
        const attn_input part = output_part(from, i, b, head, n);

        if (part.dtype != ATTN_NONE)
            *scene_output(to, i) =
                scene_dense(to, part.dtype, part.rank, part.shape);
    }
}

bool scene_same_part(scene *part, scene *whole, int64_t b, int64_t head,
                     int64_t n)
{
    bool same = true;

    for (int i = 0; i < SCENE_OUTPUTS; i++) {
        const attn_input alone = attn_in(*scene_output(part, i));
        const attn_input within = output_part(whole, i, b, head, n);

        if (alone.dtype != ATTN_NONE && comparable(whole, i, n))
            same = same &&
                   scene_same(scene_output_name(i), &alone, &within);
    }
    return same;
}

/* ---------------------------------------------------------------- compare */

bool scene_same(const char *what, const attn_input *a, const attn_input *b)
{
    const size_t size = attn_dtype_size(a->dtype);

    if (scene_count(a) != scene_count(b) || a->dtype != b->dtype) {
        fprintf(stderr, "%s: other sizes\n", what);
        return false;
    }
    for (int64_t i = 0; i < scene_count(a); i++)
        if (memcmp((const char *)a->data + scene_offset(a, i) * (int64_t)size,
                   (const char *)b->data + scene_offset(b, i) * (int64_t)size,
                   size) != 0) {
            fprintf(stderr, "%s[%lld]: %.17g and %.17g\n", what,
                    (long long)i, scene_read(a, i), scene_read(b, i));
            return false;
        }
    return true;
}

bool scene_same_outputs(scene *a, scene *b)
{
    bool same = true;

    for (int i = 0; i < SCENE_OUTPUTS; i++) {
        const attn_input one = attn_in(*scene_output(a, i));
        const attn_input other = attn_in(*scene_output(b, i));

        if (one.dtype != ATTN_NONE && other.dtype != ATTN_NONE)
            same = same && scene_same(scene_output_name(i), &one, &other);
    }
    return same;
}
