/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles from names, kinds from roles, and the table of layouts. */
#include "doctor/binding.h"

#include <ctype.h>
#include <string.h>

/* ----------------------------------------------------------------- roles */

static const char *const role_names[ROLE_N] = {
    "",
#define ATTN__ROLE(role, names) names,
#include "doctor/roles.def"
#undef ATTN__ROLE
};

/* " name ": lower case, no underscores, between spaces. */
void attn__normalise(const char *name, char *word, size_t size)
{
    size_t n = 0;

    word[n++] = ' ';
    for (; *name && n + 2 < size; name++) {
        if (*name != '_')
            word[n++] = (char)tolower((unsigned char)*name);
    }
    word[n++] = ' ';
    word[n] = '\0';
}

/* What each kind must be given, in the order in which it is usual. */
static const attn__role needed[][6] = {
    [ATTN_KIND_ATTENTION] = {ROLE_Q, ROLE_K, ROLE_V},
    [ATTN_KIND_MULTI_HEAD] = {ROLE_X},
    [ATTN_KIND_ROPE] = {ROLE_X, ROLE_POSITIONS},
    [ATTN_KIND_SOFTMAX] = {ROLE_X},
    [ATTN_KIND_BACKWARD] = {ROLE_D_O, ROLE_Q, ROLE_K, ROLE_V},
    [ATTN_KIND_DECODE] = {ROLE_Q, ROLE_K, ROLE_V},
    [ATTN_KIND_MERGE] = {ROLE_O1, ROLE_LSE1, ROLE_O2, ROLE_LSE2},
};

/* What the kind needs goes before what else the name may mean. */
static attn__role role_of(const char *name, attn_kind kind)
{
    char word[64];

    attn__normalise(name, word, sizeof word);
    for (int x = 0; x < 6 && needed[kind][x] != ROLE_UNKNOWN; x++) {
        if (strstr(role_names[needed[kind][x]], word))
            return needed[kind][x];
    }
    for (int role = ROLE_UNKNOWN + 1; role < ROLE_N; role++) {
        if (strstr(role_names[role], word))
            return (attn__role)role;
    }
    return ROLE_UNKNOWN;
}

int attn__parameter_of(const attn__binding *binding, attn__role role)
{
    for (int x = 0; x < binding->subject->n_parameters; x++) {
        if (binding->role[x] == role)
            return x;
    }
    return -1;
}

bool attn__has_role(const attn__binding *binding, attn__role role)
{
    return attn__parameter_of(binding, role) >= 0;
}

static bool is_needed(attn_kind kind, attn__role role)
{
    for (int x = 0; x < 6; x++) {
        if (needed[kind][x] == role && role != ROLE_UNKNOWN)
            return true;
    }
    return false;
}

/* Names that say nothing to this kind: "a" or "x" of fn(a, b, c). */
static bool is_nameless(const attn__binding *b, attn__role role)
{
    return role == ROLE_UNKNOWN ||
           (role == ROLE_X && !is_needed(b->kind, ROLE_X)) ||
           (role == ROLE_CONTEXT && b->kind != ATTN_KIND_MULTI_HEAD) ||
           (b->kind == ATTN_KIND_MERGE &&
            (role == ROLE_O || role == ROLE_LSE));
}

/* An option, by its default: a number, a word, True or False. */
static bool is_option(const attn__binding *b, int x)
{
    const attn_parameter *p = &b->subject->parameters[x];

    return b->kind == ATTN_KIND_ATTENTION && p->optional && p->fallback &&
           *p->fallback && strcmp(p->fallback, "None") != 0;
}

/* Where names do not tell, the first parameters are what the kind needs. */
static void bind_by_position(attn__binding *b)
{
    int next = 0;

    if (attn__parameter_of(b, ROLE_QKV) >= 0 ||
        attn__parameter_of(b, ROLE_KV) >= 0)
        return; /* what has such a name has one for q too */
    for (int x = 0; x < 6 && needed[b->kind][x] != ROLE_UNKNOWN; x++) {
        const attn__role role = needed[b->kind][x];

        if (attn__parameter_of(b, role) >= 0)
            continue;
        while (next < b->subject->n_parameters &&
               (!is_nameless(b, b->role[next]) || is_option(b, next)))
            next++;
        if (next < b->subject->n_parameters)
            b->role[next++] = role;
    }
}

