/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of a call's arguments, one line each: the change that breaks it,
 * the status, the field; and that no byte of any output was written. Before
 * the change, each call succeeds. */
#include "attn.h"

#include "refusal.h"

#include <stdbool.h>
#include <string.h>

enum { B = 2, H = 4, G = 2, LQ = 5, LK = 6, D = 8, DV = 4, PAGE = 2 };
enum { MEMORY = 1 << 17 };

static _Alignas(64) unsigned char inputs[MEMORY], outputs[MEMORY];
static _Alignas(64) unsigned char workspace[1 << 20];
static size_t inputs_used, outputs_used;

static const void *in_memory(size_t bytes)
{
    inputs_used += (bytes + 63) / 64 * 64;
    assert_true(inputs_used <= MEMORY);
    return inputs + inputs_used - (bytes + 63) / 64 * 64;
}

static size_t bytes_of(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    size_t bytes = attn_dtype_size(dtype);

    for (int32_t a = 0; a < rank; a++)
        bytes *= (size_t)shape[a];
    return bytes;
}

#define SHAPE(...)                                                            \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
        (int64_t[]){__VA_ARGS__}

static attn_input in(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    return attn_in_dense(in_memory(bytes_of(dtype, rank, shape)), dtype, rank,
                         shape);
}

static attn_tensor out(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    const size_t bytes = bytes_of(dtype, rank, shape);
    void *data = outputs + outputs_used;

    outputs_used += (bytes + 63) / 64 * 64;
    assert_true(outputs_used <= MEMORY);
    return attn_dense(data, dtype, rank, shape);
}

/* An index array that holds its values. */
static attn_input index_array(int64_t n, const int64_t *values)
{
    attn_input t = in(ATTN_I64, 1, &n);

    memcpy(inputs + ((const unsigned char *)t.data - inputs), values,
           (size_t)n * sizeof *values);
    return t;
}

#define INDICES(...)                                                          \
    index_array((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) /                  \
                          sizeof(int64_t)),                                   \
                (int64_t[]){__VA_ARGS__})

typedef struct call {
    attn_pass pass;
    attn_desc desc;
    attn_args args;
    attn_exec exec;
    attn_stage stage;
    attn_rows rows;
    attn_tensor out;
} call;

static void add_outputs(call *c)
{
    attn_args *a = &c->args;

    a->o = out(ATTN_F32, SHAPE(B, H, LQ, DV));
    a->lse = out(ATTN_F32, SHAPE(B, H, LQ));
    if (c->pass == ATTN_FORWARD) {
        a->weights = out(ATTN_F32, SHAPE(B, H, LQ, LK));
        a->entropy = out(ATTN_F64, SHAPE(B, H, LQ));
    } else if (c->pass == ATTN_BACKWARD) {
        a->d_o = in(ATTN_F32, SHAPE(B, H, LQ, DV));
        a->dlse = in(ATTN_F64, SHAPE(B, H, LQ));
        a->dq = out(ATTN_F32, SHAPE(B, H, LQ, D));
        a->dk = out(ATTN_F32, SHAPE(B, G, LK, D));
        a->dv = out(ATTN_F32, SHAPE(B, G, LK, DV));
        a->dbias = out(ATTN_F32, SHAPE(H, 1, LK));
        a->dsinks = out(ATTN_F64, SHAPE(H));
        a->dslopes = out(ATTN_F32, SHAPE(H));
    } else {
        c->out = out(ATTN_F32, SHAPE(B, H, LQ, LK));
    }
}

