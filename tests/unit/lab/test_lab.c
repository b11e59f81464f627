/* SPDX-License-Identifier: Apache-2.0
 *
 * The experiments: what each conclusion claims must be in the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "attn_lab.h"

static attn_lab_data data;
static attn_lab_result result;

static void run(const char *name)
{
    attn_diag diag;

    assert_int_equal(attn_lab_run(name, &data, &result, &diag), ATTN_OK);
    assert_true(result.n_rows > 0 && result.conclusion[0] != '\0');
}

static double at(int64_t row, int64_t column)
{
    return result.cells[row * result.n_columns + column].number;
}

static const char *word(int64_t row, int64_t column)
{
    return result.cells[row * result.n_columns + column].text;
}

static int setup(void **state)
{
    (void)state;
    attn_lab_data_init(&data);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    attn_lab_free(&result);
    assert_null(result.memory);
    return 0;
}

/* ------------------------------------------------------------- experiments */

static void sharpen_sharpens(void **state)
{
    (void)state;
    for (data.seed = 0; data.seed < 20; data.seed++) {
        run("sharpen");
        for (int64_t i = 0; i < result.n_rows; i++) {
            assert_true(at(i, 2) > at(i, 1)); /* the largest weight */
            assert_true(at(i, 4) < at(i, 3)); /* entropy */
        }
        attn_lab_free(&result);
    }
}

static void sqrt_d_matters_for_large_d(void **state)
{
    (void)state;
    run("sqrt-d");
    assert_int_equal(result.n_rows, 4);
    assert_true(at(0, 0) == 4 && at(2, 0) == 256);
    assert_string_equal(word(2, 1), "1");
    assert_string_equal(word(3, 1), "1/sqrt(d)");
    assert_true(at(2, 2) > 0.999 && at(2, 3) < 1e-20);
    assert_true(at(3, 2) < 0.9 && at(3, 3) > 1e-3);
}

static void empty_row_is_nan_from_the_difference_on(void **state)
{
    (void)state;
    run("empty-row");
    assert_true(at(0, 1) == -INFINITY && at(1, 1) == -INFINITY);
    for (int64_t i = 2; i < 7; i++)
        assert_true(isnan(at(i, 1)));
    assert_true(at(6, 2) == 0);         /* the rule's output */
    assert_true(at(7, 1) == at(7, 2));  /* other rows */
}

static void window_is_a_band(void **state)
{
    double moved = 0;

    (void)state;
    run("window");
    for (int64_t i = 0; i < result.n_rows; i++) {
        assert_true(at(i, 1) == (i < 2 ? 0 : (double)i - 2));
        assert_true(at(i, 2) == (double)i);
        assert_true(at(i, 4) == 0);
        moved += at(i, 5);
    }
    assert_true(moved > 0); /* else the window would do nothing */
    assert_int_equal(result.n_matrices, 2);
    for (int64_t i = 0; i < 8; i++)
        for (int64_t j = 0; j < 8; j++)
            assert_int_equal(result.matrices[0].shown[i * 8 + j],
                             j <= i && j > i - 3);
}

static void only_a_mask_knows_the_order(void **state)
{
    (void)state;
    run("permute");
    /* Outputs of size 1 from sums of 8 products: a few roundings. */
    assert_true(at(0, 1) < 64 * 0x1p-53);
    assert_true(at(1, 1) > 0.1);
}

static void causal_prefixes_keep_their_bits(void **state)
{
    (void)state;
    run("prefix");
    for (int64_t i = 0; i < result.n_rows; i++)
        assert_true(at(i, 1) == 0);
    assert_true(at(0, 2) > 0.1);
    assert_true(at(result.n_rows - 1, 2) == 0);
}

static void first_output_is_first_value(void **state)
{
    (void)state;
    run("first-token");
    for (int64_t c = 0; c < result.n_rows; c++) {
        assert_true(at(c, 1) == at(c, 2));
        assert_true(at(c, 1) != at(c, 3));
    }
}

