/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of an expectation. */
#include "doctor/expectation.h"

#include <stdlib.h>
#include <string.h>

typedef struct setting {
    attn__expect *expect;
    attn__arena *arena;
    const char *key, *value;
    attn_diag *diag;
} setting;

static attn_status refuse(const setting *s, const char *rule)
{
    return attn__fail(s->diag, ATTN_E_ARG, "expect", "%s=%s: %s", s->key,
                      s->value, rule);
}

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

static bool is_no(const char *text)
{
    return is(text, "none") || is(text, "None") || is(text, "false") ||
           is(text, "False") || is(text, "0");
}

static bool is_yes(const char *text)
{
    return is(text, "true") || is(text, "True") || is(text, "1") ||
           is(text, "plain") || is(text, "causal");
}

static bool number(const char *text, double *x)
{
    char *end;

    *x = strtod(text, &end);
    return end != text && *end == '\0';
}

/* -------------------------------------------------------------- the keys */

static attn_status set_causal(const setting *s)
{
    attn__expect *e = s->expect;

    e->has_causal = true;
    if (is_no(s->value))
        e->causal = ATTN_CAUSAL_NONE;
    else if (is(s->value, "top_left"))
        e->causal = ATTN_CAUSAL_TOP_LEFT;
    else if (is(s->value, "bottom_right"))
        e->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
    else if (is_yes(s->value))
        e->plain_causal = true;
    else
        return refuse(s, "none, true, top_left or bottom_right");
    if (e->plain_causal)
        e->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
    return ATTN_OK;
}

/* "2:0", "(2,0)" would be cut at the comma; one number W means (W - 1, 0). */
static attn_status set_window(const setting *s)
{
    attn__expect *e = s->expect;
    char *end;

    if (is_no(s->value))
        return ATTN_OK;
    e->has_window = true;
    e->window[0] = strtoll(s->value, &end, 10);
    e->window[1] = 0;
    if (*end == ':')
        e->window[1] = strtoll(end + 1, &end, 10);
    else
        e->window[0]--;
    if (end == s->value || *end)
        return refuse(s, "LEFT:RIGHT, or the number of keys");
    return ATTN_OK;
}

static attn_status set_mask_true(const setting *s)
{
    attn__expect *e = s->expect;

    e->has_mask_true = true;
    e->mask_hides = is(s->value, "drop") || is(s->value, "hide");
    e->mask_adds = is(s->value, "add");
    if (!e->mask_hides && !e->mask_adds && !is(s->value, "keep"))
        return refuse(s, "keep, drop or add");
    return ATTN_OK;
}

static attn_status set_empty_rows(const setting *s)
{
    attn__expect *e = s->expect;

    e->empty_rows = is(s->value, "zero")  ? EMPTY_ZERO
                    : is(s->value, "nan") ? EMPTY_NAN
                                          : EMPTY_ANY;
    if (e->empty_rows == EMPTY_ANY && !is(s->value, "any"))
        return refuse(s, "zero, nan or any");
    return ATTN_OK;
}

/* "0.5:0.25:0.125". */
static attn_status set_list(const setting *s, const double **list, int64_t *n)
{
    const char *at = s->value;
    double *x;
    int64_t count = 1;

    for (const char *c = at; *c; c++)
        count += *c == ':';
    x = attn__arena_doubles(s->arena, count);
    if (!x)
        return attn__fail(s->diag, ATTN_E_NOMEM, "expect", "out of memory");
    for (int64_t i = 0; i < count; i++) {
        char *end;

        x[i] = strtod(at, &end);
        if (end == at || (*end && *end != ':'))
            return refuse(s, "numbers, with ':' between them");
        at = end + 1;
    }
    *list = x;
    *n = count;
    return ATTN_OK;
}

static attn_status set_number(const setting *s, double *x)
{
    return number(s->value, x) ? ATTN_OK : refuse(s, "a number");
}

