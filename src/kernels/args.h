/* SPDX-License-Identifier: Apache-2.0
 *
 * What every kernel takes: one problem (the whole call, resolved: views with
 * four strides, broadcast axes at stride 0), one unit of its work, and a slot
 * of the workspace. A kernel writes the rows or keys of its unit and nothing
 * else, allocates nothing, and knows nothing of plans or threads.
 *
 * Reads: only elements that the views name; of k and v only rows that some
 * query of the unit sees (in whole blocks of ATTN__BLOCK_KEYS, cut at the
 * sequence's length). Alignment: none beyond the element's. */
#ifndef ATTN_KERNELS_ARGS_H
#define ATTN_KERNELS_ARGS_H

#include "attn.h"
#include "core/philox.h"
#include "core/tensor.h"
#include "position/geometry.h"

/* Keys of one step of the online softmax, counted from key 0. Bits depend on
 * it: it is the same for every shape. */
#define ATTN__BLOCK_KEYS 64
/* Most rows (query, head) that share one pass over K and V: in place, and
 * split into parts for matrix tiles, which costs more. */
#define ATTN__MACRO_ROWS 128
#define ATTN__MACRO_ROWS_SPLIT 512
/* Queries of a sequence up to which a plan takes the decode kernels. */
#define ATTN__DECODE_QUERIES 8
/* Keys of one decode unit, counted from key 0; bits depend on it. */
#define ATTN__SEGMENT_KEYS 1024
/* Alignment of the workspace and of its parts. */
#define ATTN__ALIGN 64

/* An input; axes (b, h, row, column). data is NULL where it is absent. */
typedef struct attn__view {
    const char *data;
    attn_dtype dtype;
    int64_t stride[4]; /* in elements */
} attn__view;

/* An output, likewise. */
typedef struct attn__target {
    char *data;
    attn_dtype dtype;
    int64_t stride[4];
} attn__target;

/* How q_offset is found where it is not given. */
typedef enum attn__offset_rule {
    ATTN__OFFSET_GIVEN,
    ATTN__OFFSET_ZERO,
    ATTN__OFFSET_LENGTHS, /* len_k - len_q of the sequence */
    ATTN__OFFSET_SQUARE   /* 0 where k is as long as q, else the same */
} attn__offset_rule;

typedef struct attn__problem {
    attn__view q, k, v, mask, bias, slopes, sinks;
    attn__view k_lengths, q_offset, cu_seqlens_q, cu_seqlens_k, block_table;
    attn__view o, lse, d_o, dlse;                  /* read by backward */
    attn__target out_o, out_lse, weights, entropy; /* written by forward */
    attn__target dq, dk, dv, dbias;
    int64_t bias_shape[4]; /* 1 where broadcast */
    /* One double per (b, h, i), summed afterwards; NULL where not asked for. */
    double *row_dsinks, *row_dslopes;
    int64_t row_sum_stride[2]; /* of b and h */
    int64_t batch, heads_q, heads_kv, group; /* group = heads_q / heads_kv */
    int64_t len_q, len_k;                    /* without varlen */
    int64_t key_rows;                        /* of the array k: total_k */
    int64_t dim_qk, dim_v, pages, page_size;
    int64_t macro_rows; /* of one forward unit, to ATTN__MACRO_ROWS_SPLIT */
    attn__geometry geometry;
    attn__offset_rule offset_rule;
    attn_empty_rows empty_rows;
    attn_precision precision;
    attn_stage stage; /* of weights */
    double scale, softcap;
    double dropout_p;
    attn__dropout dropout;
    int64_t dropout_start[2];
} attn__problem;

/* One sequence of the batch. */
typedef struct attn__sequence {
    int64_t q_start, k_start; /* first row in the packed arrays */
    int64_t len_q, len_k;     /* len_k after k_lengths */
    int64_t q_offset;
} attn__sequence;

/* A piece of work of one batch entry and KV head: rows r of [row0, row1), r
 * standing for query r / n_heads of head head0 + r % n_heads (heads of one KV
 * head), so that the heads of a group share K and V. The kernels of dk, dv and
 * dbias also own keys [key0, key1). */
typedef struct attn__unit {
    int64_t b, kv_head, head0, n_heads, row0, row1;
    int64_t key0, key1;
    int64_t page; /* of paged dk and dv: keys are within the page */
    const int64_t *rows; /* chosen queries, or NULL: query r / n_heads */
    int64_t out_head, out_row; /* where weights of chosen rows go */
    /* Decode: which segment of the keys, or -1 to join them all; their states
     * [segment][row], or NULL where the one segment is the result. */
    int64_t segment;
    void *states;
    /* What groups of keys give to dq (attn__share_size): dkv adds its group's,
     * dq sums [group]; NULL: dq forms them itself. */
    void *shares;
} attn__unit;

typedef void attn__kernel(const attn__problem *problem, const attn__unit *unit,
                          void *slot);

static inline attn__sequence attn__sequence_of(const attn__problem *p,
                                               int64_t b)
{
    attn__sequence s = {0, 0, p->len_q, p->len_k, 0};
    bool square;

    if (p->cu_seqlens_q.data) {
        const attn__view *cu = &p->cu_seqlens_q;
        s.q_start = attn__load_index(cu->data, cu->dtype, b * cu->stride[3]);
        s.len_q = attn__load_index(cu->data, cu->dtype,
                                   (b + 1) * cu->stride[3]) - s.q_start;
    }
    if (p->cu_seqlens_k.data) {
        const attn__view *cu = &p->cu_seqlens_k;
        s.k_start = attn__load_index(cu->data, cu->dtype, b * cu->stride[3]);
        s.len_k = attn__load_index(cu->data, cu->dtype,
                                   (b + 1) * cu->stride[3]) - s.k_start;
    }
    square = s.len_k == s.len_q;
    if (p->k_lengths.data)
        s.len_k = attn__load_index(p->k_lengths.data, p->k_lengths.dtype,
                                   b * p->k_lengths.stride[3]);
    if (p->offset_rule == ATTN__OFFSET_GIVEN)
        s.q_offset = attn__load_index(p->q_offset.data, p->q_offset.dtype,
                                      b * p->q_offset.stride[3]);
    else if (p->offset_rule == ATTN__OFFSET_LENGTHS ||
             (p->offset_rule == ATTN__OFFSET_SQUARE && !square))
        s.q_offset = s.len_k - s.len_q;
    return s;
}

/* Where (b, h, row of the array) stands in row_dsinks and row_dslopes. */
static inline int64_t attn__row_sum_index(const attn__problem *p, int64_t b,
                                          int64_t h, int64_t row)
{
    return b * p->row_sum_stride[0] + h * p->row_sum_stride[1] + row;
}

#endif
