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
 *       tensor  u8 dtype, u8 rank (at most 5; 4 to a library), i64
 *               shape[rank], i64 stride[rank], u64 count, count elements
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

#include "attn_doctor.h"
#include "subject/message.h"

enum { ATTN__MOST_PARAMETERS = 64 };

/* What a child says of its function. */
typedef struct attn__hello {
    attn_parameter parameters[ATTN__MOST_PARAMETERS];
    char names[ATTN__MOST_PARAMETERS][64];
    char defaults[ATTN__MOST_PARAMETERS][64];
    char words[4096];
    int32_t n;
} attn__hello;

/* Read an 'H' or 'E'. False, with the reason in `message`, if it is no 'H'
 * that follows the protocol. */
bool attn__decode_hello(attn__message *from, attn__hello *hello, char *message,
                        size_t size);

/* Give a subject its parameters; `hello` must stay. */
void attn__set_hello(attn_subject *subject, const attn__hello *hello);

/* Write a hello. False if memory is short, as below. */
bool attn__encode_hello(attn__message *message,
                        const attn_parameter *parameters, int32_t n,
                        const char *words);

/* Or an 'E'. */
bool attn__encode_failure(attn__message *message, const char *why);

/* Write a call. False if memory is short. */
bool attn__encode_call(attn__message *message, const attn_value *values,
                       int32_t n);
/* Read a call: at most `most` values, whose tensors and texts are copies for
 * attn__free_values. Their number, or -1 if it does not follow the protocol
 * (or memory is short). */
int32_t attn__decode_call(attn__message *message, attn_value *values,
                          int32_t most);
void attn__free_values(attn_value *values, int32_t n);

/* Write an answer, or a refusal. */
bool attn__encode_answer(attn__message *message, const attn_answer *answer);
bool attn__encode_refusal(attn__message *message, const char *why);
/* Read an answer; what does not follow the protocol is CRASHED, and what
 * memory is short for LOST. */
attn_outcome attn__decode_answer(attn__message *message, attn_answer *answer);

#endif
