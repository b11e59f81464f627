/* SPDX-License-Identifier: Apache-2.0
 *
 * The binding: which parameter of the subject is what, in which layout its
 * arrays are, and in which form its options are passed. */
#ifndef ATTN_DOCTOR_BINDING_H
#define ATTN_DOCTOR_BINDING_H

#include "doctor/question.h"

typedef enum attn__role {
    ROLE_UNKNOWN,
#define ATTN__ROLE(role, names) ROLE_##role,
#include "doctor/roles.def"
#undef ATTN__ROLE
    ROLE_N
} attn__role;

/* Layouts of q, k, v. E is heads x dim in one axis. */
typedef enum attn__layout {
    LAYOUT_BHSD,
    LAYOUT_HSD,
    LAYOUT_SD,
    LAYOUT_BSHD,
    LAYOUT_SHD,
    LAYOUT_BSD, /* one head */
    LAYOUT_BSE,
    LAYOUT_SE,
    LAYOUT_BHDS, /* as convolutions have it: length last */
    LAYOUT_HDS,
    LAYOUT_BDS,
    LAYOUT_DS,
    LAYOUT_SBHD, /* the length before the batch */
    LAYOUT_SBD,
    LAYOUT_SBE,
    LAYOUT_N
} attn__layout;

/* Which axes it has. Without `heads` there is one head; `packed` is heads x
 * dim in one axis; `dim_first` is before the length, which `length_first` is
 * before the batch. */
typedef struct attn__layout_facts {
    const char *name;
    bool batch, heads, heads_first, packed, dim_first, length_first;
} attn__layout_facts;

const attn__layout_facts *attn__layout_facts_of(attn__layout layout);
/* -1 if the name is unknown. */
int attn__layout_of(const char *name);
/* The shape of (batch, heads, len, dim) = n in a layout; returns the rank. */
int32_t attn__layout_shape(attn__layout layout, const int64_t n[4],
                           int64_t shape[4]);
/* Where element x of (batch, heads, len, dim) lies in the layout's memory. */
int64_t attn__layout_at(attn__layout layout, const int64_t n[4], int64_t x);
/* Can the question be put in this layout: no batch where there is no axis? */
bool attn__layout_holds(attn__layout layout, const attn__sizes *n);

/* How q, k and v, or k and v, are in one array, where they are: beside an
 * axis of the layout there is one of three (or two), by itself, or in one with
 * the axis that follows, or in one with heads and dim. */
typedef enum attn__fusion {
    FUSION_NONE,
    FUSION_STACKED, /* (B, L, 3, H, D), (3, B, H, L, D) */
    FUSION_JOINED,  /* (B, L, 3 D), (B, L, H, 3 D) */
    FUSION_FLAT     /* (B, L, 3 H D), or as H 3 D */
} attn__fusion;

/* One array may serve as more than one of q, k, v: k as v, or one as all. Or
 * there is no v, and the weights are the answer, as with v = I. */
typedef enum attn__sharing {
    SHARED_NONE,
    SHARED_KV,
    SHARED_ALL,
    NO_VALUES
} attn__sharing;

enum { ATTN__MAX_PARAMETERS = 48 };

typedef struct attn__binding {
    const attn_subject *subject;
    attn_kind kind;
    attn__role role[ATTN__MAX_PARAMETERS];
    uint32_t takes; /* ASK_ bits that some parameter carries */
    attn__layout layout;
    attn__fusion fusion;
    int32_t fusion_axis; /* where the axis of three would be */
    attn__sharing shared;
    attn_dtype dtype;
    bool rows_turned;  /* lse and weights are (batch, len, heads, ..) */
    bool o_turned;     /* o has heads and length exchanged */
    bool merged;       /* 4-D in, (batch, len, heads dim) out */
    bool mask_adds;    /* masks are passed as 0 and -inf */
    bool mask_full;    /* with all four axes, not cut from the left */
    bool mask_batched; /* (batch, len_q, len_k) without the heads' axis */
    bool window_is_number;
    bool weights_out;  /* w matrices are (d_out, d_in) */
    bool q_flat;       /* q and o have no axis of length: one query */
    bool kv_single;    /* k and v have no axis of heads: one for all */
    bool drop_off;     /* dropout is told to be 0; else it has its default */
    bool one_length;   /* one number for all of the batch */
    bool appends;      /* new rows of k and v are given beside the caches */
    bool k_turned;     /* k is given transposed, dim before length */
    bool whole;        /* decode: no length is given, all keys are valid */
    bool by_position;  /* the last key's index instead of their number */
    int32_t o_at;      /* which of its results is o */
    int64_t calls, longest; /* see the question's number and longest */
    double seconds; /* spent in calls */
} attn__binding;

/* " name ": lower case, no underscores, between spaces; cut to fit. */
void attn__normalise(const char *name, char *word, size_t size);
/* Roles by name; positions for what no name tells. */
void attn__bind(attn__binding *binding, const attn_subject *subject,
                attn_kind kind);
/* Index of the first parameter with the role, or -1. */
int attn__parameter_of(const attn__binding *binding, attn__role role);
bool attn__has_role(const attn__binding *binding, attn__role role);
/* Does the subject's documentation speak of a batch, or of heads? */
bool attn__speaks_of(const attn_subject *subject, const char *what);
/* Of any of these words, the last of which is NULL? */
bool attn__speaks_of_any(const attn_subject *subject,
                         const char *const *words);
/* Where arrays serve twice: q and v become k, which is what was changed. */
void attn__share(const attn__binding *binding, attn__question *question);
/* The kind that the parameters and the name suggest; AUTO where one array may
 * be scores for a softmax, or what attends to itself. */
attn_kind attn__guess_kind(const attn_subject *subject);

/* Further views of the inputs, for hygiene. */
typedef enum attn__view {
    VIEW_PLAIN,
    VIEW_STRIDED,  /* every second element of a larger buffer */
    VIEW_TURNED,   /* memory order of the last two axes exchanged */
    VIEW_BROADCAST /* batch and head axes of k, v, mask of stride 0 */
} attn__view;

/* Put the question. Fills its outcome, answer, weights, lse; memory from
 * `arena`. False if memory is short. `raw`, if not NULL, receives the answer
 * as it came and is the caller's to free. */
bool attn__ask(attn__binding *binding, attn__question *question,
               attn__view view, attn__arena *arena);

#endif