static void gradients_are_differences(void **state)
{
    double most = 0;

    (void)state;
    run("gradient");
    assert_int_equal(result.n_rows, 3 * 3 + 4 * 3);
    for (int64_t e = 0; e < result.n_rows; e++)
        most = fmax(most, fabs(at(e, 1)));
    /* h = 2^-17: h^2 of the third derivative, 2^-53 / h of the loss. */
    for (int64_t e = 0; e < result.n_rows; e++)
        assert_true(fabs(at(e, 1) - at(e, 2)) < 0x1p-27 * most);
    assert_int_equal(result.n_curves, 1);
    for (int64_t t = 1; t < result.curves[0].n; t++)
        assert_true(result.curves[0].values[t] <
                    result.curves[0].values[t - 1]);
}

static void wrong_heads_betray_themselves(void **state)
{
    (void)state;
    run("heads");
    assert_true(at(0, 1) == 0 && at(0, 4) == 0);
    for (int64_t v = 1; v < 5; v++)
        assert_true(at(v, 1) > 0.1); /* not the right one */
    assert_true(at(3, 2) < 0.9 && at(3, 3) > 1.1); /* sums of rows */
    assert_true(at(2, 4) > 0.01 && at(4, 4) > 0.01); /* see the future */
    assert_int_equal(result.n_matrices, 5);
    for (int64_t v = 0; v < 5; v++)
        for (int64_t i = 0; i < 4; i++)
            for (int64_t j = 0; j < 4; j++)
                assert_int_equal(result.matrices[v].shown[i * 4 + j],
                                 v == 4 ? j >= i : j <= i);
}

static void all_axes_fail_where_sizes_differ(void **state)
{
    (void)state;
    data.len = 5;
    run("heads");
    assert_string_equal(word(1, 5), "an error, as shapes differ");
}

static void above_names_the_keys(void **state)
{
    static const char *const tokens[] = {"the", "cat"};

    (void)state;
    data.len = 2;
    data.tokens = tokens;
    run("above");
    for (int64_t i = 0; i < 2; i++) {
        const double *p = result.matrices[0].values + i * 2;

        assert_int_equal(strstr(word(i, 1), "cat") != NULL, p[1] > 0.1);
        assert_int_equal(strstr(word(i, 1), "the") != NULL, p[0] > 0.1);
    }
}

static void rope_sees_distance_alone(void **state)
{
    (void)state;
    run("rope");
    for (int64_t d = 0; d < result.n_rows; d++)
        assert_true(at(d, 2) - at(d, 1) < 1e-13); /* angles up to 15 */
    assert_true(at(1, 4) - at(1, 3) > 0.1);
}

/* -------------------------------------------------------------------- data */

/* q = k = the corner example; A[2] = 0.2483 0.2483 0.5035. */
static void given_arrays_are_used(void **state)
{
    static const double q[] = {1, 0, 0, 1, 1, 1}, v[] = {10, 0, 0, 10, 5, 5};
    const int64_t shape[2] = {3, 2};

    (void)state;
    data.q = attn_in_dense(q, ATTN_F64, 2, shape);
    data.k = data.q;
    data.v = attn_in_dense(v, ATTN_F64, 2, shape);
    run("above");
    assert_int_equal(result.n_rows, 3);
    assert_string_equal(word(2, 1), "0 (0.25), 1 (0.25), 2 (0.50)");
    attn_lab_free(&result);
    run("gradient");
    assert_string_equal(word(0, 0), "dQ[0,0]");
}

static void x_is_multiplied_by_weights(void **state)
{
    static const float x[] = {1, 0, 0, 2}, w[] = {3, 4, 5, 6};
    const int64_t shape[2] = {2, 2};

    (void)state;
    data.x = attn_in_dense(x, ATTN_F32, 2, shape);
    data.w_v = attn_in_dense(w, ATTN_F32, 2, shape);
    run("first-token"); /* V[0] = w[0] */
    assert_true(at(0, 1) == 3 && at(1, 1) == 4);
}

static void seeds_repeat(void **state)
{
    double first;

    (void)state;
    data.seed = 7;
    run("sharpen");
    first = at(0, 1);
    attn_lab_free(&result);
    run("sharpen");
    assert_true(at(0, 1) == first);
    attn_lab_free(&result);
    data.seed = 8;
    run("sharpen");
    assert_true(at(0, 1) != first);
}

