/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of attn_merge, attn_kv_append, attn_rope and attn_dropout_mask,
 * one line each: the change that breaks it, the status, the field; and that no
 * byte of an output was written. Before the change, each call succeeds. */
#include "attn.h"

#include "refusal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { B = 2, H = 3, L = 4, D = 6, ROOM = 8, PAGE = 2, PAGES = 9 };
enum { MEMORY = 4096 };

/* Outputs lie in these; inputs, where they are to collide, too. */
static _Alignas(64) unsigned char out[2][MEMORY];

typedef attn_status caller(const void *call, attn_diag *diag);

static void refuse(caller *run, const void *call, attn_status status,
                   const char *field, const char *change)
{
    attn_diag diag;
    attn_status got;

    memset(out, UNTOUCHED, sizeof out);
    got = run(call, &diag);
    expect_refused(got, &diag, status, field, change);
    expect_untouched(out, sizeof out, change);
    assert_int_equal(run(call, NULL), status);
}

static void accept(caller *run, const void *call, const char *change)
{
    attn_diag diag;

    memset(out, 0, sizeof out);
    if (run(call, &diag) != ATTN_OK)
        fail_msg("%s: %s: %s", change, diag.field, diag.message);
}

#define WITH(kind, change, what)                                              \
    do {                                                                      \
        kind##_call c = kind##_legal();                                       \
        change;                                                               \
        what;                                                                 \
    } while (0)
