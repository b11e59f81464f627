/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of attn_gemm, one line each: the change that breaks it, the
 * status, the field; and that no byte of c was written. Before the change, the
 * call succeeds. */
#include "attn.h"

#include "refusal.h"

#include <stdbool.h>
#include <string.h>

enum { BATCH = 2, M = 3, N = 4, K = 5 };

static _Alignas(64) float a_data[BATCH * M * K], b_data[BATCH * K * N];
static _Alignas(64) double d_data[BATCH * M * N];
static _Alignas(64) unsigned char c_data[1024], memory[1 << 20];

typedef struct call {
    attn_gemm_args args;
    attn_exec exec;
} call;

static call batched(void)
{
    call c;

    attn_gemm_init(&c.args);
    c.args.a = attn_in_dense(a_data, ATTN_F32, 3, (int64_t[]){BATCH, M, K});
    c.args.b = attn_in_dense(b_data, ATTN_F32, 3, (int64_t[]){BATCH, K, N});
    c.args.d = attn_in_dense(d_data, ATTN_F64, 3, (int64_t[]){BATCH, M, N});
    c.args.c = attn_dense(c_data, ATTN_F32, 3, (int64_t[]){BATCH, M, N});
    attn_exec_init(&c.exec);
    c.exec.workspace = memory;
    c.exec.workspace_size = sizeof memory;
    return c;
}

static call summed(void)
{
    call c = batched();

    c.args.c = attn_dense(c_data, ATTN_F32, 2, (int64_t[]){M, N});
    c.args.d = attn_in_dense(d_data, ATTN_F64, 1, (int64_t[]){N});
    return c;
}

static call plain(void)
{
    call c = summed();

    c.args.a = attn_in_dense(a_data, ATTN_F32, 2, (int64_t[]){M, K});
    c.args.b = attn_in_dense(b_data, ATTN_F32, 2, (int64_t[]){K, N});
    c.args.d = (attn_input){0};
    return c;
}

static void refuse(const call *c, attn_status status, const char *field,
                   const char *change)
{
    attn_diag diag;
    attn_status got;

    memset(c_data, UNTOUCHED, sizeof c_data);
    got = attn_gemm(&c->args, &c->exec, &diag);
    expect_refused(got, &diag, status, field, change);
    expect_untouched(c_data, sizeof c_data, change);
    assert_int_equal(attn_gemm(&c->args, &c->exec, NULL), status);
}

static void accept(const call *c, const char *change)
{
    attn_diag diag;

    expect_accepted(attn_gemm(&c->args, &c->exec, &diag), &diag, change);
}

#define WITH(make, change, what)                                              \
    do {                                                                      \
        call c = make();                                                      \
        attn_gemm_args *g = &c.args;                                          \
        (void)g;                                                              \
        change;                                                               \
        what;                                                                 \
    } while (0)
