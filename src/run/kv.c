/* SPDX-License-Identifier: Apache-2.0
 *
 * Appending rows to a KV cache, contiguous or paged. Rows move as bytes; the
 * lengths stay the caller's. */
#include "core/diag.h"
#include "run/checker.h"

#include <string.h>

typedef struct append {
    attn_tensor cache;
    attn_input rows, lengths, table;
    bool paged;
    int64_t room; /* rows that one batch entry can hold */
} append;

/* Rows that batch entry b has already: where its new ones begin. */
static int64_t length_at(const append *a, int64_t b)
{
    return attn__load_index(a->lengths.data, a->lengths.dtype,
                            b * a->lengths.stride[0]);
}

/* The page that holds rows t * page_size and on of batch entry b. */
static int64_t page_at(const append *a, int64_t b, int64_t t)
{
    return attn__load_index(a->table.data, a->table.dtype,
                            b * a->table.stride[0] + t * a->table.stride[1]);
}

/* (B, H_kv, capacity, D), or pages (pages, H_kv, page_size, D). Cache and rows
 * have one type: quantising is for a call of its own. */
static attn_status check_cache(append *a, attn_diag *diag)
{
    const attn_input cache = attn_in(a->cache);
    const attn_input *rows = &a->rows;

    ATTN__TRY(attn__check_view(&cache, "cache", diag));
    ATTN__TRY(attn__check_view(rows, "rows", diag));
    ATTN__REQUIRE(rows->rank == 4, diag, ATTN_E_SHAPE, "rows",
                  "has rank %d, must be (batch, heads_kv, n, dim)",
                  (int)rows->rank);
    ATTN__REQUIRE(cache.dtype == rows->dtype, diag, ATTN_E_DTYPE, "rows",
                  "is %s, the cache is %s", attn_dtype_name(rows->dtype),
                  attn_dtype_name(cache.dtype));
    ATTN__TRY(attn__check_shape(
        &cache, "cache", 4,
        (int64_t[]){a->paged ? cache.shape[0] : rows->shape[0],
                    rows->shape[1], cache.shape[2], rows->shape[3]},
        diag));
    ATTN__REQUIRE(!attn__self_overlaps(&cache), diag, ATTN_E_ARG, "cache",
                  "is an output whose strides give elements one address");
    ATTN__REQUIRE(!attn__overlaps(&cache, rows), diag, ATTN_E_ARG, "cache",
                  "shares memory with rows");
    return ATTN_OK;
}

/* Pages may be fewer than the table has entries for; what a sequence can hold
 * is as many pages as its row of the table names. */
static attn_status check_table(append *a, attn_diag *diag)
{
    const attn_input cache = attn_in(a->cache);

    a->room = cache.shape[2];
    if (!a->paged)
        return ATTN_OK;
    ATTN__REQUIRE(a->table.dtype == ATTN_I32, diag, ATTN_E_DTYPE,
                  "block_table", "is %s, must be i32",
                  attn_dtype_name(a->table.dtype));
    ATTN__TRY(attn__check_shape(
        &a->table, "block_table", 2,
        (int64_t[]){a->rows.shape[0], a->table.shape[1]}, diag));
    ATTN__REQUIRE(!attn__overlaps(&cache, &a->table), diag, ATTN_E_ARG,
                  "cache", "shares memory with block_table");
    ATTN__REQUIRE(attn__mul_i64(cache.shape[2], a->table.shape[1], &a->room),
                  diag, ATTN_E_OVERFLOW, "block_table",
                  "pages times page size overflows");
    return ATTN_OK;
}

/* All entries before any row is copied: a cache that is full for one batch
 * entry is left as it was for all. */