#define REFUSED(kind, status, field, change)                                  \
    WITH(kind, change,                                                        \
         refuse(kind##_run, &c, (status), (field), #kind ": " #change))
#define LEGAL(kind, change)                                                   \
    WITH(kind, change, accept(kind##_run, &c, #kind ": " #change))

#define NO_INPUT ((attn_input){0})

/* ------------------------------------------------------------------- merge */

static float part_o[2][B * H * L * D];
static double part_lse[2][B * H * L];

typedef struct merge_call {
    attn_input o1, lse1, o2, lse2;
    attn_tensor o, lse;
} merge_call;

static merge_call merge_legal(void)
{
    const int64_t rows[] = {B, H, L};

    return (merge_call){attn_in_bhsd(part_o[0], ATTN_F32, B, H, L, D),
                        attn_in_dense(part_lse[0], ATTN_F64, 3, rows),
                        attn_in_bhsd(part_o[1], ATTN_F32, B, H, L, D),
                        attn_in_dense(part_lse[1], ATTN_F64, 3, rows),
                        attn_bhsd(out[0], ATTN_F32, B, H, L, D),
                        attn_dense(out[1], ATTN_F64, 3, rows)};
}

static attn_status merge_run(const void *call, attn_diag *diag)
{
    const merge_call *c = call;

    return attn_merge(c->o1, c->lse1, c->o2, c->lse2, c->o, c->lse, diag);
}

UNIT(merge_parts)
{
    LEGAL(merge, (void)0);
    LEGAL(merge, c.lse1 = attn_in_dense(part_o[0], ATTN_F32, 3, c.lse1.shape));
    REFUSED(merge, ATTN_E_DTYPE, "o1", c.o1 = NO_INPUT);
    REFUSED(merge, ATTN_E_DTYPE, "o1", c.o1.dtype = ATTN_I32);
    REFUSED(merge, ATTN_E_ARG, "o1", c.o1.data = NULL);
    REFUSED(merge, ATTN_E_SHAPE, "o1", c.o1.rank = 3);
    REFUSED(merge, ATTN_E_SHAPE, "o1", c.o1.shape[2] = -1);
    REFUSED(merge, ATTN_E_OVERFLOW, "o1", c.o1.stride[0] = INT64_MAX);
    REFUSED(merge, ATTN_E_DTYPE, "o2", c.o2.dtype = ATTN_BF16);
    REFUSED(merge, ATTN_E_SHAPE, "o2", c.o2.shape[3]--);
    REFUSED(merge, ATTN_E_ARG, "o2", c.o2.data = NULL);
    REFUSED(merge, ATTN_E_SHAPE, "lse1", c.lse1.shape[0]--);
    REFUSED(merge, ATTN_E_SHAPE, "lse1", c.lse1.rank = 2);
    REFUSED(merge, ATTN_E_DTYPE, "lse1", c.lse1.dtype = ATTN_F16);
    REFUSED(merge, ATTN_E_ARG, "lse2", c.lse2.data = NULL);
    REFUSED(merge, ATTN_E_DTYPE, "lse2", c.lse2.dtype = ATTN_I64);
}

UNIT(merge_results)
{
    REFUSED(merge, ATTN_E_DTYPE, "o", c.o.dtype = ATTN_F64);
    REFUSED(merge, ATTN_E_SHAPE, "o", c.o.shape[1]--);
    REFUSED(merge, ATTN_E_ARG, "o", c.o.data = NULL);
    REFUSED(merge, ATTN_E_ARG, "o", c.o.stride[2] = 0);
    REFUSED(merge, ATTN_E_DTYPE, "lse", c.lse.dtype = ATTN_F16);
    REFUSED(merge, ATTN_E_SHAPE, "lse", c.lse.shape[2]++);
    REFUSED(merge, ATTN_E_ARG, "o", c.lse.stride[0] = 0);
    REFUSED(merge, ATTN_E_ARG, "lse", c.lse.data = out[0]);
    /* Over an input only element for element. */
    LEGAL(merge, c.o1 = attn_in(c.o); c.lse2 = attn_in(c.lse));
    REFUSED(merge, ATTN_E_ARG, "o", c.o2 = attn_in(c.o);
            c.o2.data = out[0] + sizeof(float));
    REFUSED(merge, ATTN_E_ARG, "lse", c.lse1 = attn_in(c.lse);
            c.lse1.data = out[1] + sizeof(double));
    REFUSED(merge, ATTN_E_ARG, "o", c.lse1.data = out[0]);
    REFUSED(merge, ATTN_E_ARG, "o", c.lse2.data = out[0]);
    REFUSED(merge, ATTN_E_ARG, "lse", c.o1.data = out[1]);
    REFUSED(merge, ATTN_E_ARG, "lse", c.o2.data = out[1]);
}

/* --------------------------------------------------------------- kv_append */

static float row_data[B * H * 2 * D];
static int32_t length_data[B], table_data[B * 4];

typedef struct append_call {
    attn_tensor cache;
    attn_input rows, lengths, table;
} append_call;

/* Two rows behind 3 and 5 of 8. */
static append_call append_legal(void)
{
    length_data[0] = 3;
    length_data[1] = 5;
    return (append_call){
        attn_bhsd(out[0], ATTN_F32, B, H, ROOM, D),
        attn_in_bhsd(row_data, ATTN_F32, B, H, 2, D),
        attn_in_dense(length_data, ATTN_I32, 1, (int64_t[]){B}), NO_INPUT};
}

#define pages_call append_call
#define pages_run append_run
static append_call pages_legal(void)
{
    append_call c = append_legal();

    for (int t = 0; t < B * 4; t++)
        table_data[t] = t + 1;
    c.cache = attn_bhsd(out[0], ATTN_F32, PAGES, H, PAGE, D);
    c.table = attn_in_dense(table_data, ATTN_I32, 2, (int64_t[]){B, 4});
    return c;
}

static attn_status append_run(const void *call, attn_diag *diag)
{
    const append_call *c = call;

    return attn_kv_append(c->cache, c->rows, c->lengths, c->table, diag);
}

UNIT(appended_rows)
{
    LEGAL(append, (void)0);
    LEGAL(append, length_data[1] = ROOM - 2);
    LEGAL(append, c.rows.shape[2] = 0; length_data[1] = ROOM);
    REFUSED(append, ATTN_E_DTYPE, "rows", c.rows = NO_INPUT);
    REFUSED(append, ATTN_E_ARG, "rows", c.rows.data = NULL);
    REFUSED(append, ATTN_E_SHAPE, "rows", c.rows.rank = 3);
    REFUSED(append, ATTN_E_SHAPE, "rows", c.rows.shape[2] = -1);
    REFUSED(append, ATTN_E_DTYPE, "rows", c.rows.dtype = ATTN_I32);
    REFUSED(append, ATTN_E_DTYPE, "cache", c.cache.dtype = ATTN_NONE);
    REFUSED(append, ATTN_E_ARG, "cache", c.cache.data = NULL);
    REFUSED(append, ATTN_E_SHAPE, "cache", c.cache.rank = 3);
    REFUSED(append, ATTN_E_SHAPE, "cache", c.cache.shape[0]--);
    REFUSED(append, ATTN_E_SHAPE, "cache", c.cache.shape[1]--);
    REFUSED(append, ATTN_E_SHAPE, "cache", c.cache.shape[3]--);
    REFUSED(append, ATTN_E_ARG, "cache", c.cache.stride[1] = 0);
    REFUSED(append, ATTN_E_ARG, "cache", c.rows.data = out[0] + 8);
    REFUSED(append, ATTN_E_ARG, "cache", c.lengths.data = out[0]);
    REFUSED(append, ATTN_E_DTYPE, "lengths", c.lengths = NO_INPUT);
    REFUSED(append, ATTN_E_DTYPE, "lengths", c.lengths.dtype = ATTN_F32);
    REFUSED(append, ATTN_E_SHAPE, "lengths", c.lengths.shape[0]--);
    REFUSED(append, ATTN_E_ARG, "lengths", c.lengths.data = NULL);
    REFUSED(append, ATTN_E_ARG, "lengths", length_data[1] = -1);
    /* The last one is at fault, and the first rows are not written either. */
    REFUSED(append, ATTN_E_ARG, "lengths", length_data[1] = ROOM - 1);
    REFUSED(append, ATTN_E_ARG, "lengths", length_data[1] = INT32_MAX);
}

UNIT(appended_pages)
{
    LEGAL(pages, (void)0);
    LEGAL(pages, table_data[0] = -1); /* full: not in use here */
    REFUSED(pages, ATTN_E_DTYPE, "block_table", c.table.dtype = ATTN_I64);
    REFUSED(pages, ATTN_E_SHAPE, "block_table", c.table.rank = 1);
    REFUSED(pages, ATTN_E_SHAPE, "block_table", c.table.shape[0]--);
    REFUSED(pages, ATTN_E_ARG, "block_table", c.table.data = NULL);
    REFUSED(pages, ATTN_E_ARG, "cache", c.table.data = out[0]);
    REFUSED(pages, ATTN_E_ARG, "block_table", table_data[1] = -1);
    REFUSED(pages, ATTN_E_ARG, "block_table", table_data[1] = PAGES);
    REFUSED(pages, ATTN_E_ARG, "block_table", table_data[7] = PAGES);
    REFUSED(pages, ATTN_E_ARG, "lengths", c.table.shape[1] = 3);
    REFUSED(pages, ATTN_E_ARG, "lengths", c.cache.shape[2] = 0);
    REFUSED(pages, ATTN_E_OVERFLOW, "block_table",
            c.cache.shape[0] = c.rows.shape[2] = 0;
            c.cache.shape[2] = INT64_MAX);
}

/* -------------------------------------------------------------------- RoPE */

static float x_data[B * H * L * D];
static int32_t position_data[B * L];
static double factors[D];

typedef struct rope_call {
    attn_rope_desc desc;
    attn_input x, positions;
    attn_tensor y;
} rope_call;

static rope_call rope_legal(void)
{
    rope_call c;

    attn_rope_init(&c.desc);
    c.x = attn_in_bhsd(x_data, ATTN_F32, B, H, L, D);
    c.y = attn_bhsd(out[0], ATTN_F32, B, H, L, D);
    c.positions =
        attn_in_dense(position_data, ATTN_I32, 2, (int64_t[]){B, L});
    for (int m = 0; m < D; m++)
        factors[m] = 1 + m;
    return c;
}

static attn_status rope_run(const void *call, attn_diag *diag)
{
    const rope_call *c = call;
    const attn_status there =
        attn_rope(&c->desc, c->x, c->positions, c->y, diag);
    attn_diag other;

    /* The transpose has the same rules. */
    assert_int_equal(attn_rope_backward(&c->desc, c->x, c->positions, c->y,
                                        &other),
                     there);
    if (diag && there != ATTN_OK)
        assert_string_equal(diag->field, other.field);
    return there;
}

#define scaled_call rope_call
#define scaled_run rope_run
static rope_call scaled_legal(void)
{
    rope_call c = rope_legal();

    c.desc.factor = 4;
    c.desc.original_max_position = 64;
    c.desc.max_position = 256;
    c.desc.low_freq_factor = 1;
    c.desc.high_freq_factor = 4;
    c.desc.short_factor = c.desc.long_factor = factors;
    c.desc.n_factors = D / 2;
    return c;
}

UNIT(rotated_rows)
{
    LEGAL(rope, (void)0);
    LEGAL(rope, c.y.data = x_data); /* in place */
    LEGAL(rope, c.positions.rank = 1; c.positions.shape[0] = L;
          c.positions.stride[0] = 1);
    REFUSED(rope, ATTN_E_DTYPE, "x", c.x = NO_INPUT);
    REFUSED(rope, ATTN_E_DTYPE, "x", c.x.dtype = ATTN_I32);
    REFUSED(rope, ATTN_E_ARG, "x", c.x.data = NULL);
    REFUSED(rope, ATTN_E_SHAPE, "x", c.x.rank = 1);
    REFUSED(rope, ATTN_E_SHAPE, "y", c.y.rank = 3);
    REFUSED(rope, ATTN_E_SHAPE, "y", c.y.shape[3]--);
    REFUSED(rope, ATTN_E_DTYPE, "y", c.y.dtype = ATTN_F64);
    REFUSED(rope, ATTN_E_ARG, "y", c.y.data = NULL);
    REFUSED(rope, ATTN_E_ARG, "y", c.y.stride[3] = 0);
    REFUSED(rope, ATTN_E_ARG, "y", c.x.data = out[0] + sizeof(float));
    REFUSED(rope, ATTN_E_ARG, "y", c.x = attn_in(c.y); c.x.stride[3] = -1;
            c.x.data = out[0] + sizeof(float) * (D - 1));
    REFUSED(rope, ATTN_E_ARG, "y", c.positions.data = out[0]);
    REFUSED(rope, ATTN_E_DTYPE, "positions", c.positions = NO_INPUT);
    REFUSED(rope, ATTN_E_DTYPE, "positions", c.positions.dtype = ATTN_F32);
    REFUSED(rope, ATTN_E_SHAPE, "positions", c.positions.shape[0] = 1);
    REFUSED(rope, ATTN_E_SHAPE, "positions", c.positions.shape[1]--);
    REFUSED(rope, ATTN_E_SHAPE, "positions", c.positions.rank = 3);
    REFUSED(rope, ATTN_E_ARG, "positions", c.positions.data = NULL);
}

UNIT(rotations)
{
    attn_diag diag;
    const rope_call legal = rope_legal();

    assert_int_equal(
        attn_rope(NULL, legal.x, legal.positions, legal.y, &diag),
        ATTN_E_ARG);
    assert_string_equal(diag.field, "desc");
    REFUSED(rope, ATTN_E_ARG, "size", c.desc.size--);
    REFUSED(rope, ATTN_E_ARG, "scaling",
            c.desc.scaling = (attn_rope_scaling)7);
    REFUSED(rope, ATTN_E_SHAPE, "rotary_dim", c.desc.rotary_dim = 3);
    REFUSED(rope, ATTN_E_SHAPE, "rotary_dim", c.desc.rotary_dim = -2);
    REFUSED(rope, ATTN_E_SHAPE, "rotary_dim", c.desc.rotary_dim = D + 2);
    REFUSED(rope, ATTN_E_SHAPE, "rotary_dim", c.x.shape[3]--;
            c.y.shape[3]--); /* odd dim */
    REFUSED(rope, ATTN_E_ARG, "base", c.desc.base = 0);
    REFUSED(rope, ATTN_E_ARG, "base", c.desc.base = (double)INFINITY);
    REFUSED(rope, ATTN_E_ARG, "seq_len", c.desc.seq_len = -1);
    REFUSED(rope, ATTN_E_ARG, "attention_factor",
            c.desc.attention_factor = (double)NAN);
}

UNIT(scalings)
{
    for (int scaling = 0; scaling <= ATTN_ROPE_LLAMA3; scaling++)
        LEGAL(scaled, c.desc.scaling = (attn_rope_scaling)scaling);
    for (int scaling = 1; scaling <= ATTN_ROPE_LLAMA3; scaling++)
        if (scaling != ATTN_ROPE_LONGROPE)
            REFUSED(scaled, ATTN_E_ARG, "factor", c.desc.factor = -1;
                    c.desc.scaling = (attn_rope_scaling)scaling);
    REFUSED(scaled, ATTN_E_ARG, "factor", c.desc.factor = 0.5;
            c.desc.scaling = ATTN_ROPE_DYNAMIC);
    REFUSED(scaled, ATTN_E_ARG, "original_max_position",
            c.desc.original_max_position = c.desc.max_position = 0;
            c.desc.scaling = ATTN_ROPE_YARN);
    REFUSED(scaled, ATTN_E_ARG, "max_position", c.desc.max_position = 0;
            c.desc.scaling = ATTN_ROPE_DYNAMIC);
    REFUSED(scaled, ATTN_E_ARG, "low_freq_factor",
            c.desc.low_freq_factor = 0; c.desc.scaling = ATTN_ROPE_LLAMA3);
    REFUSED(scaled, ATTN_E_ARG, "high_freq_factor",
            c.desc.high_freq_factor = 1; c.desc.scaling = ATTN_ROPE_LLAMA3);
    REFUSED(scaled, ATTN_E_ARG, "short_factor", c.desc.short_factor = NULL;
            c.desc.scaling = ATTN_ROPE_LONGROPE);
    REFUSED(scaled, ATTN_E_ARG, "long_factor", c.desc.long_factor = NULL;
            c.desc.scaling = ATTN_ROPE_LONGROPE);
    REFUSED(scaled, ATTN_E_ARG, "short_factor", factors[1] = 0;
            c.desc.scaling = ATTN_ROPE_LONGROPE);
    REFUSED(scaled, ATTN_E_SHAPE, "n_factors", c.desc.n_factors = 2;
            c.desc.scaling = ATTN_ROPE_LONGROPE);
}

/* ------------------------------------------------------------ dropout mask */

typedef struct mask_call {
    attn_tensor out;
    double p;
    int64_t start[2];
} mask_call;

static mask_call mask_legal(void)
{
    return (mask_call){
        attn_dense(out[0], ATTN_BOOL, 4, (int64_t[]){B, H, L, D}), 0.5,
        {0, 0}};
}

static attn_status mask_run(const void *call, attn_diag *diag)
{
    const mask_call *c = call;

    return attn_dropout_mask(c->out, c->p, 1, 0, c->start, diag);
}

UNIT(masks)
{
    LEGAL(mask, (void)0);
    LEGAL(mask, c.start[1] = (INT64_C(1) << 32) - D);
    REFUSED(mask, ATTN_E_DTYPE, "out", c.out.dtype = ATTN_F32);
    REFUSED(mask, ATTN_E_SHAPE, "out", c.out.rank = 3);
    REFUSED(mask, ATTN_E_ARG, "out", c.out.data = NULL);
    REFUSED(mask, ATTN_E_ARG, "out", c.out.stride[0] = 0);
    REFUSED(mask, ATTN_E_ARG, "p", c.p = -0.1);
    REFUSED(mask, ATTN_E_ARG, "p", c.p = 1.1);
    REFUSED(mask, ATTN_E_ARG, "p", c.p = (double)NAN);
    REFUSED(mask, ATTN_E_OVERFLOW, "start", c.start[0] = -1);
    REFUSED(mask, ATTN_E_OVERFLOW, "start",
            c.start[1] = (INT64_C(1) << 32) - D + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_parts),   cmocka_unit_test(merge_results),
        cmocka_unit_test(appended_rows), cmocka_unit_test(appended_pages),
        cmocka_unit_test(rotated_rows),  cmocka_unit_test(rotations),
        cmocka_unit_test(scalings),      cmocka_unit_test(masks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