/* Dense K and V with every optional input. */
static call dense(attn_pass pass)
{
    call c;

    memset(&c, 0, sizeof c);
    inputs_used = outputs_used = 0;
    memset(inputs, 0, sizeof inputs);
    c.pass = pass;
    attn_desc_init(&c.desc, ATTN_F32, B, H, G, LQ, LK, D, DV);
    c.desc.inputs = ATTN_WITH_MASK | ATTN_WITH_BIAS | ATTN_WITH_ALIBI |
                    ATTN_WITH_SINKS | ATTN_WITH_K_LENGTHS |
                    ATTN_WITH_Q_OFFSET;
    attn_args_init(&c.args);
    c.args.q = in(ATTN_F32, SHAPE(B, H, LQ, D));
    c.args.kv.k = in(ATTN_F32, SHAPE(B, G, LK, D));
    c.args.kv.v = in(ATTN_F32, SHAPE(B, G, LK, DV));
    c.args.mask = in(ATTN_BOOL, SHAPE(LQ, 1));
    c.args.bias = in(ATTN_F32, SHAPE(H, 1, LK));
    c.args.alibi_slopes = in(ATTN_F32, SHAPE(H));
    c.args.sinks = in(ATTN_F64, SHAPE(H));
    c.args.kv.k_lengths = INDICES(LK, 0);
    c.args.q_offset = INDICES(0, -3);
    add_outputs(&c);
    attn_exec_init(&c.exec);
    c.exec.workspace = workspace;
    c.exec.workspace_size = sizeof workspace;
    return c;
}

/* Pages of two keys, three to a sequence. */
static call paged(attn_pass pass)
{
    call c = dense(pass);
    static const int32_t table[B * 3] = {3, 1, 2, -7, 99, 5};

    c.desc.inputs |= ATTN_WITH_PAGES;
    c.args.kv.k = in(ATTN_F32, SHAPE(4, G, PAGE, D));
    c.args.kv.v = in(ATTN_F32, SHAPE(4, G, PAGE, DV));
    if (pass == ATTN_BACKWARD) {
        c.args.dk = out(ATTN_F32, SHAPE(4, G, PAGE, D));
        c.args.dv = out(ATTN_F32, SHAPE(4, G, PAGE, DV));
    }
    c.args.kv.block_table = attn_in_dense(table, ATTN_I32, SHAPE(B, 3));
    return c;
}

/* Two sequences, of 5 and 2 queries, 6 and 0 keys. */
static call packed(attn_pass pass)
{
    call c = dense(pass);

    c.desc.inputs = ATTN_WITH_VARLEN;
    c.args.mask = c.args.bias = c.args.alibi_slopes = (attn_input){0};
    c.args.sinks = c.args.q_offset = c.args.kv.k_lengths = (attn_input){0};
    c.args.dbias = c.args.dsinks = c.args.dslopes = (attn_tensor){0};
    c.args.weights = (attn_tensor){0};
    c.args.q = in(ATTN_F32, SHAPE(7, H, D));
    c.args.kv.k = in(ATTN_F32, SHAPE(6, G, D));
    c.args.kv.v = in(ATTN_F32, SHAPE(6, G, DV));
    c.args.cu_seqlens_q = INDICES(0, 5, 7);
    c.args.cu_seqlens_k = INDICES(0, 6, 6);
    c.args.o = out(ATTN_F32, SHAPE(7, H, DV));
    c.args.lse = out(ATTN_F32, SHAPE(H, 7));
    if (pass == ATTN_FORWARD)
        c.args.entropy = out(ATTN_F32, SHAPE(H, 7));
    if (pass == ATTN_BACKWARD) {
        c.args.d_o = in(ATTN_F32, SHAPE(7, H, DV));
        c.args.dlse = (attn_input){0};
        c.args.dq = out(ATTN_F32, SHAPE(7, H, D));
        c.args.dk = out(ATTN_F32, SHAPE(6, G, D));
        c.args.dv = out(ATTN_F32, SHAPE(6, G, DV));
    }
    return c;
}

static attn_status run(const call *c, attn_diag *diag)
{
    attn_plan plan;
    attn_status status = attn_plan_init(&plan, &c->desc, diag);

    if (status != ATTN_OK)
        fail_msg("no plan: %s %s", diag->field, diag->message);
    if (c->pass == ATTN_FORWARD)
        return attn_forward(&plan, &c->args, &c->exec, diag);
    if (c->pass == ATTN_BACKWARD)
        return attn_backward(&plan, &c->args, &c->exec, diag);
    return attn_weights(&plan, &c->args, c->stage, &c->rows, c->out, &c->exec,
                        diag);
}

static void refuse(const call *c, attn_status status, const char *field,
                   const char *change)
{
    attn_diag diag;
    attn_status got;

    memset(outputs, UNTOUCHED, sizeof outputs);
    memset(workspace, 0xa5, sizeof workspace);
    got = run(c, &diag);
    expect_refused(got, &diag, status, field, change);
    expect_untouched(outputs, sizeof outputs, change);
}

