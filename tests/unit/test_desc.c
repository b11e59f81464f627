/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of a descriptor, one line each: the change that breaks it, the
 * status, the field. And what is legal although it looks odd. */
#include "plan/plan.h"

#include "refusal.h"

#include <math.h>
#include <string.h>

static attn_desc plain(void)
{
    attn_desc desc;

    attn_desc_init(&desc, ATTN_F32, 2, 8, 4, 16, 24, 64, 32);
    return desc;
}

static void refuse(const attn_desc *desc, attn_status status,
                   const char *field, const char *change)
{
    attn_plan plan;
    attn_diag diag;
    attn_status got;

    memset(&diag, 0xa5, sizeof diag);
    got = attn_plan_init(&plan, desc, &diag);
    expect_refused(got, &diag, status, field, change);
    assert_int_equal(attn_plan_init(&plan, desc, NULL), status);
}

static void accept(const attn_desc *desc, const char *change)
{
    attn_plan plan;
    attn_diag diag;

    expect_accepted(attn_plan_init(&plan, desc, &diag), &diag, change);
    assert_int_equal(diag.status, ATTN_OK);
    assert_string_equal(diag.message, "");
}

#define REFUSED(status, field, change)                                        \
    do {                                                                      \
        attn_desc d = plain();                                                \
        change;                                                               \
        refuse(&d, (status), (field), #change);                               \
    } while (0)

#define LEGAL(change)                                                         \
    do {                                                                      \
        attn_desc d = plain();                                                \
        change;                                                               \
        accept(&d, #change);                                                  \
    } while (0)

UNIT(init_fills_every_field_with_its_default)
{
    attn_desc d;

    memset(&d, 0xa5, sizeof d);
    attn_desc_init(&d, ATTN_BF16, 2, 8, 4, 16, 24, 64, 32);
    assert_int_equal(d.size, sizeof d);
    assert_int_equal(d.inputs, 0);
    assert_int_equal(d.dtype, ATTN_BF16);
    assert_int_equal(d.kv_dtype, ATTN_BF16);
    assert_int_equal(d.causal, ATTN_CAUSAL_NONE);
    assert_int_equal(d.empty_rows, ATTN_EMPTY_ZERO);
    assert_int_equal(d.precision, ATTN_PRECISION_STANDARD);
    assert_int_equal(d.isa_limit, ATTN_ISA_BEST);
    assert_true(d.batch == 2 && d.heads_q == 8 && d.heads_kv == 4);
    assert_true(d.len_q == 16 && d.len_k == 24 && d.dim_qk == 64);
    assert_true(d.dim_v == 32 && d.total_q == 0);
    assert_true(d.window_left == -1 && d.window_right == -1);
    assert_true(d.scale == 0.125);
    assert_true(d.softcap == 0 && d.dropout_p == 0);
    attn_desc_init(&d, ATTN_F32, 1, 1, 1, 1, 1, 0, 1);
    assert_true(d.scale == 1);
}

UNIT(pointers_must_be_there)
{
    const attn_desc d = plain();
    attn_plan plan;
    attn_diag diag;

    assert_int_equal(attn_plan_init(NULL, &d, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "plan");
    assert_int_equal(attn_plan_init(&plan, NULL, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "desc");
}

UNIT(types_and_choices)
{
    REFUSED(ATTN_E_ARG, "size", d.size = 0);
    REFUSED(ATTN_E_ARG, "size", d.size -= 1);
    REFUSED(ATTN_E_DTYPE, "dtype", d.dtype = d.kv_dtype = ATTN_NONE);
    REFUSED(ATTN_E_DTYPE, "dtype", d.dtype = d.kv_dtype = ATTN_BOOL);
    REFUSED(ATTN_E_DTYPE, "dtype", d.dtype = d.kv_dtype = ATTN_I32);
    REFUSED(ATTN_E_DTYPE, "dtype", d.dtype = (attn_dtype)8);
    REFUSED(ATTN_E_DTYPE, "dtype", d.dtype = (attn_dtype)-1);
    REFUSED(ATTN_E_DTYPE, "kv_dtype", d.kv_dtype = ATTN_I64);
    REFUSED(ATTN_E_UNSUPPORTED, "kv_dtype", d.kv_dtype = ATTN_BF16);
    REFUSED(ATTN_E_ARG, "causal", d.causal = (attn_causal)3);
    REFUSED(ATTN_E_ARG, "causal", d.causal = (attn_causal)-1);
    REFUSED(ATTN_E_ARG, "empty_rows", d.empty_rows = (attn_empty_rows)2);
    REFUSED(ATTN_E_ARG, "precision", d.precision = (attn_precision)2);
    REFUSED(ATTN_E_ARG, "isa_limit", d.isa_limit = (attn_isa)5);
    REFUSED(ATTN_E_ARG, "isa_limit", d.isa_limit = (attn_isa)-1);
}

UNIT(sizes)
{
    REFUSED(ATTN_E_SHAPE, "batch", d.batch = -1);
    REFUSED(ATTN_E_SHAPE, "heads_q", d.heads_q = -1);
    REFUSED(ATTN_E_SHAPE, "heads_kv", d.heads_kv = -1);
    REFUSED(ATTN_E_SHAPE, "heads_kv", d.heads_kv = 0);
    REFUSED(ATTN_E_SHAPE, "heads_kv", d.heads_kv = 3);
    REFUSED(ATTN_E_SHAPE, "heads_kv", d.heads_kv = 16);
    REFUSED(ATTN_E_SHAPE, "len_q", d.len_q = -1);
    REFUSED(ATTN_E_SHAPE, "len_k", d.len_k = INT64_MIN);
    REFUSED(ATTN_E_SHAPE, "dim_qk", d.dim_qk = -1);
    REFUSED(ATTN_E_SHAPE, "dim_v", d.dim_v = -1);
    REFUSED(ATTN_E_SHAPE, "total_q",
            (d.total_q = -1, d.inputs = ATTN_WITH_VARLEN));
    REFUSED(ATTN_E_OVERFLOW, "batch", d.batch = INT64_MAX);
    REFUSED(ATTN_E_OVERFLOW, "heads_q", d.heads_q = INT64_MAX);
    REFUSED(ATTN_E_OVERFLOW, "len_q", d.len_q = INT64_MAX);
    REFUSED(ATTN_E_OVERFLOW, "len_k", d.len_k = INT64_MAX);
    REFUSED(ATTN_E_OVERFLOW, "dim_qk", d.dim_qk = INT64_MAX);
    REFUSED(ATTN_E_OVERFLOW, "dim_v", d.dim_v = INT64_MAX);
    /* Each fits, the product does not. */
    REFUSED(ATTN_E_OVERFLOW, "batch", d.batch = d.len_q = INT64_C(1) << 32);
    REFUSED(ATTN_E_OVERFLOW, "batch", d.len_k = INT64_C(1) << 60);
    REFUSED(ATTN_E_OVERFLOW, "dim_qk", d.dim_qk = INT64_C(1) << 60);
    REFUSED(ATTN_E_OVERFLOW, "dim_qk", d.dim_v = INT64_C(1) << 60);
}

UNIT(inputs)
{
    REFUSED(ATTN_E_ARG, "inputs", d.inputs = 0x100);
    REFUSED(ATTN_E_ARG, "inputs", d.inputs = UINT32_C(0x80000000));
    REFUSED(ATTN_E_UNSUPPORTED, "mask",
            d.inputs = ATTN_WITH_VARLEN | ATTN_WITH_MASK);
    REFUSED(ATTN_E_UNSUPPORTED, "bias",
            d.inputs = ATTN_WITH_VARLEN | ATTN_WITH_BIAS);
    REFUSED(ATTN_E_MISMATCH, "k_lengths", d.inputs = ATTN_WITH_PAGES);
    REFUSED(ATTN_E_MISMATCH, "total_q", d.total_q = 32);
}

UNIT(numbers)
{
    REFUSED(ATTN_E_ARG, "window_left", d.window_left = -2);
    REFUSED(ATTN_E_ARG, "window_left", d.window_left = INT64_MAX);
    REFUSED(ATTN_E_ARG, "window_right", d.window_right = INT64_MIN);
    REFUSED(ATTN_E_ARG, "window_right",
            d.window_right = (INT64_C(1) << 62) + 1);
    REFUSED(ATTN_E_ARG, "scale", d.scale = (double)NAN);
    REFUSED(ATTN_E_ARG, "softcap", d.softcap = -1);
    REFUSED(ATTN_E_ARG, "softcap", d.softcap = (double)NAN);
    REFUSED(ATTN_E_ARG, "softcap", d.softcap = (double)INFINITY);
    REFUSED(ATTN_E_ARG, "dropout_p", d.dropout_p = -0x1p-60);
    REFUSED(ATTN_E_ARG, "dropout_p", d.dropout_p = 1 + 0x1p-52);
    REFUSED(ATTN_E_ARG, "dropout_p", d.dropout_p = (double)NAN);
}

/* The counter's words have 32 bits. */
UNIT(dropout_reaches_two_to_the_32)
{
    const int64_t most = INT64_C(1) << 32;

    LEGAL((d.dropout_p = 0.5, d.len_q = most));
    LEGAL((d.dropout_p = 0.5, d.len_k = most));
    LEGAL((d.dropout_p = 0.5, d.batch = most / 8));
    LEGAL(d.len_q = most + 1);
    REFUSED(ATTN_E_OVERFLOW, "len_q",
            (d.dropout_p = 0.5, d.len_q = most + 1));
    REFUSED(ATTN_E_OVERFLOW, "len_k",
            (d.dropout_p = 0.5, d.len_k = most + 1));
    REFUSED(ATTN_E_OVERFLOW, "batch",
            (d.dropout_p = 0.5, d.batch = most / 8 + 1));
}

UNIT(odd_but_legal)
{
    LEGAL(d.batch = 0);
    LEGAL(d.heads_q = d.heads_kv = 0);
    LEGAL(d.heads_q = 0);
    LEGAL(d.len_q = 0);
    LEGAL(d.len_k = 0);
    LEGAL(d.dim_qk = 0);
    LEGAL(d.dim_v = 0);
    LEGAL(d.heads_kv = 1);
    LEGAL(d.scale = 0);
    LEGAL(d.scale = -3);
    LEGAL(d.scale = (double)INFINITY);
    LEGAL(d.softcap = 0x1p-1074);
    LEGAL(d.dropout_p = 1);
    LEGAL(d.window_left = 0);
    LEGAL(d.window_left = d.window_right = INT64_C(1) << 62);
    LEGAL(d.inputs = ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS);
    LEGAL((d.inputs = ATTN_WITH_VARLEN, d.total_q = 17));
    LEGAL(d.inputs = ATTN_WITH_VARLEN);
    LEGAL(d.inputs = ATTN_WITH_VARLEN | ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS);
    LEGAL(d.inputs = 0xff & ~(ATTN_WITH_VARLEN));
    for (int isa = ATTN_ISA_BEST; isa <= ATTN_ISA_AMX; isa++)
        LEGAL(d.isa_limit = (attn_isa)isa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_fills_every_field_with_its_default),
        cmocka_unit_test(pointers_must_be_there),
        cmocka_unit_test(types_and_choices),
        cmocka_unit_test(sizes),
        cmocka_unit_test(inputs),
        cmocka_unit_test(numbers),
        cmocka_unit_test(dropout_reaches_two_to_the_32),
        cmocka_unit_test(odd_but_legal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
