/* SPDX-License-Identifier: Apache-2.0
 *
 * An array that owns its memory: made, freed, its elements as numbers, and
 * converted between the floating-point types. */
#include "attn_io.h"

#include <math.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/half.h"

/* Zeros, row-major. Zero elements and zero axes (a number) are arrays too. The
 * count is found before memory is asked for. */
attn_status attn_array_init(attn_array *array, const char *name,
                            attn_dtype dtype, int32_t rank,
                            const int64_t *shape, attn_diag *diag)
{
    int64_t count = 1;

    ATTN__REQUIRE(array, diag, ATTN_E_ARG, "array", "must not be NULL");
    memset(array, 0, sizeof *array);
    ATTN__REQUIRE(name, diag, ATTN_E_ARG, "name", "must not be NULL");
    ATTN__REQUIRE(attn_dtype_size(dtype) > 0, diag, ATTN_E_DTYPE, name,
                  "type %d has no elements", (int)dtype);
    ATTN__REQUIRE(rank >= 0 && rank <= ATTN_ARRAY_MAX_RANK, diag, ATTN_E_SHAPE,
                  name, "rank %d is not in 0 to %d", (int)rank,
                  ATTN_ARRAY_MAX_RANK);
    for (int32_t a = 0; a < rank; a++) {
        ATTN__REQUIRE(shape[a] >= 0, diag, ATTN_E_SHAPE, name,
                      "shape[%d] = %lld is negative", (int)a,
                      (long long)shape[a]);
        ATTN__REQUIRE(attn__mul_i64(count, shape[a], &count), diag,
                      ATTN_E_OVERFLOW, name, "has more than 2^63 elements");
    }
    array->data = attn__calloc((size_t)count, attn_dtype_size(dtype));
    array->name = attn__strdup(name);
    if (!array->data || !array->name) {
        attn_array_free(array);
        return attn__fail(diag, ATTN_E_NOMEM, name,
                          "no memory for %lld elements of type %s",
                          (long long)count, attn_dtype_name(dtype));
    }
    array->dtype = dtype;
    array->rank = rank;
    for (int32_t a = 0; a < rank; a++)
        array->shape[a] = shape[a];
    array->count = count;
    return attn__ok(diag);
}

void attn_array_free(attn_array *array)
{
    if (!array)
        return;
    attn__free(array->name);
    attn__free(array->data);
    attn__free(array->text);
    memset(array, 0, sizeof *array);
}

/* Element `index` in row-major order as a double: exact for all types but i64
 * above 2^53. Text is NaN. */
double attn_array_value(const attn_array *array, int64_t index)
{
    const void *data = array->data;

    switch (array->dtype) {
    case ATTN_F64:
        return ((const double *)data)[index];
    case ATTN_F32:
        return ((const float *)data)[index];
    case ATTN_BF16:
        return attn__f32_of_bf16(((const uint16_t *)data)[index]);
    case ATTN_F16:
        return attn__f32_of_f16(((const uint16_t *)data)[index]);
    case ATTN_BOOL:
        return ((const uint8_t *)data)[index];
    case ATTN_I32:
        return ((const int32_t *)data)[index];
    case ATTN_I64:
        return (double)((const int64_t *)data)[index];
    default:
        return NAN;
    }
}

/* To one of the four floating-point types, rounded once, to nearest even; from
 * fp64, since by way of f32 a 16-bit value would be rounded twice. */
static void store(void *data, attn_dtype dtype, int64_t index, double value)
{
    if (dtype == ATTN_F64)
        ((double *)data)[index] = value;
    else if (dtype == ATTN_F32)
        ((float *)data)[index] = (float)value;
    else if (dtype == ATTN_BF16)
        ((uint16_t *)data)[index] = attn__bf16_of_f64(value);
    else
        ((uint16_t *)data)[index] = attn__f16_of_f64(value);
}

attn_status attn_array_convert(attn_array *array, attn_dtype dtype,
                               attn_diag *diag)
{
    void *data;

    ATTN__REQUIRE(array, diag, ATTN_E_ARG, "array", "must not be NULL");
    if (array->dtype == dtype && dtype != ATTN_NONE)
        return attn__ok(diag);
    ATTN__REQUIRE(array->dtype != ATTN_NONE && dtype >= ATTN_F64 &&
                      dtype <= ATTN_F16,
                  diag, ATTN_E_DTYPE, array->name ? array->name : "array",
                  "has type %s and cannot become %s",
                  array->dtype == ATTN_NONE ? "text"
                                            : attn_dtype_name(array->dtype),
                  attn_dtype_name(dtype));
    /* Into new memory: on failure the array is what it was. */
    data = attn__realloc_array(NULL, (size_t)array->count,
                               attn_dtype_size(dtype));
    ATTN__REQUIRE(data, diag, ATTN_E_NOMEM,
                  array->name ? array->name : "array",
                  "no memory for %lld elements", (long long)array->count);
    for (int64_t i = 0; i < array->count; i++)
        store(data, dtype, i, attn_array_value(array, i));
    attn__free(array->data);
    array->data = data;
    array->dtype = dtype;
    return attn__ok(diag);
}