static void accept(const call *c, const char *change)
{
    attn_diag diag;

    memset(outputs, 0, sizeof outputs);
    expect_accepted(run(c, &diag), &diag, change);
}

/* `make` is one of the calls above, `c` the call and `a` its arguments in
 * `change`. */
#define REFUSED(make, status, field, change)                                  \
    do {                                                                      \
        call c = make;                                                        \
        attn_args *a = &c.args;                                               \
        (void)a;                                                              \
        change;                                                               \
        refuse(&c, (status), (field), #make ": " #change);                    \
    } while (0)

#define LEGAL(make, change)                                                   \
    do {                                                                      \
        call c = make;                                                        \
        attn_args *a = &c.args;                                               \
        (void)a;                                                              \
        change;                                                               \
        accept(&c, #make ": " #change);                                       \
    } while (0)

#define FORWARD dense(ATTN_FORWARD)
#define BACKWARD dense(ATTN_BACKWARD)
#define WEIGHTS dense(ATTN_WEIGHTS)

UNIT(unchanged_calls_succeed)
{
    LEGAL(FORWARD, (void)0);
    LEGAL(BACKWARD, (void)0);
    LEGAL(WEIGHTS, (void)0);
    LEGAL(paged(ATTN_FORWARD), (void)0);
    LEGAL(paged(ATTN_BACKWARD), (void)0);
    LEGAL(paged(ATTN_WEIGHTS), (void)0);
    LEGAL(packed(ATTN_FORWARD), (void)0);
    LEGAL(packed(ATTN_BACKWARD), (void)0);
}

UNIT(pointers_and_sizes_of_structs)
{
    const call plain = FORWARD;
    attn_plan plan;
    attn_diag diag;

    assert_int_equal(attn_plan_init(&plan, &plain.desc, NULL), ATTN_OK);
    assert_int_equal(attn_forward(NULL, &plain.args, &plain.exec, &diag),
                     ATTN_E_ARG);
    assert_string_equal(diag.field, "plan");
    assert_int_equal(attn_forward(&plan, NULL, &plain.exec, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "args");
    assert_int_equal(attn_forward(&plan, &plain.args, NULL, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "exec");
    assert_int_equal(attn_forward(&plan, &plain.args, NULL, NULL), ATTN_E_ARG);
    REFUSED(FORWARD, ATTN_E_ARG, "size", a->size = 0);
    REFUSED(FORWARD, ATTN_E_ARG, "size", c.exec.size = 0);
}

UNIT(exec)
{
    REFUSED(FORWARD, ATTN_E_ARG, "threads", c.exec.threads = 0);
    REFUSED(FORWARD, ATTN_E_ARG, "threads", c.exec.threads = 1025);
    REFUSED(FORWARD, ATTN_E_WORKSPACE, "workspace", c.exec.workspace = NULL);
    REFUSED(FORWARD, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace_size = 0);
    REFUSED(BACKWARD, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace_size = 64);
    REFUSED(FORWARD, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace = workspace + 1);
}

/* One byte less than attn_plan_workspace says is not enough, for any pass. */
UNIT(the_workspace_has_no_slack)
{
    for (int pass = ATTN_FORWARD; pass <= ATTN_WEIGHTS; pass++) {
        call c = dense((attn_pass)pass);
        attn_plan plan;
        attn_workspace need;

        assert_int_equal(attn_plan_init(&plan, &c.desc, NULL), ATTN_OK);
        attn_plan_workspace(&plan, (attn_pass)pass, 1, &need, NULL);
        c.exec.workspace_size = need.size;
        accept(&c, "exact");
        c.exec.workspace_size--;
        refuse(&c, ATTN_E_WORKSPACE, "workspace", "one byte less");
    }
}

UNIT(what_was_planned_is_what_is_brought)
{
    REFUSED(FORWARD, ATTN_E_MISMATCH, "mask", a->mask = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "bias", a->bias = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "alibi_slopes",
            a->alibi_slopes = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "sinks", a->sinks = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "k_lengths",
            a->kv.k_lengths = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "q_offset",
            a->q_offset = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_MISMATCH, "mask",
            c.desc.inputs &= ~ATTN_WITH_MASK);
    REFUSED(FORWARD, ATTN_E_MISMATCH, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(0, 1, 2));
    REFUSED(FORWARD, ATTN_E_MISMATCH, "cu_seqlens_k",
            a->cu_seqlens_k = INDICES(0, 1, 2));
    REFUSED(FORWARD, ATTN_E_MISMATCH, "block_table",
            a->kv.block_table = in(ATTN_I32, SHAPE(B, 3)));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_MISMATCH, "cu_seqlens_k",
            a->cu_seqlens_k = (attn_input){0});
}

UNIT(q_k_and_v)
{
    REFUSED(FORWARD, ATTN_E_ARG, "q", a->q = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_ARG, "k", a->kv.k = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_ARG, "v", a->kv.v = (attn_input){0});
    REFUSED(FORWARD, ATTN_E_ARG, "q", a->q.data = NULL);
    REFUSED(FORWARD, ATTN_E_DTYPE, "q", a->q.dtype = ATTN_F64);
    REFUSED(FORWARD, ATTN_E_DTYPE, "k", a->kv.k.dtype = ATTN_F16);
    REFUSED(FORWARD, ATTN_E_DTYPE, "v", a->kv.v.dtype = ATTN_I32);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.rank = 3);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.rank = 5);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.shape[0] = B + 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.shape[1] = G);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.shape[2] = LQ - 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q", a->q.shape[3] = -1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "k", a->kv.k.shape[1] = H);
    REFUSED(FORWARD, ATTN_E_SHAPE, "k", a->kv.k.shape[3] = D + 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "v", a->kv.v.shape[2] = LK - 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "v", a->kv.v.shape[3] = D);
    REFUSED(FORWARD, ATTN_E_SHAPE, "k", c.desc.len_k = LK - 1);
    REFUSED(FORWARD, ATTN_E_OVERFLOW, "q", a->q.stride[0] = INT64_MAX);
    REFUSED(FORWARD, ATTN_E_OVERFLOW, "v", a->kv.v.stride[3] = INT64_MIN);
}