static void refuse(const char *name, attn_status status, const char *field)
{
    attn_diag diag;

    assert_int_equal(attn_lab_run(name, &data, &result, &diag), status);
    assert_string_equal(diag.field, field);
    assert_null(result.memory);
    setup(NULL);
}

static void bad_data_get_a_sentence(void **state)
{
    static const double q[8];
    const int64_t shape[2] = {2, 4}, other[2] = {4, 2};
    const attn_input a = attn_in_dense(q, ATTN_F64, 2, shape);

    (void)state;
    refuse("nothing", ATTN_E_ARG, "name");
    data.q = a;
    refuse("window", ATTN_E_ARG, "q"); /* k and v are missing */
    data.q = data.k = data.v = data.x = a;
    refuse("window", ATTN_E_ARG, "x");
    data.q = data.v = a;
    data.k = attn_in_dense(q, ATTN_F64, 2, other);
    refuse("window", ATTN_E_SHAPE, "k");
    data.q = data.k = data.v = attn_in_dense(q, ATTN_I64, 2, shape);
    refuse("window", ATTN_E_DTYPE, "q");
    data.w_q = a;
    refuse("window", ATTN_E_ARG, "x");
    data.len = 4097;
    refuse("window", ATTN_E_LIMIT, "len");
    data.dim = 3;
    refuse("rope", ATTN_E_SHAPE, "dim");
    data.heads = 3;
    data.q = data.k = data.v = a;
    refuse("heads", ATTN_E_SHAPE, "heads");
    data.len = data.dim = 64;
    refuse("gradient", ATTN_E_LIMIT, "len");
    data.size = 0;
    refuse("window", ATTN_E_ARG, "data");
}

/* ------------------------------------------------------------------ memory */

static int64_t allowed, alive;

static void *failing(void *p, size_t size)
{
    if (allowed-- <= 0)
        return NULL;
    alive += p == NULL;
    return realloc(p, size);
}

static void counting_free(void *p)
{
    alive -= p != NULL;
    free(p);
}

static void every_allocation_may_fail(void **state)
{
    attn_diag diag;

    (void)state;
    data.len = data.dim = 4;
    attn_set_allocator(failing, counting_free);
    for (int64_t i = 0; i < attn_lab_count(); i++)
        for (int64_t k = 0;; k += k < 60 ? 1 : 37) {
            attn_status status;

            allowed = k;
            status = attn_lab_run(attn_lab_name(i), &data, &result, &diag);
            if (status == ATTN_OK) {
                assert_true(k > 0);
                attn_lab_free(&result);
                assert_int_equal(alive, 0);
                break;
            }
            assert_int_equal(status, ATTN_E_NOMEM);
            assert_int_equal(diag.status, ATTN_E_NOMEM);
            assert_null(result.memory);
            assert_int_equal(alive, 0);
        }
    attn_set_allocator(NULL, NULL);
}

static void each_has_a_name(void **state)
{
    (void)state;
    assert_int_equal(attn_lab_count(), 11);
    for (int64_t i = 0; i < attn_lab_count(); i++) {
        assert_true(attn_lab_about(i)[0] != '\0');
        run(attn_lab_name(i));
        attn_lab_free(&result);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sharpen_sharpens),
        TEST(sqrt_d_matters_for_large_d),
        TEST(empty_row_is_nan_from_the_difference_on),
        TEST(window_is_a_band),
        TEST(only_a_mask_knows_the_order),
        TEST(causal_prefixes_keep_their_bits),
        TEST(first_output_is_first_value),
        TEST(gradients_are_differences),
        TEST(wrong_heads_betray_themselves),
        TEST(all_axes_fail_where_sizes_differ),
        TEST(above_names_the_keys),
        TEST(rope_sees_distance_alone),
        TEST(given_arrays_are_used),
        TEST(x_is_multiplied_by_weights),
        TEST(seeds_repeat),
        TEST(bad_data_get_a_sentence),
        TEST(every_allocation_may_fail),
        TEST(each_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
