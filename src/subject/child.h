/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process at the other end of a socket, and messages to and from it:
 * a u32 length, then so many bytes. Every wait has an end. */
#ifndef ATTN_SUBJECT_CHILD_H
#define ATTN_SUBJECT_CHILD_H

#include <sys/types.h>

#include "attn_doctor.h"
#include "subject/message.h"

typedef struct attn__child {
    pid_t pid; /* 0 = none */
    int link;
} attn__child;

/* Run argv[0] (found in PATH) with the socket as its fds 0 and 1. */
bool attn__child_start(attn__child *child, char *const argv[]);
/* A copy of this process at the other end: child->pid is 0 in the copy, whose
 * link is open and which ends with attn__child_leave. */
bool attn__child_fork(attn__child *child);
void attn__child_leave(void);
/* Kill it, if it is there, and forget it. `message` (size) may be NULL; it
 * receives how it had ended, if it had. */
void attn__child_end(attn__child *child, char *message, size_t size);

/* ANSWERED, CRASHED (the other end is closed), TIMED_OUT, or LOST where memory
 * is short. */
attn_outcome attn__child_send(attn__child *child, const attn__message *message,
                              double seconds);
attn_outcome attn__child_receive(attn__child *child, attn__message *message,
                                 double seconds);

/* A subject that ended so often is lost. Calls in a layout that is only guessed
 * may crash right code, so some crashes are put up with; a timeout costs more
 * and counts as ATTN__TIMEOUT_ENDS of them. */
enum { ATTN__MOST_ENDS = 8, ATTN__TIMEOUT_ENDS = ATTN__MOST_ENDS / 2 };

/* Send a call and take its answer. A crash or a timeout ends the child, adds
 * to *ends and says so in the answer's message; so does want of memory, which
 * is LOST and nobody's fault. */
attn_outcome attn__converse(attn__child *child, const attn_value *values,
                            int32_t n, double timeout, int *ends,
                            attn_answer *answer);

#endif