UNIT(what_shapes_the_scores)
{
    REFUSED(FORWARD, ATTN_E_DTYPE, "mask", a->mask.dtype = ATTN_F32);
    REFUSED(FORWARD, ATTN_E_SHAPE, "mask", a->mask.shape[0] = LQ + 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "mask",
            a->mask = in(ATTN_BOOL, SHAPE(2, LK)));
    REFUSED(FORWARD, ATTN_E_DTYPE, "bias", a->bias.dtype = ATTN_F16);
    REFUSED(FORWARD, ATTN_E_DTYPE, "bias", a->bias.dtype = ATTN_BOOL);
    REFUSED(FORWARD, ATTN_E_SHAPE, "bias", a->bias.shape[0] = G);
    REFUSED(FORWARD, ATTN_E_SHAPE, "bias",
            a->bias = in(ATTN_F32, SHAPE(B, 1, 1, LK + 1)));
    REFUSED(FORWARD, ATTN_E_DTYPE, "alibi_slopes",
            a->alibi_slopes.dtype = ATTN_BF16);
    REFUSED(FORWARD, ATTN_E_SHAPE, "alibi_slopes",
            a->alibi_slopes.shape[0] = G);
    REFUSED(FORWARD, ATTN_E_SHAPE, "alibi_slopes",
            a->alibi_slopes = in(ATTN_F32, SHAPE(H, B)));
    REFUSED(FORWARD, ATTN_E_DTYPE, "sinks", a->sinks.dtype = ATTN_I64);
    REFUSED(FORWARD, ATTN_E_SHAPE, "sinks", a->sinks.shape[0] = H - 1);
    REFUSED(FORWARD, ATTN_E_SHAPE, "sinks",
            a->sinks = in(ATTN_F32, SHAPE(B, H)));
    LEGAL(FORWARD, a->alibi_slopes = in(ATTN_F64, SHAPE(B, H)));
    LEGAL(FORWARD, a->mask = in(ATTN_BOOL, 0, NULL));
    LEGAL(FORWARD, a->bias = in(ATTN_F64, SHAPE(B, 1, LQ, 1)));
    LEGAL(FORWARD, a->bias.stride[2] = 0);
}

