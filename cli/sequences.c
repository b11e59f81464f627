/* SPDX-License-Identifier: Apache-2.0
 *
 * Lengths and offsets of sequences. The command reads them itself, to place
 * the rows for --rope and to know a square from an oblong, so it checks them
 * before the library does. */
#include "problem.h"

int64_t cli_index(const attn_array *array, int64_t i)
{
    return array->dtype == ATTN_I32 ? ((const int32_t *)array->data)[i]
                                    : ((const int64_t *)array->data)[i];
}

/* Integers on one axis. */
static int check_integers(const attn_array *a)
{
    if (a->dtype != ATTN_I32 && a->dtype != ATTN_I64)
        return cli_fail(CLI_USAGE, "%s: has type %s; it must be an integer",
                        a->name, cli_type_of(a));
    if (a->rank > 1)
        return cli_fail(CLI_USAGE, "%s: is %d-D; it must be 1-D", a->name,
                        (int)a->rank);
    return CLI_GO;
}

int cli_check_packed(cli_problem *p)
{
    const attn_array *q = cli_input(p->inputs, "cu_seqlens_q");
    const attn_array *k = cli_input(p->inputs, "cu_seqlens_k");

    p->packed = q || k;
    if (!p->packed)
        return CLI_GO;
    if (!q || !k)
        return cli_fail(CLI_USAGE, "%s: is missing; packed sequences need both "
                        "cu_seqlens_q and cu_seqlens_k",
                        q ? "cu_seqlens_k" : "cu_seqlens_q");
    if (check_integers(q) != CLI_GO || check_integers(k) != CLI_GO)
        return CLI_USAGE;
    if (q->rank != 1 || q->count < 1)
        return cli_fail(CLI_USAGE, "cu_seqlens_q: must be 1-D, with one "
                        "element more than there are sequences");
    if (k->rank != 1 || k->count != q->count)
        return cli_fail(CLI_USAGE, "cu_seqlens_k: has %lld elements, but "
                        "cu_seqlens_q has %lld", (long long)k->count,
                        (long long)q->count);
    return CLI_GO;
}

/* From 0, never down, to the number of rows. */
static int check_cuts(const attn_array *cu, const attn_array *rows)
{
    const int64_t last = cu->count - 1;

    if (cli_index(cu, 0) != 0)
        return cli_fail(CLI_USAGE, "%s: begins with %lld; it must begin with 0",
                        cu->name, (long long)cli_index(cu, 0));
    for (int64_t n = 1; n <= last; n++)
        if (cli_index(cu, n) < cli_index(cu, n - 1))
            return cli_fail(CLI_USAGE, "%s: goes down from %lld to %lld at "
                            "element %lld; it must never go down", cu->name,
                            (long long)cli_index(cu, n - 1),
                            (long long)cli_index(cu, n), (long long)n);
    if (cli_index(cu, last) != rows->shape[0])
        return cli_fail(CLI_USAGE, "%s: ends with %lld; it must end with the "
                        "%lld rows of %s", cu->name,
                        (long long)cli_index(cu, last),
                        (long long)rows->shape[0], rows->name);
    return CLI_GO;
}

/* One integer for each sequence. */
static int check_each(const cli_problem *p, const char *name)
{
    const attn_array *a = cli_input(p->inputs, name);

    if (!a)
        return CLI_GO;
    if (check_integers(a) != CLI_GO)
        return CLI_USAGE;
    if (a->count != p->desc.batch)
        return cli_fail(CLI_USAGE, "%s: has %lld elements, must have %lld, one "
                        "for each sequence", name, (long long)a->count,
                        (long long)p->desc.batch);
    return CLI_GO;
}

int cli_check_sequences(const cli_problem *p)
{
    if (check_each(p, "k_lengths") != CLI_GO ||
        check_each(p, "q_offset") != CLI_GO)
        return CLI_USAGE;
    if (!p->packed)
        return CLI_GO;
    if (check_cuts(cli_input(p->inputs, "cu_seqlens_q"), p->q) != CLI_GO)
        return CLI_USAGE;
    return check_cuts(cli_input(p->inputs, "cu_seqlens_k"), p->k);
}

int64_t cli_longest(const attn_array *cu_seqlens)
{
    int64_t most = 0;

    for (int64_t n = 1; n < cu_seqlens->count; n++) {
        const int64_t begin = cli_index(cu_seqlens, n - 1);
        const int64_t end = cli_index(cu_seqlens, n);

        if (begin >= 0 && end >= begin && end - begin > most)
            most = end - begin;
    }
    return most;
}

bool cli_is_square(const cli_problem *p, int64_t *len_q, int64_t *len_k)
{
    const attn_array *q = cli_input(p->inputs, "cu_seqlens_q");
    const attn_array *k = cli_input(p->inputs, "cu_seqlens_k");

    *len_q = p->desc.len_q;
    *len_k = p->desc.len_k;
    for (int64_t n = 1; p->packed && n < q->count; n++) {
        *len_q = cli_index(q, n) - cli_index(q, n - 1);
        *len_k = cli_index(k, n) - cli_index(k, n - 1);
        if (*len_q != *len_k)
            return false;
    }
    return *len_q == *len_k;
}

int64_t cli_offset_of(const cli_problem *p, int64_t b)
{
    const attn_array *given = cli_input(p->inputs, "q_offset");
    const attn_array *lengths = cli_input(p->inputs, "k_lengths");
    int64_t len_q = p->desc.len_q, len_k = p->desc.len_k;

    if (given)
        return cli_index(given, b);
    if (p->packed) {
        const attn_array *q = cli_input(p->inputs, "cu_seqlens_q");
        const attn_array *k = cli_input(p->inputs, "cu_seqlens_k");

        len_q = cli_index(q, b + 1) - cli_index(q, b);
        len_k = cli_index(k, b + 1) - cli_index(k, b);
    }
    if (p->desc.causal == ATTN_CAUSAL_TOP_LEFT ||
        (p->desc.causal == ATTN_CAUSAL_NONE && len_q == len_k))
        return 0;
    return (lengths ? cli_index(lengths, b) : len_k) - len_q;
}
