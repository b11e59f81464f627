/* SPDX-License-Identifier: Apache-2.0
 *
 * A scene calls one public function and puts what it gave into `out`; the
 * driver makes memory and threads fail under it. */
#ifndef ATTN_TESTS_FAULTS_H
#define ATTN_TESTS_FAULTS_H

#include "attn.h"

#include <stdbool.h>

/* All results of a scene lie in so many bytes. */
#define OUT_BYTES 16384

typedef struct scene {
    const char *name;
    bool allocates; /* whether its declaration says that it may */
    attn_status (*run)(unsigned char *out);
} scene;

extern const scene scenes[];
extern const int n_scenes;

#endif