static const struct {
    attn__role role;
    uint32_t bit;
} carried[] = {
    {ROLE_MASK, ASK_MASK},       {ROLE_KEY_MASK, ASK_MASK},
    {ROLE_BIAS, ASK_BIAS},       {ROLE_SCALE, ASK_SCALE},
    {ROLE_CAUSAL, ASK_CAUSAL},   {ROLE_WINDOW, ASK_WINDOW},
    {ROLE_WINDOW_LEFT, ASK_WINDOW},
    {ROLE_SOFTCAP, ASK_SOFTCAP}, {ROLE_SLOPES, ASK_ALIBI},
    {ROLE_SINKS, ASK_SINKS},     {ROLE_LENGTHS, ASK_LENGTHS},
    {ROLE_OFFSET, ASK_OFFSET},   {ROLE_EXTRA, ASK_EXTRA},
};

/* Names mean different things to different kinds, and what has a number for a
 * default is no array. */
static void adjust(attn__binding *b)
{
    for (int x = 0; x < b->subject->n_parameters; x++) {
        const attn_parameter *p = &b->subject->parameters[x];
        attn__role *role = &b->role[x];

        if (is_needed(b->kind, *role) && p->optional && p->fallback &&
            *p->fallback && strchr("+-.0123456789", *p->fallback))
            *role = ROLE_UNKNOWN;
        if (b->kind == ATTN_KIND_DECODE && *role == ROLE_CACHE_LEN)
            *role = ROLE_LENGTHS;
        if (b->kind != ATTN_KIND_DECODE && *role == ROLE_CACHE_LEN &&
            b->kind != ATTN_KIND_SOFTMAX)
            *role = ROLE_LENGTHS;
        if (b->kind == ATTN_KIND_DECODE && *role == ROLE_OFFSET)
            *role = ROLE_POSITIONS;
        if (b->kind == ATTN_KIND_SOFTMAX && x == 0)
            *role = ROLE_X;
        if (b->kind == ATTN_KIND_MULTI_HEAD && *role == ROLE_QKV)
            *role = ROLE_W_QKV;
    }
}

static void rename_role(attn__binding *b, attn__role from, attn__role to)
{
    const int x = attn__parameter_of(b, from);

    if (x >= 0 && attn__parameter_of(b, to) < 0)
        b->role[x] = to;
}

/* Caches are K and V, unless new rows for them are given beside. */
static void bind_caches(attn__binding *b)
{
    rename_role(b, ROLE_K_CACHE, ROLE_K);
    rename_role(b, ROLE_V_CACHE, ROLE_V);
    b->appends = attn__parameter_of(b, ROLE_K_CACHE) >= 0;
    b->by_position = attn__parameter_of(b, ROLE_LENGTHS) < 0 &&
                     attn__parameter_of(b, ROLE_POSITIONS) >= 0;
    b->whole = b->kind == ATTN_KIND_DECODE && !b->by_position &&
               attn__parameter_of(b, ROLE_LENGTHS) < 0;
}

static bool is_named_keys(const attn__binding *b)
{
    const int x = attn__parameter_of(b, ROLE_K);

    return x >= 0 && role_of(b->subject->parameters[x].name, b->kind) == ROLE_K;
}

/* attention(x) is that of x with itself, attention(x, context) with k = v;
 * (q, k) makes weights. */
static attn__sharing sharing_of(const attn__binding *b)
{
    if (b->kind != ATTN_KIND_ATTENTION ||
        attn__parameter_of(b, ROLE_Q) < 0 ||
        attn__parameter_of(b, ROLE_V) >= 0 ||
        attn__parameter_of(b, ROLE_QKV) >= 0 ||
        attn__parameter_of(b, ROLE_KV) >= 0)
        return SHARED_NONE;
    if (is_named_keys(b))
        return NO_VALUES;
    return attn__parameter_of(b, ROLE_K) >= 0 ? SHARED_KV : SHARED_ALL;
}

void attn__share(const attn__binding *b, attn__question *q)
{
    if (b->shared == SHARED_ALL)
        q->q = q->k;
    if (b->shared == SHARED_ALL || b->shared == SHARED_KV)
        q->v = q->k;
}

/* "kt", "k_T", "key_transposed"? */
static bool is_turned(const attn__binding *b)
{
    const int x = attn__parameter_of(b, ROLE_K);
    char word[64];

    if (x < 0)
        return false;
    attn__normalise(b->subject->parameters[x].name, word, sizeof word);
    return strstr(" kt keyt ktransposed keystransposed keytransposed ", word);
}