#define REFUSED(make, status, field, change)                                  \
    WITH(make, change, refuse(&c, (status), (field), #make ": " #change))
#define LEGAL(make, change)                                                   \
    WITH(make, change, accept(&c, #make ": " #change))

#define NO_INPUT ((attn_input){0})

UNIT(legal_calls)
{
    LEGAL(batched, (void)0);
    LEGAL(summed, (void)0);
    LEGAL(plain, (void)0);
    LEGAL(plain, g->isa_limit = ATTN_ISA_SCALAR);
    LEGAL(plain, g->a.stride[0] = g->b.stride[1] = 0);
    LEGAL(plain, g->c.dtype = ATTN_F64);
    LEGAL(batched, g->c.dtype = ATTN_F64; g->d = attn_in(g->c));
    LEGAL(plain, g->a.shape[1] = g->b.shape[0] = 0; g->a.data = NULL);
    LEGAL(plain, g->a.shape[0] = g->c.shape[0] = 0; g->c.data = NULL);
    /* Sizes beside an empty axis may be anything. */
    LEGAL(plain, g->a.shape[0] = g->c.shape[0] = INT64_MAX;
          g->a.shape[1] = g->b.shape[0] = 0;
          g->b.shape[1] = g->c.shape[1] = 0);
}

UNIT(structs_and_memory)
{
    attn_diag diag;
    attn_workspace need;
    const call first = plain();

    assert_int_equal(attn_gemm(NULL, &first.exec, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "args");
    assert_int_equal(attn_gemm(&first.args, NULL, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "exec");
    REFUSED(plain, ATTN_E_ARG, "size", g->size--);
    REFUSED(plain, ATTN_E_ARG, "isa_limit", g->isa_limit = (attn_isa)9);
    REFUSED(plain, ATTN_E_ARG, "size", c.exec.size--);
    REFUSED(plain, ATTN_E_ARG, "threads", c.exec.threads = 0);
    REFUSED(plain, ATTN_E_ARG, "threads", c.exec.threads = 1025);
    assert_int_equal(attn_gemm_workspace(ATTN_F32, 2, &need, &diag), ATTN_OK);
    assert_true(need.size == need.shared + 2 * need.slot);
    REFUSED(plain, ATTN_E_WORKSPACE, "workspace",
            c.exec.threads = 2;
            c.exec.workspace_size = need.size - 1);
    LEGAL(plain, c.exec.threads = 2; c.exec.workspace_size = need.size);
    REFUSED(plain, ATTN_E_WORKSPACE, "workspace", c.exec.workspace = NULL);
    REFUSED(plain, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace = memory + 4);
    assert_int_equal(attn_gemm_workspace(ATTN_I32, 1, &need, &diag),
                     ATTN_E_DTYPE);
    assert_int_equal(attn_gemm_workspace(ATTN_F32, 0, &need, &diag),
                     ATTN_E_ARG);
    assert_int_equal(attn_gemm_workspace(ATTN_F32, 1, NULL, &diag),
                     ATTN_E_ARG);
}

UNIT(operands)
{
    REFUSED(plain, ATTN_E_ARG, "a", g->a = NO_INPUT);
    REFUSED(plain, ATTN_E_ARG, "a", g->a.data = NULL);
    REFUSED(plain, ATTN_E_DTYPE, "a", g->a.dtype = ATTN_I32);
    REFUSED(plain, ATTN_E_SHAPE, "a", g->a.rank = 1);
    REFUSED(plain, ATTN_E_SHAPE, "a", g->a.rank = 9);
    REFUSED(plain, ATTN_E_SHAPE, "a", g->a.shape[0] = -1);
    REFUSED(plain, ATTN_E_OVERFLOW, "a", g->a.stride[0] = INT64_MAX);
    REFUSED(plain, ATTN_E_ARG, "b", g->b = NO_INPUT);
    REFUSED(plain, ATTN_E_DTYPE, "b", g->b.dtype = ATTN_BF16);
    REFUSED(plain, ATTN_E_SHAPE, "b", g->b.shape[0]--);
    REFUSED(batched, ATTN_E_SHAPE, "b", g->b.shape[0] = 1);
}

UNIT(what_is_added)
{
    REFUSED(batched, ATTN_E_DTYPE, "d", g->d.dtype = ATTN_F16);
    REFUSED(batched, ATTN_E_SHAPE, "d", g->d.shape[1]--);
    REFUSED(summed, ATTN_E_SHAPE, "d", g->d.shape[0]--);
    REFUSED(summed, ATTN_E_SHAPE, "d",
            g->d = attn_in_dense(d_data, ATTN_F64, 3,
                                 (int64_t[]){BATCH, M, N}));
    LEGAL(batched, g->d.shape[0] = g->d.shape[2] = 1);
}

UNIT(results)
{
    REFUSED(plain, ATTN_E_ARG, "c", g->c.dtype = ATTN_NONE);
    REFUSED(plain, ATTN_E_DTYPE, "c", g->c.dtype = ATTN_F16);
    REFUSED(plain, ATTN_E_SHAPE, "c", g->c.shape[1]++);
    REFUSED(plain, ATTN_E_SHAPE, "c", g->c.rank = 1);
    REFUSED(batched, ATTN_E_SHAPE, "c", g->c.shape[0] = 1);
    REFUSED(plain, ATTN_E_ARG, "c", g->c.stride[0] = 0);
    REFUSED(plain, ATTN_E_ARG, "c", g->c.stride[0] = N - 1);
    REFUSED(plain, ATTN_E_ARG, "c", g->a.data = c_data + 8);
    REFUSED(plain, ATTN_E_ARG, "c", g->b.data = c_data);
    REFUSED(batched, ATTN_E_ARG, "c", g->d.data = c_data);
    REFUSED(batched, ATTN_E_ARG, "c", g->d = attn_in(g->c);
            g->d.data = c_data + sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_calls),
        cmocka_unit_test(structs_and_memory),
        cmocka_unit_test(operands),
        cmocka_unit_test(what_is_added),
        cmocka_unit_test(results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
