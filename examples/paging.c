/* SPDX-License-Identifier: Apache-2.0
 *
 * Paging: two conversations share one set of pages of 8 tokens, handed out as
 * text comes in. One query each, over the pages and over a cache in one piece:
 * the same bits. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { USERS = 2, HEADS = 4, DIM = 16, PAGE = 8, PAGES = 7, ROOM = 5 * PAGE };
enum { ROW = HEADS * DIM, TABLE = ROOM / PAGE };

static float pages[2][PAGES * PAGE * ROW], cache[2][USERS * ROOM * ROW];
static float rows[ROOM * ROW], q[USERS * ROW], o[2][USERS * ROW];
static int32_t table[USERS * TABLE], used;
static int64_t length[USERS];

/* n tokens of one user, as keys (0) or values (1), into both. */
static attn_status append(int user, int64_t n, int values)
{
    const attn_input in = attn_in_bhsd(rows, ATTN_F32, 1, HEADS, n, DIM);
    const attn_input at =
        attn_in_dense(length + user, ATTN_I64, 1, (int64_t[]){1});
    const attn_tensor whole = attn_bhsd(cache[values] + user * ROOM * ROW,
                                        ATTN_F32, 1, HEADS, ROOM, DIM);

    for (int64_t t = 0; t < n * ROW; t++)
        rows[t] = sinf((float)(t * (3 + user) + 5 * length[user] + values));
    if (attn_kv_append(whole, in, at, (attn_input){0}, NULL) != ATTN_OK)
        return ATTN_E_ARG;
    return attn_kv_append(
        attn_bhsd(pages[values], ATTN_F32, PAGES, HEADS, PAGE, DIM), in, at,
        attn_in_dense(table + user * TABLE, ATTN_I32, 2,
                      (int64_t[]){1, TABLE}), NULL);
}

/* A query of each user over what `k` and `v` hold. */
static attn_status attend(attn_input k, attn_input v, int paged)
{
    attn_desc desc;
    attn_args args;

    attn_desc_init(&desc, ATTN_F32, USERS, HEADS, HEADS, 1, ROOM, DIM, DIM);
    desc.inputs = ATTN_WITH_K_LENGTHS | (paged ? ATTN_WITH_PAGES : 0);
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, USERS, HEADS, 1, DIM);
    args.kv.k = k;
    args.kv.v = v;
    args.kv.k_lengths = attn_in_dense(length, ATTN_I64, 1, (int64_t[]){USERS});
    if (paged)
        args.kv.block_table =
            attn_in_dense(table, ATTN_I32, 2, (int64_t[]){USERS, TABLE});
    args.o = attn_bhsd(o[paged], ATTN_F32, USERS, HEADS, 1, DIM);
    return attn_attention(&desc, &args, 1, NULL);
}

int main(void)
{
    const struct { int user, tokens; } text[] = {{1, 20}, {0, 13}, {1, 19}};

    for (int n = 0; n < 3; n++) {
        const int user = text[n].user, end = (int)length[user] + text[n].tokens;

        for (int t = ((int)length[user] + PAGE - 1) / PAGE; t * PAGE < end; t++)
            table[user * TABLE + t] = used++;
        if (append(user, text[n].tokens, 0) || append(user, text[n].tokens, 1))
            return 1;
        length[user] = end;
    }
    for (int c = 0; c < USERS * ROW; c++)
        q[c] = cosf((float)c);
    if (attend(attn_in_bhsd(cache[0], ATTN_F32, USERS, HEADS, ROOM, DIM),
               attn_in_bhsd(cache[1], ATTN_F32, USERS, HEADS, ROOM, DIM), 0) ||
        attend(attn_in_bhsd(pages[0], ATTN_F32, PAGES, HEADS, PAGE, DIM),
               attn_in_bhsd(pages[1], ATTN_F32, PAGES, HEADS, PAGE, DIM), 1))
        return 1;
    printf("%d of %d pages for %d and %d tokens\n", (int)used, PAGES,
           (int)length[0], (int)length[1]);
    return memcmp(o[0], o[1], sizeof o[0]) != 0;
}
