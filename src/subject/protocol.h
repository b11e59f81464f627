/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between the doctor and a child. Little-endian, each a u32
 * length and then:
 *
 *   from the child, once
 *     'H' u32 n, n x (text name, u8 optional, text default), text words
 *     'E' text: it could not be loaded
 *   to the child
 *     u32 n, n x (i32 parameter, u8 kind, value)
 *       tensor  u8 dtype, u8 rank, i64 shape[rank], i64 stride[rank],
 *               u64 count, count elements
 *       real f64 · integer i64 · boolean u8 · pair i64 i64 · text · none
 *   from the child, once for each of these
 *     'A' f64 seconds, u32 mutated, u32 n, n x (u8 dtype, u8 rank,
 *         i64 shape[rank], f64 elements)
 *     'R' text: it refused
 *
 * text is a u32 length and so many bytes of UTF-8. dtype and kind are the
 * numbers of attn_dtype and attn_value_kind. */
#ifndef ATTN_SUBJECT_PROTOCOL_H
#define ATTN_SUBJECT_PROTOCOL_H

#include "subject/child.h"

/* Write a call. False if memory is short. */
bool attn__encode_call(attn__message *message, const attn_value *values,
                       int32_t n);
/* Read an answer; what does not follow the protocol is CRASHED. */
attn_outcome attn__decode_answer(attn__message *message, attn_answer *answer);

/* Send a call and take its answer. A crash or a timeout ends the child, adds
 * to *ends and says so in the answer's message. */
attn_outcome attn__converse(attn__child *child, const attn_value *values,
                            int32_t n, double timeout, int *ends,
                            attn_answer *answer);

#endif
