/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs must not share memory with anything else of the call: the order of
 * reads and writes is nobody's business. */
#include "core/diag.h"
#include "run/checker.h"

#define MAX_VIEWS 24 /* 6 outputs and 16 inputs of a backward */

typedef struct views {
    attn_input view[MAX_VIEWS];
    const char *name[MAX_VIEWS];
    int n_outputs, n; /* outputs come first */
} views;

/* Absent tensors are left out, empty ones are not: they overlap nothing. */
static void add(views *v, const attn_input *t, const char *name)
{
    if (!attn__given(t))
        return;
    v->view[v->n] = *t;
    v->name[v->n++] = name;
}

/* Of a tensor; most of a call's are absent, and a view of it costs more than a
 * look. */
static void add_tensor(views *v, const attn_tensor *t, const char *name)
{
    if (attn__asked(t)) {
        const attn_input view = attn_in(*t);

        add(v, &view, name);
    }
}

/* Of a backward, o and lse are inputs although attn_args has them writable. */
static void add_outputs(views *v, const checker *c, const attn_tensor *out)
{
    const attn_args *a = c->args;

    if (c->pass == ATTN_FORWARD) {
        add_tensor(v, &a->o, "o");
        add_tensor(v, &a->lse, "lse");
        add_tensor(v, &a->weights, "weights");
        add_tensor(v, &a->entropy, "entropy");
    } else if (c->pass == ATTN_BACKWARD) {
        add_tensor(v, &a->dq, "dq");
        add_tensor(v, &a->dk, "dk");
        add_tensor(v, &a->dv, "dv");
        add_tensor(v, &a->dbias, "dbias");
        add_tensor(v, &a->dsinks, "dsinks");
        add_tensor(v, &a->dslopes, "dslopes");
    } else {
        add_tensor(v, out, "out");
    }
    v->n_outputs = v->n;
}

/* Index arrays too: kernels read them while outputs are being written. */
static void add_inputs(views *v, const checker *c)
{
    const attn_args *a = c->args;

    add(v, &a->q, "q");
    add(v, &a->kv.k, "k");
    add(v, &a->kv.v, "v");
    add(v, &a->kv.k_lengths, "k_lengths");
    add(v, &a->kv.block_table, "block_table");
    add(v, &a->mask, "mask");
    add(v, &a->bias, "bias");
    add(v, &a->alibi_slopes, "alibi_slopes");
    add(v, &a->sinks, "sinks");
    add(v, &a->q_offset, "q_offset");
    add(v, &a->cu_seqlens_q, "cu_seqlens_q");
    add(v, &a->cu_seqlens_k, "cu_seqlens_k");
    if (c->pass != ATTN_BACKWARD)
        return;
    add_tensor(v, &a->o, "o");
    add_tensor(v, &a->lse, "lse");
    add(v, &a->d_o, "d_o");
    add(v, &a->dlse, "dlse");
}

/* At most 6 * 22 pairs, each told apart by its bounds alone in most calls. */
attn_status attn__check_apart(const checker *c, const attn_tensor *out)
{
    views v;

    v.n = 0;
    add_outputs(&v, c, out);
    add_inputs(&v, c);
    for (int i = 0; i < v.n_outputs; i++) {
        ATTN__REQUIRE(!attn__self_overlaps(&v.view[i]), c->diag, ATTN_E_ARG,
                      v.name[i],
                      "is an output whose strides give elements one address");
        /* Inputs may share memory with each other: k and v of one cache. */
        for (int k = i + 1; k < v.n; k++)
            ATTN__REQUIRE(!attn__overlaps(&v.view[i], &v.view[k]), c->diag,
                          ATTN_E_ARG, v.name[i],
                          "is an output that shares memory with %s",
                          v.name[k]);
    }
    return ATTN_OK;
}
