/* SPDX-License-Identifier: Apache-2.0
 *
 * --rope: q and k turned in place before attention, their gradients turned
 * back after it. Key j of a sequence stands at j, query i at i + q_offset (the
 * same p that causal, windows and ALiBi use), or both at `positions`. */
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "print_arrays.h"

typedef struct places {
    attn_input view;  /* (len), or (B, len) */
    int64_t *memory;  /* what the view shows, where it is our own */
    int64_t most;     /* the largest position */
} places;

/* The places of one sequence of n rows from `first`. */
static void count_up(int64_t *to, int64_t n, int64_t first)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = first + i;
}

/* Places of queries or keys, one row per batch, or one for all sequences. */
static int default_places(const cli_problem *p, bool queries, places *to)
{
    const attn_array *rows = queries ? p->q : p->k;
    const attn_input view = cli_view(p, rows);
    const attn_array *cu = cli_input(p->inputs, queries ? "cu_seqlens_q"
                                                        : "cu_seqlens_k");
    const int64_t batch = p->desc.batch;
    const int64_t len = p->packed ? view.shape[0] : view.shape[2];
    const int64_t count = p->packed ? len : batch * len;

    to->memory = calloc((size_t)count + 1, sizeof *to->memory);
    if (!to->memory)
        return cli_no_memory();
    for (int64_t b = 0; b < batch; b++) {
        const int64_t begin = cu ? cli_index(cu, b) : b * len;
        const int64_t end = cu ? cli_index(cu, b + 1) : begin + len;

        count_up(to->memory + begin, end - begin,
                 queries ? cli_offset_of(p, b) : 0);
    }
    to->view = p->packed ? attn_in_dense(to->memory, ATTN_I64, 1, &len)
                         : attn_in_dense(to->memory, ATTN_I64, 2,
                                         (int64_t[]){batch, len});
    return CLI_GO;
}

static int given_places(const cli_problem *p, const attn_array *given,
                        bool queries, places *to)
{
    const attn_input view = cli_view(p, queries ? p->q : p->k);
    const int64_t len = p->packed ? view.shape[0] : view.shape[2];
    char shape[128];

    cli_shape_text(given->rank, given->shape, shape, sizeof shape);
    if (given->rank < 1 || given->rank > 2 ||
        given->shape[given->rank - 1] != len)
        return cli_fail(CLI_USAGE, "positions: has shape %s, must be (%lld,) "
                        "or (batch, %lld), one for each row of %s", shape,
                        (long long)len, (long long)len, queries ? "q" : "k");
    if (given->dtype != ATTN_I32 && given->dtype != ATTN_I64)
        return cli_fail(CLI_USAGE, "positions: has type %s; it must be an "
                        "integer", cli_type_of(given));
    to->view = attn_in_dense(given->data, given->dtype, given->rank,
                             given->shape);
    return CLI_GO;
}

static int find_places(const cli_problem *p, bool queries, places *to)
{
    const attn_array *given = cli_input(p->inputs, "positions");
    const int code = given ? given_places(p, given, queries, to)
                           : default_places(p, queries, to);
    attn_array all = {.dtype = to->view.dtype};

    if (code != CLI_GO)
        return code;
    all.data = (void *)(uintptr_t)to->view.data;
    all.count = to->view.shape[0] * (to->view.rank > 1 ? to->view.shape[1] : 1);
    for (int64_t i = 0; i < all.count; i++)
        if (cli_index(&all, i) > to->most)
            to->most = cli_index(&all, i);
    return CLI_GO;
}

/* Rows as attn_rope wants them: packed ones as (heads, total, dim). */
static attn_input rows_of(const cli_problem *p, const attn_array *array)
{
    attn_input view = cli_view(p, array);

    if (p->packed) {
        const int64_t shape = view.shape[0], stride = view.stride[0];

        view.shape[0] = view.shape[1];
        view.stride[0] = view.stride[1];
        view.shape[1] = shape;
        view.stride[1] = stride;
    }
    return view;
}

static int turn(const cli_problem *p, const attn_rope_desc *desc,
                attn_array *array, const places *at, bool backward)
{
    const attn_input x = rows_of(p, array);
    attn_tensor y = {array->data, x.dtype, x.rank, {0}, {0}};
    attn_diag diag;
    attn_status status;

    memcpy(y.shape, x.shape, sizeof y.shape);
    memcpy(y.stride, x.stride, sizeof y.stride);
    status = backward ? attn_rope_backward(desc, x, at->view, y, &diag)
                      : attn_rope(desc, x, at->view, y, &diag);
    return status == ATTN_OK ? CLI_GO : cli_refused(&diag);
}

int cli_rotate(cli_problem *p, bool backward)
{
    attn_array *q = backward ? cli_output(p, "dq") : p->q;
    attn_array *k = backward ? cli_output(p, "dk") : p->k;
    attn_rope_desc desc = cli_rope_desc(&p->options->rope);
    places of_q = {.memory = NULL}, of_k = {.memory = NULL};
    int code = CLI_GO;

    if (!p->options->rope.given) {
        if (!backward && cli_input(p->inputs, "positions"))
            cli_note("positions: unused without --rope");
        return CLI_GO;
    }
    code = find_places(p, true, &of_q);
    if (code == CLI_GO)
        code = find_places(p, false, &of_k);
    /* Scalings that look at the length must see the same one for both. */
    if (desc.seq_len == 0)
        desc.seq_len = 1 + (of_q.most > of_k.most ? of_q.most : of_k.most);
    if (code == CLI_GO)
        code = turn(p, &desc, q, &of_q, backward);
    if (code == CLI_GO)
        code = turn(p, &desc, k, &of_k, backward);
    free(of_q.memory);
    free(of_k.memory);
    return code;
}
