/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_subject.h: subjects for the doctor out of other people's programs: a
 * Python function, a symbol of a shared library, a command. Each runs in a
 * child process: that it crashes or hangs is an answer, not the end. POSIX
 * only, but for attn_subject_open_exchange. Since 0.1. */
#ifndef ATTN_SUBJECT_H
#define ATTN_SUBJECT_H

#include "attn_doctor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attn_subject_options {
    uint32_t size;         /* sizeof(attn_subject_options) */
    const char *python;    /* the interpreter; NULL = "python3" */
    const char *signature; /* of a C symbol: "q f32[n,d], ..., n int"; of a
                              command: the names of its inputs, "q, k, v" */
    const char *scratch;   /* where a command's files go; NULL = "." */
    double timeout;        /* seconds for one call; 0 = 10 */
} attn_subject_options;

ATTN_API void attn_subject_options_init(attn_subject_options *options);

/* "FILE.py:FUNCTION" or "LIBRARY.so:SYMBOL". On OK *subject is the caller's
 * to close. E_ARG for words that make no sense, E_IO where it cannot be
 * loaded: the diag has the reason. */
ATTN_API attn_status attn_subject_open(const char *what,
                                       const attn_subject_options *options,
                                       attn_subject **subject,
                                       attn_diag *diag);
/* A command that reads the .npz file {in} and writes the .npz file {out}. */
ATTN_API attn_status attn_subject_open_command(
    const char *command, const attn_subject_options *options,
    attn_subject **subject, attn_diag *diag);
/* What does a child's part in this process, in whatever language: takes the
 * bytes of a call and points *reply at those of its answer, which stay until
 * the next. 0: it cannot be called any more. */
typedef int attn_exchange(void *ctx, const void *call, size_t n_call,
                          const void **reply, size_t *n_reply);
/* `hello` is the first message; docs/doctor.md has all of them. */
ATTN_API attn_status attn_subject_open_exchange(
    const char *name, const void *hello, size_t n_hello,
    attn_exchange *exchange, void *ctx, attn_subject **subject,
    attn_diag *diag);
/* Ends the child. */
ATTN_API void attn_subject_close(attn_subject *subject);

#ifdef __cplusplus
}
#endif

#endif