static attn_status check_lengths(const append *a, attn_diag *diag)
{
    const attn_input cache = attn_in(a->cache);
    const int64_t n = a->rows.shape[2];

    ATTN__REQUIRE(attn__is_index(a->lengths.dtype), diag, ATTN_E_DTYPE,
                  "lengths", "is %s, must be i32 or i64",
                  attn_dtype_name(a->lengths.dtype));
    ATTN__TRY(attn__check_shape(&a->lengths, "lengths", 1, a->rows.shape,
                                diag));
    ATTN__REQUIRE(!attn__overlaps(&cache, &a->lengths), diag, ATTN_E_ARG,
                  "cache", "shares memory with lengths");
    for (int64_t b = 0; b < a->rows.shape[0]; b++) {
        const int64_t length = length_at(a, b);

        ATTN__REQUIRE(length >= 0 && length <= a->room - n, diag, ATTN_E_ARG,
                      "lengths", "[%lld] is %lld: %lld rows more do not fit "
                      "in %lld", (long long)b, (long long)length,
                      (long long)n, (long long)a->room);
    }
    return ATTN_OK;
}

/* Only pages that the new rows touch: what lies before them has been read or
 * written already, what comes behind is not there yet. */
static attn_status check_pages(const append *a, attn_diag *diag)
{
    const int64_t page_size = a->cache.shape[2];

    if (!a->paged || a->rows.shape[2] == 0)
        return ATTN_OK;
    for (int64_t b = 0; b < a->rows.shape[0]; b++) {
        const int64_t first = length_at(a, b) / page_size;
        const int64_t last =
            (length_at(a, b) + a->rows.shape[2] - 1) / page_size;

        for (int64_t t = first; t <= last; t++)
            ATTN__REQUIRE(page_at(a, b, t) >= 0 &&
                              page_at(a, b, t) < a->cache.shape[0],
                          diag, ATTN_E_ARG, "block_table",
                          "[%lld, %lld] is %lld, must be 0 to %lld",
                          (long long)b, (long long)t,
                          (long long)page_at(a, b, t),
                          (long long)a->cache.shape[0] - 1);
    }
    return ATTN_OK;
}

/* Row n of head g of batch b goes to key j. */
static void copy_row(const append *a, int64_t b, int64_t g, int64_t n)
{
    const int64_t size = (int64_t)attn_dtype_size(a->cache.dtype);
    const int64_t j = length_at(a, b) + n, page_size = a->cache.shape[2];
    const int64_t first = a->paged ? page_at(a, b, j / page_size) : b;
    const int64_t row = a->paged ? j % page_size : j;
    const char *from =
        (const char *)a->rows.data +
        size * (b * a->rows.stride[0] + g * a->rows.stride[1] +
                n * a->rows.stride[2]);
    char *to = (char *)a->cache.data +
               size * (first * a->cache.stride[0] + g * a->cache.stride[1] +
                       row * a->cache.stride[2]);

    /* By bytes: a NaN keeps its payload, and one loop does for all types. */
    for (int64_t c = 0; c < a->rows.shape[3]; c++)
        memcpy(to + size * c * a->cache.stride[3],
               from + size * c * a->rows.stride[3], (size_t)size);
}

/* rows (B, H_kv, n, D) go behind the lengths[b] that are there, by the calling
 * thread. The lengths are not raised: the caller's own count says when new
 * keys become visible to queries. */
attn_status attn_kv_append(attn_tensor cache, attn_input rows,
                           attn_input lengths, attn_input block_table,
                           attn_diag *diag)
{
    append a = {cache, rows, lengths, block_table, attn__given(&block_table),
                0};

    ATTN__TRY(check_cache(&a, diag));
    ATTN__TRY(check_table(&a, diag));
    ATTN__TRY(check_lengths(&a, diag));
    ATTN__TRY(check_pages(&a, diag));
    for (int64_t b = 0; b < rows.shape[0]; b++)
        for (int64_t g = 0; g < rows.shape[1]; g++)
            for (int64_t n = 0; n < rows.shape[2]; n++)
                copy_row(&a, b, g, n);
    return attn__ok(diag);
}
