/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before everything else (-include) where the reference is compiled
 * in long double: another number type, and other names, so that both live in
 * one program. A name missing here would exist twice: tests/unit/meson.build
 * checks that none does. Tests only. */
#ifndef ATTN_REF_WIDE_H
#define ATTN_REF_WIDE_H

#define ATTN_REF_REAL long double

#define attn_ref_problem_init attn_wide_problem_init
#define attn_ref_broadcast attn_wide_broadcast
#define attn_ref_q_offset attn_wide_q_offset
#define attn_ref_scores attn_wide_scores
#define attn_ref_scores_backward attn_wide_scores_backward
#define attn_ref_visible attn_wide_visible
#define attn_ref_softmax attn_wide_softmax
#define attn_ref_softmax_backward attn_wide_softmax_backward
#define attn_ref_entropy attn_wide_entropy
#define attn_ref_output attn_wide_output
#define attn_ref_output_backward attn_wide_output_backward
#define attn_ref_dropout attn_wide_dropout
#define attn_ref_stages_init attn_wide_stages_init
#define attn_ref_forward attn_wide_forward
#define attn_ref_backward attn_wide_backward
#define attn_ref_varlen_forward attn_wide_varlen_forward
#define attn_ref_varlen_backward attn_wide_varlen_backward
#define attn_ref_rope_frequencies attn_wide_rope_frequencies
#define attn_ref_rope_angles attn_wide_rope_angles
#define attn_ref_rope attn_wide_rope
#define attn_ref_rope_backward attn_wide_rope_backward

#define attn__ref_rows attn__wide_rows
#define attn__ref_row_at attn__wide_row_at
#define attn__ref_at attn__wide_at
#define attn__ref_has_sink attn__wide_has_sink
#define attn__ref_row_is_empty attn__wide_row_is_empty
#define attn__ref_fill attn__wide_fill
#define attn__ref_clear attn__wide_clear
#define attn__ref_count attn__wide_count
#define attn__ref_scratch_open attn__wide_scratch_open
#define attn__ref_scratch_close attn__wide_scratch_close
#define attn__ref_forward_in attn__wide_forward_in
#define attn__ref_gradients_in attn__wide_gradients_in
#define attn__ref_backward_in attn__wide_backward_in

#endif