UNIT(index_arrays)
{
    REFUSED(FORWARD, ATTN_E_DTYPE, "k_lengths",
            a->kv.k_lengths.dtype = ATTN_F64);
    REFUSED(FORWARD, ATTN_E_SHAPE, "k_lengths",
            a->kv.k_lengths = INDICES(1, 1, 1));
    REFUSED(FORWARD, ATTN_E_ARG, "k_lengths",
            a->kv.k_lengths = INDICES(1, LK + 1));
    REFUSED(FORWARD, ATTN_E_ARG, "k_lengths",
            a->kv.k_lengths = INDICES(-1, 1));
    REFUSED(FORWARD, ATTN_E_DTYPE, "q_offset", a->q_offset.dtype = ATTN_F32);
    REFUSED(FORWARD, ATTN_E_SHAPE, "q_offset", a->q_offset = INDICES(1));
    REFUSED(FORWARD, ATTN_E_ARG, "q_offset",
            a->q_offset = INDICES(0, (INT64_C(1) << 62) + 1));
    REFUSED(FORWARD, ATTN_E_ARG, "q_offset",
            a->q_offset = INDICES(INT64_MIN, 0));
    LEGAL(FORWARD, a->q_offset = INDICES(INT64_C(1) << 62,
                                         -(INT64_C(1) << 62)));
    LEGAL(FORWARD, a->kv.k_lengths.stride[0] = 0);
}

UNIT(packed_sequences)
{
    REFUSED(packed(ATTN_FORWARD), ATTN_E_ARG, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(1, 5, 7));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_ARG, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(0, 5, 4));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_ARG, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(0, 5, 6));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_SHAPE, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(0, 1, 7));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_SHAPE, "cu_seqlens_q",
            a->cu_seqlens_q = INDICES(0, 7));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_DTYPE, "cu_seqlens_q",
            a->cu_seqlens_q.dtype = ATTN_F64);
    REFUSED(packed(ATTN_FORWARD), ATTN_E_ARG, "cu_seqlens_k",
            a->cu_seqlens_k = INDICES(0, 6, 7));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_ARG, "cu_seqlens_k",
            a->cu_seqlens_k = INDICES(0, INT64_MIN, 6));
    REFUSED(packed(ATTN_FORWARD), ATTN_E_SHAPE, "q",
            c.desc.total_q = 6);
    REFUSED(packed(ATTN_FORWARD), ATTN_E_SHAPE, "q", a->q.rank = 4);
    REFUSED(packed(ATTN_FORWARD), ATTN_E_SHAPE, "k",
            a->kv.k.shape[1] = H);
    REFUSED(packed(ATTN_FORWARD), ATTN_E_UNSUPPORTED, "weights",
            a->weights = out(ATTN_F32, SHAPE(B, H, LQ, LK)));
    REFUSED(packed(ATTN_WEIGHTS), ATTN_E_UNSUPPORTED, "out", (void)0);
}

UNIT(pages)
{
    static const int32_t beyond[] = {3, 1, 4, 0, 0, 0};
    static const int32_t negative[] = {3, -1, 2, 0, 0, 0};

    REFUSED(paged(ATTN_FORWARD), ATTN_E_ARG, "block_table",
            a->kv.block_table.data = beyond);
    REFUSED(paged(ATTN_FORWARD), ATTN_E_ARG, "block_table",
            a->kv.block_table.data = negative);
    REFUSED(paged(ATTN_FORWARD), ATTN_E_DTYPE, "block_table",
            a->kv.block_table.dtype = ATTN_I64);
    REFUSED(paged(ATTN_FORWARD), ATTN_E_SHAPE, "block_table",
            a->kv.block_table.shape[0] = 1);
    REFUSED(paged(ATTN_FORWARD), ATTN_E_ARG, "k_lengths",
            a->kv.k_lengths = INDICES(LK, LK + 1));
    REFUSED(paged(ATTN_FORWARD), ATTN_E_SHAPE, "v",
            a->kv.v.shape[0] = 3);
    REFUSED(paged(ATTN_FORWARD), ATTN_E_SHAPE, "k",
            a->kv.k.shape[2] = a->kv.v.shape[2] = 0);
}