void attn__bind(attn__binding *b, const attn_subject *subject, attn_kind kind)
{
    *b = (attn__binding){
        .subject = subject, .kind = kind, .dtype = ATTN_F64};
    for (int x = 0; x < subject->n_parameters; x++)
        b->role[x] = role_of(subject->parameters[x].name, kind);
    adjust(b);
    bind_caches(b);
    bind_by_position(b);
    b->shared = sharing_of(b);
    b->k_turned = is_turned(b);
    for (size_t x = 0; x < sizeof carried / sizeof carried[0]; x++) {
        if (attn__parameter_of(b, carried[x].role) >= 0)
            b->takes |= carried[x].bit;
    }
}

/* ----------------------------------------------------------------- kinds */

static bool contains(const char *text, const char *word)
{
    char low[128];
    size_t n = 0;

    for (; text[n] && n + 1 < sizeof low; n++)
        low[n] = (char)tolower((unsigned char)text[n]);
    low[n] = '\0';
    return strstr(low, word) != NULL;
}

bool attn__speaks_of(const attn_subject *subject, const char *what)
{
    const char *words = subject->words ? subject->words : "";
    const size_t n = strlen(what);

    for (; *words; words++) {
        size_t same = 0;

        while (same < n && tolower((unsigned char)words[same]) == what[same])
            same++;
        if (same == n)
            return true;
    }
    return false;
}

bool attn__speaks_of_any(const attn_subject *subject,
                         const char *const *words)
{
    for (; *words; words++)
        if (attn__speaks_of(subject, *words))
            return true;
    return false;
}

/* Does its first parameter say that it is a row of scores? */
static bool holds_scores(const attn_subject *subject)
{
    char word[64];

    attn__normalise(subject->parameters[0].name, word, sizeof word);
    return strstr(" logits logit scores score s z ", word) != NULL;
}

static int count_required(const attn_subject *subject)
{
    int n = 0;

    for (int x = 0; x < subject->n_parameters; x++)
        n += !subject->parameters[x].optional;
    return n;
}

attn_kind attn__guess_kind(const attn_subject *subject)
{
    const char *colon = strrchr(subject->name, ':');
    const char *name = colon ? colon + 1 : subject->name;
    attn__binding b = {.subject = subject};

    for (int x = 0; x < subject->n_parameters; x++)
        b.role[x] = role_of(subject->parameters[x].name, ATTN_KIND_AUTO);
    if (attn__parameter_of(&b, ROLE_QKV) == 0 && !attn__has_role(&b, ROLE_W_O))
        return ATTN_KIND_ATTENTION;
    if (attn__has_role(&b, ROLE_W_Q) || attn__has_role(&b, ROLE_W_QKV) ||
        attn__has_role(&b, ROLE_QKV))
        return ATTN_KIND_MULTI_HEAD;
    if (attn__has_role(&b, ROLE_LSE1) || attn__has_role(&b, ROLE_LSE2) ||
        (contains(name, "merge") && !attn__has_role(&b, ROLE_Q)))
        return ATTN_KIND_MERGE;
    if (attn__has_role(&b, ROLE_D_O) && attn__has_role(&b, ROLE_K))
        return ATTN_KIND_BACKWARD;
    if ((contains(name, "backward") || contains(name, "bwd")) &&
        count_required(subject) > 3)
        return ATTN_KIND_BACKWARD;
    if (contains(name, "decode") || attn__has_role(&b, ROLE_K_CACHE))
        return ATTN_KIND_DECODE;
    if (!attn__has_role(&b, ROLE_V) &&
        (attn__has_role(&b, ROLE_POSITIONS) || attn__has_role(&b, ROLE_COS) ||
         contains(name, "rope") || contains(name, "rotary")))
        return ATTN_KIND_ROPE;
    if (contains(name, "softmax") && !attn__has_role(&b, ROLE_K))
        return ATTN_KIND_SOFTMAX;
    if (attn__has_role(&b, ROLE_AXIS) && !attn__has_role(&b, ROLE_K))
        return ATTN_KIND_SOFTMAX;
    if (subject->n_parameters != 1 || contains(name, "att") ||
        attn__speaks_of(subject, "attention"))
        return ATTN_KIND_ATTENTION;
    return holds_scores(subject) ? ATTN_KIND_SOFTMAX : ATTN_KIND_AUTO;
}

