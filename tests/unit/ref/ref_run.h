/* SPDX-License-Identifier: Apache-2.0
 *
 * A ref_case as the reference wants it. Compiled in double and, with
 * src/ref/wide.h, in long double. */
#ifndef ATTN_TESTS_REF_RUN_H
#define ATTN_TESTS_REF_RUN_H

#include "attn_ref.h"
#include "ref_case.h"

/* The case's inputs in the reference's number type. */
typedef struct ref_inputs {
    attn_ref_problem problem;
    attn_ref_real *q, *k, *v, *d_o, *dlse;
    attn_ref_real *bias, *slopes, *sinks, *dropout;
} ref_inputs;

#ifdef ATTN_REF_WIDE_H
#define ref_inputs_open ref_inputs_open_wide
#define ref_inputs_close ref_inputs_close_wide
#define ref_run_with ref_run_with_wide
#define ref_run ref_run_wide
#endif

ref_inputs ref_inputs_open(const ref_case *c);
void ref_inputs_close(ref_inputs *in);

/* Forward and, unless empty rows are NaN, backward, with the given stages. */
ref_outputs ref_run_with(const attn_ref_stages *stages, const ref_case *c,
                         const ref_inputs *in);

#endif
