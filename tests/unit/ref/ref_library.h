/* SPDX-License-Identifier: Apache-2.0
 *
 * A ref_case computed by the library, through attn.h alone. */
#ifndef ATTN_TESTS_REF_LIBRARY_H
#define ATTN_TESTS_REF_LIBRARY_H

#include "ref_case.h"

/* ref_case_open, but with inputs that are exact in float, the dropout factors
 * of the library's own mask, and the offsets that it finds where none are
 * given. */
ref_case ref_library_case(const ref_features *f, uint64_t seed);

/* Forward and backward in f64 or f32, the scale being off by a factor of
 * 1 + change. */
ref_outputs ref_library(const ref_case *c, attn_dtype dtype, double change);

#endif