UNIT(dropout_starts)
{
    const int64_t limit = INT64_C(1) << 32;

    LEGAL(FORWARD, (c.desc.dropout_p = 0.5, a->dropout_start[0] = limit - LQ));
    REFUSED(FORWARD, ATTN_E_OVERFLOW, "dropout_start",
            (c.desc.dropout_p = 0.5, a->dropout_start[0] = limit));
    REFUSED(FORWARD, ATTN_E_OVERFLOW, "dropout_start",
            (c.desc.dropout_p = 0.5, a->dropout_start[1] = INT64_MAX));
    REFUSED(FORWARD, ATTN_E_OVERFLOW, "dropout_start",
            (c.desc.dropout_p = 0.5, a->dropout_start[1] = -1));
    LEGAL(FORWARD, a->dropout_start[1] = -1);
}

UNIT(outputs_of_forward)
{
    REFUSED(FORWARD, ATTN_E_ARG, "o",
            a->o = a->lse = a->weights = a->entropy = (attn_tensor){0});
    REFUSED(FORWARD, ATTN_E_ARG, "o", a->o.data = NULL);
    REFUSED(FORWARD, ATTN_E_DTYPE, "o", a->o.dtype = ATTN_F64);
    REFUSED(FORWARD, ATTN_E_SHAPE, "o", a->o.shape[3] = D);
    REFUSED(FORWARD, ATTN_E_DTYPE, "lse", a->lse.dtype = ATTN_F16);
    REFUSED(FORWARD, ATTN_E_SHAPE, "lse", a->lse.shape[2] = LK);
    REFUSED(FORWARD, ATTN_E_DTYPE, "entropy", a->entropy.dtype = ATTN_BF16);
    REFUSED(FORWARD, ATTN_E_SHAPE, "entropy", a->entropy.rank = 2);
    REFUSED(FORWARD, ATTN_E_DTYPE, "weights", a->weights.dtype = ATTN_BOOL);
    REFUSED(FORWARD, ATTN_E_SHAPE, "weights", a->weights.shape[3] = 1);
    LEGAL(FORWARD, a->lse = a->weights = a->entropy = (attn_tensor){0});
    LEGAL(FORWARD, a->o = a->weights = a->entropy = (attn_tensor){0});
}

UNIT(inputs_and_outputs_of_backward)
{
    REFUSED(BACKWARD, ATTN_E_UNSUPPORTED, "empty_rows",
            c.desc.empty_rows = ATTN_EMPTY_NAN);
    REFUSED(BACKWARD, ATTN_E_ARG, "o", a->o = (attn_tensor){0});
    REFUSED(BACKWARD, ATTN_E_ARG, "lse", a->lse = (attn_tensor){0});
    REFUSED(BACKWARD, ATTN_E_ARG, "d_o", a->d_o = (attn_input){0});
    REFUSED(BACKWARD, ATTN_E_DTYPE, "d_o", a->d_o.dtype = ATTN_F64);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "d_o", a->d_o.shape[2] = LQ + 1);
    REFUSED(BACKWARD, ATTN_E_DTYPE, "dlse", a->dlse.dtype = ATTN_F16);
    REFUSED(BACKWARD, ATTN_E_DTYPE, "dq", a->dq.dtype = ATTN_F64);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dq", a->dq.shape[1] = G);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dk", a->dk.shape[1] = H);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dv", a->dv.shape[3] = D);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dbias", a->dbias.shape[1] = LQ);
    REFUSED(BACKWARD, ATTN_E_DTYPE, "dsinks", a->dsinks.dtype = ATTN_BF16);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dsinks", a->dsinks.shape[0] = G);
    REFUSED(BACKWARD, ATTN_E_SHAPE, "dslopes", a->dslopes.rank = 0);
    REFUSED(BACKWARD, ATTN_E_MISMATCH, "dbias",
            (a->bias = (attn_input){0}, c.desc.inputs &= ~ATTN_WITH_BIAS));
    REFUSED(BACKWARD, ATTN_E_MISMATCH, "dsinks",
            (a->sinks = (attn_input){0}, c.desc.inputs &= ~ATTN_WITH_SINKS));
    LEGAL(BACKWARD, a->dlse = (attn_input){0});
    LEGAL(BACKWARD, a->dk = a->dbias = (attn_tensor){0});
}