static attn_status set_integer(const setting *s, int64_t *x)
{
    double value;

    if (!number(s->value, &value) || value < 0 || value > 1e6)
        return refuse(s, "a whole number");
    *x = (int64_t)value;
    return ATTN_OK;
}

/* Words of a call that say nothing about what is right. */
static bool is_indifferent(const char *key)
{
    static const char *const keys[] = {
        "dropout_p", "seed", "offset", "precision", "threads", "dtype",
        "layout", "attn_mask", "attn_bias", "k_lengths", "q_offset",
        "cu_seqlens_q", "cu_seqlens_k", "return_lse", "return_weights",
        "return_entropy", "gqa", "accumulation"};

    for (size_t x = 0; x < sizeof keys / sizeof keys[0]; x++) {
        if (is(key, keys[x]))
            return true;
    }
    return false;
}

static attn_status set(const setting *s)
{
    attn__expect *e = s->expect;

    if (is(s->value, "None"))
        return ATTN_OK;

    if (is(s->key, "causal") || is(s->key, "is_causal"))
        return set_causal(s);
    if (is(s->key, "window") || is(s->key, "window_size"))
        return set_window(s);
    if (is(s->key, "mask_true"))
        return set_mask_true(s);
    if (is(s->key, "empty_rows"))
        return set_empty_rows(s);
    if (is(s->key, "scale")) {
        e->has_scale = true;
        return set_number(s, &e->scale);
    }
    if (is(s->key, "softcap"))
        return set_number(s, &e->softcap);
    if (is(s->key, "alibi_slopes"))
        return set_list(s, &e->slopes, &e->n_slopes);
    if (is(s->key, "sinks"))
        return set_list(s, &e->sinks, &e->n_sinks);
    if (is(s->key, "heads") || is(s->key, "n_heads"))
        return set_integer(s, &e->heads);
    if (is(s->key, "kv_heads") || is(s->key, "n_kv_heads"))
        return set_integer(s, &e->kv_heads);
    if (is(s->key, "rotary_dim"))
        return set_integer(s, &e->rotary_dim);
    if (is(s->key, "base"))
        return set_number(s, &e->base);
    if (is(s->key, "interleaved")) {
        e->has_interleaved = true;
        e->interleaved = is_yes(s->value);
        return ATTN_OK;
    }
    if (is(s->key, "lse_base")) {
        e->base2 = is(s->value, "2");
        return ATTN_OK;
    }
    if (is_indifferent(s->key))
        return ATTN_OK;
    return attn__fail(s->diag, ATTN_E_ARG, "expect", "'%s' is no word of it",
                      s->key);
}

/* ----------------------------------------------------------------- parse */

static attn_status parse_item(attn__expect *e, char *item, attn__arena *arena,
                              attn_diag *diag)
{
    char *equals = strchr(item, '=');

    if (!equals)
        return attn__fail(diag, ATTN_E_ARG, "expect", "'%s' has no '='", item);
    *equals = '\0';
    return set(&(setting){.expect = e,
                          .arena = arena,
                          .key = item,
                          .value = equals + 1,
                          .diag = diag});
}

attn_status attn__expect_parse(attn__expect *e, const char *text,
                               attn__arena *arena, attn_diag *diag)
{
    char *copy, *next;

    *e = (attn__expect){.identify = !text, .window = {-1, -1}};
    if (!text)
        return ATTN_OK;
    e->empty_rows = EMPTY_ZERO;
    copy = attn__arena_take(arena, (int64_t)strlen(text) + 1, 1);
    if (!copy)
        return attn__fail(diag, ATTN_E_NOMEM, "expect", "out of memory");
    strcpy(copy, text);
    for (char *item = copy; item && *item; item = next) {
        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        ATTN__TRY(parse_item(e, item, arena, diag));
    }
    if (e->n_slopes > 0)
        e->heads = e->n_slopes;
    if (e->n_sinks > 0)
        e->heads = e->n_sinks;
    return ATTN_OK;
}
