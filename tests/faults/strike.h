/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operation misbehaves, and how, for programs in which the k-th of a kind
 * does, for every k. Before inclusion: enum kind with N_KINDS. The state is the
 * including program's own. */
#ifndef ATTN_TESTS_STRIKE_H
#define ATTN_TESTS_STRIKE_H

#include <errno.h>
#include <stdbool.h>

typedef enum manner {
    FAILS,     /* once */
    ALL_FAIL,  /* and all after it */
    INTERRUPT, /* EINTR, once */
    SHORT      /* half of what was asked for, once */
} manner;

static int counts[N_KINDS];
static int fail_at = -1;
static kind fail_kind;
static manner fail_manner;
/* Compilers know that malloc does not read it; a hook does. */
static volatile bool playing;

/* Whether this operation is the one that misbehaves. */
static bool strikes(kind k)
{
    const int n = counts[k];

    counts[k] += playing;
    return playing && k == fail_kind && fail_at >= 0 &&
           (n == fail_at || (fail_manner == ALL_FAIL && n > fail_at));
}

/* -1 with errno set, for an operation that fails or is interrupted. */
static int failure(int error)
{
    errno = fail_manner == INTERRUPT ? EINTR : error;
    return -1;
}

#endif
