/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of files as the data of an experiment. */
#include <stdlib.h>
#include <string.h>

#include "lab_verb.h"

/* What is chosen of q, k and v, that have more axes than an experiment. */
typedef struct choice {
    int64_t batch, head;
    bool all_heads;
    int64_t heads; /* found, where all are taken */
    double *memory;
} choice;

static int widen(attn_array *a)
{
    attn_diag diag;

    if (a->dtype == ATTN_NONE)
        return cli_fail(CLI_USAGE, "%s: holds text", a->name);
    if (attn_array_convert(a, ATTN_F64, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return CLI_GO;
}

/* (B, H, L, D) of an array of 2 to 4 axes. */
static int measure(const attn_array *a, const choice *c, int64_t *shape)
{
    if (a->rank < 2 || a->rank > 4)
        return cli_fail(CLI_USAGE, "%s: is %d-D; it must be 2-D (L, D), 3-D "
                        "(H, L, D) or 4-D (B, H, L, D)", a->name,
                        (int)a->rank);
    for (int axis = 0; axis < 4; axis++) {
        const int own = axis - (4 - a->rank);

        shape[axis] = own < 0 ? 1 : a->shape[own];
    }
    if (c->batch >= shape[0])
        return cli_fail(CLI_USAGE, "--batch: %lld is not below the %lld of %s",
                        (long long)c->batch, (long long)shape[0], a->name);
    return CLI_GO;
}

/* (H, L, D) as (L, H D) in new memory. */
static void gather(const double *from, const int64_t *shape, double *to)
{
    for (int64_t h = 0; h < shape[1]; h++)
        for (int64_t i = 0; i < shape[2]; i++)
            memcpy(to + (i * shape[1] + h) * shape[3],
                   from + (h * shape[2] + i) * shape[3],
                   (size_t)shape[3] * sizeof *to);
}

static int take_side(attn_array *a, choice *c, double **free_memory,
                     int64_t heads, attn_input *to)
{
    int64_t shape[4] = {0}, flat[2];
    const double *from;
    int64_t head;

    if (widen(a) != CLI_GO || measure(a, c, shape) != CLI_GO)
        return CLI_USAGE;
    from = (const double *)a->data +
           c->batch * shape[1] * shape[2] * shape[3];
    flat[0] = shape[2];
    flat[1] = shape[3];
    if (c->all_heads && a->rank > 2) {
        flat[1] = shape[1] * shape[3];
        c->heads = shape[1];
        gather(from, shape, *free_memory);
        *to = attn_in_dense(*free_memory, ATTN_F64, 2, flat);
        *free_memory += flat[0] * flat[1];
        return CLI_GO;
    }
    /* Grouped heads share a key-value head. */
    head = shape[1] < heads && shape[1] > 0 && heads % shape[1] == 0
               ? c->head / (heads / shape[1])
               : c->head;
    if (head >= shape[1])
        return cli_fail(CLI_USAGE, "--head: %lld is not below the %lld heads "
                        "of %s", (long long)head, (long long)shape[1],
                        a->name);
    *to = attn_in_dense(from + head * shape[2] * shape[3], ATTN_F64, 2, flat);
    return CLI_GO;
}

static int take_sides(const cli_inputs *inputs, choice *c, attn_lab_data *data)
{
    static const char *const names[] = {"q", "k", "v"};
    attn_input *const to[] = {&data->q, &data->k, &data->v};
    const attn_array *q = cli_input(inputs, "q");
    int64_t count = 0, heads;
    double *next;
    int code = CLI_GO;

    heads = q && q->rank >= 3 ? q->shape[q->rank - 3] : 1;
    for (int i = 0; i < 3; i++) {
        const attn_array *a = cli_input(inputs, names[i]);

        count += a ? a->count : 0;
    }
    c->memory = calloc((size_t)count + 1, sizeof *c->memory);
    if (!c->memory)
        return cli_no_memory();
    next = c->memory;
    for (int i = 0; i < 3 && code == CLI_GO; i++) {
        attn_array *a = cli_input(inputs, names[i]);

        if (a)
            code = take_side(a, c, &next, heads, to[i]);
    }
    return code;
}

static int take_matrix(const cli_inputs *inputs, const char *name,
                       attn_input *to)
{
    attn_array *a = cli_input(inputs, name);

    if (!a)
        return CLI_GO;
    if (a->rank != 2)
        return cli_fail(CLI_USAGE, "%s: is %d-D; it must be 2-D", name,
                        (int)a->rank);
    if (widen(a) != CLI_GO)
        return CLI_USAGE;
    *to = attn_in_dense(a->data, ATTN_F64, 2, a->shape);
    return CLI_GO;
}

static int take_tokens(const cli_inputs *inputs, const choice *c,
                       attn_lab_data *data)
{
    const attn_array *t = cli_input(inputs, "tokens");
    const attn_input *rows = data->q.dtype != ATTN_NONE ? &data->q : &data->x;

    if (!t || rows->dtype == ATTN_NONE)
        return CLI_GO;
    if (t->dtype != ATTN_NONE || t->rank < 1 || t->rank > 2 ||
        t->shape[t->rank - 1] != rows->shape[0] ||
        (t->rank == 2 && c->batch >= t->shape[0]))
        return cli_fail(CLI_USAGE, "tokens: must be text, one string for each "
                        "of the %lld rows", (long long)rows->shape[0]);
    data->tokens = (const char *const *)t->text +
                   (t->rank == 2 ? c->batch * t->shape[1] : 0);
    return CLI_GO;
}

int cli_lab_take(const cli_inputs *inputs, bool all_heads, int64_t batch,
                 int64_t head, attn_lab_data *data, void **memory)
{
    choice c = {batch, head, all_heads, 0, NULL};
    int code = take_sides(inputs, &c, data);

    *memory = c.memory;
    if (code == CLI_GO)
        code = take_matrix(inputs, "x", &data->x);
    if (code == CLI_GO)
        code = take_matrix(inputs, "w_q", &data->w_q);
    if (code == CLI_GO)
        code = take_matrix(inputs, "w_k", &data->w_k);
    if (code == CLI_GO)
        code = take_matrix(inputs, "w_v", &data->w_v);
    if (code == CLI_GO && c.heads > 0)
        data->heads = c.heads;
    return code == CLI_GO ? take_tokens(inputs, &c, data) : code;
}
