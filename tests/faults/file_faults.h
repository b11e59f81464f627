/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes that read or write files, played while the k-th operation fails, for
 * every k: allocations (ours by the hook, those of other libraries by standing
 * in for malloc), and by --wrap open, fstat, pread, write, fsync, close and
 * rename. Interrupted and short operations must not be noticed; failed ones
 * must give their status, leak nothing, and leave the folder as it was. */
#ifndef ATTN_TESTS_FILE_FAULTS_H
#define ATTN_TESTS_FILE_FAULTS_H

#include "attn.h"

#include <stdbool.h>

/* The folder that scenes play in, and the file there that they may write. */
extern char fault_folder[], fault_out[64];

typedef struct file_scene {
    const char *name;
    /* *sum is to tell what was read from anything else. */
    attn_status (*play)(unsigned *sum);
    bool writes;   /* fault_out */
    bool no_files; /* opens none */
    bool hook_only; /* nobody allocates but through the hook */
} file_scene;

/* A number that another content would not have. */
unsigned mix(unsigned sum, const void *data, size_t n);

/* Make the folder; put the allocator in. */
void begin_faults(void);
void play_scene(const file_scene *scene);
/* Remove fault_out and the folder, which must be empty but for it. Prints the
 * score; returns what main should. */
int end_faults(void);

#endif
