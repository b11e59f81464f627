/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ONNX operators share: attributes, engines, the published rule of
 * comparison, and moving heads out of and into the hidden axis. */
#ifndef ATTN_TESTS_CONFORM_ONNX_H
#define ATTN_TESTS_CONFORM_ONNX_H

#include "conform.h"

/* An attribute of the node, or the schema's default, or `otherwise`. */
int64_t attribute_integer(test_case *c, const char *name, int64_t otherwise);
double attribute_number(test_case *c, const char *name, double otherwise);
/* A subgraph attribute, as the sidecar describes it; NULL if not set. */
const json_t *attribute_object(test_case *c, const char *name);
/* Refuse attributes, inputs and outputs that the operator does not know. */
void only_known(test_case *c, const char *attributes, const char *inputs,
                const char *outputs);

/* The reference, f64, f32, and the case's own type if it is narrower; call
 * with n = 0, 1, ... until NULL. The 16-bit ones keep P in fp32 accuracy:
 * their tolerance is about one unit in the last place. */
const engine *onnx_engine(attn_dtype own, int n);

/* Round `got` once to the output's type and compare by the sidecar's rule. An
 * output that is not expected is not looked at. */
void onnx_judge(test_case *c, const engine *e, const char *output,
                const double *got);

/* (B, heads, len, dim) from that, or from (B, len, heads dim) where the head
 * is the slow half of the hidden axis. And the way back, of n numbers. */
const array *split_heads(test_case *c, const array *a, int64_t heads);
double *join_heads(test_case *c, const double *x, int64_t batch, int64_t heads,
                   int64_t len, int64_t dim);

void onnx_attention(test_case *c);
void onnx_flex_attention(test_case *c);
void onnx_rotary_embedding(test_case *c);
void onnx_softmax(test_case *c);

#endif