UNIT(chosen_rows)
{
    static const int64_t few[] = {H - 1, 0}, beyond[] = {0, H};
    static const int64_t negative[] = {-1, 0}, row_beyond[] = {0, 1, LQ};
    static const int64_t rows[] = {LQ - 1, LQ - 1, 0};
    const attn_rows chosen = {few, rows, 2, 3};

    LEGAL(WEIGHTS, c.out = (c.rows = chosen,
                            out(ATTN_F64, SHAPE(B, 2, 3, LK))));
    LEGAL(WEIGHTS, a->kv.v = (attn_input){0});
    LEGAL(WEIGHTS, c.stage = ATTN_STAGE_RAW);
    REFUSED(WEIGHTS, ATTN_E_ARG, "stage", c.stage = (attn_stage)4);
    REFUSED(WEIGHTS, ATTN_E_ARG, "stage", c.stage = (attn_stage)-1);
    REFUSED(WEIGHTS, ATTN_E_ARG, "heads",
            (c.rows.heads = beyond, c.rows.n_heads = 2));
    REFUSED(WEIGHTS, ATTN_E_ARG, "heads",
            (c.rows.heads = negative, c.rows.n_heads = 2));
    REFUSED(WEIGHTS, ATTN_E_ARG, "heads",
            (c.rows.heads = few, c.rows.n_heads = -1));
    REFUSED(WEIGHTS, ATTN_E_ARG, "rows",
            (c.rows.rows = row_beyond, c.rows.n_rows = 3));
    REFUSED(WEIGHTS, ATTN_E_SHAPE, "out", c.rows = chosen);
    REFUSED(WEIGHTS, ATTN_E_ARG, "out", c.out = (attn_tensor){0});
    REFUSED(WEIGHTS, ATTN_E_DTYPE, "out", c.out.dtype = ATTN_I32);
}

/* Outputs share bytes with nothing. */
UNIT(overlaps)
{
    REFUSED(FORWARD, ATTN_E_ARG, "o", a->o.stride[0] = 0);
    REFUSED(FORWARD, ATTN_E_ARG, "o", a->o.stride[3] = 0);
    REFUSED(FORWARD, ATTN_E_ARG, "lse", a->lse.stride[1] = 0);
    REFUSED(FORWARD, ATTN_E_ARG, "o", a->o.data = a->lse.data);
    REFUSED(FORWARD, ATTN_E_ARG, "o",
            a->q = attn_in_bhsd(a->o.data, ATTN_F32, B, H, LQ, D));
    REFUSED(FORWARD, ATTN_E_ARG, "lse",
            a->kv.v = attn_in_bhsd(a->lse.data, ATTN_F32, B, G, LK, DV));
    REFUSED(BACKWARD, ATTN_E_ARG, "dq",
            a->d_o = attn_in_bhsd(a->dq.data, ATTN_F32, B, H, LQ, DV));
    REFUSED(BACKWARD, ATTN_E_ARG, "dk", a->dk.data = a->dv.data);
    REFUSED(BACKWARD, ATTN_E_ARG, "dk",
            a->o = attn_bhsd(a->dk.data, ATTN_F32, B, H, LQ, DV));
    REFUSED(WEIGHTS, ATTN_E_ARG, "out", c.out.stride[1] = 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_calls_succeed),
        cmocka_unit_test(pointers_and_sizes_of_structs),
        cmocka_unit_test(exec),
        cmocka_unit_test(the_workspace_has_no_slack),
        cmocka_unit_test(what_was_planned_is_what_is_brought),
        cmocka_unit_test(q_k_and_v),
        cmocka_unit_test(what_shapes_the_scores),
        cmocka_unit_test(index_arrays),
        cmocka_unit_test(packed_sequences),
        cmocka_unit_test(pages),
        cmocka_unit_test(dropout_starts),
        cmocka_unit_test(outputs_of_forward),
        cmocka_unit_test(inputs_and_outputs_of_backward),
        cmocka_unit_test(chosen_rows),
        cmocka_unit_test(overlaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
