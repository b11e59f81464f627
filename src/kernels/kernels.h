/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of kernels as prototypes and as a table. Prototypes come only from
 * kernels.def, so a kernel that is not in it does not compile cleanly. */
#ifndef ATTN_KERNELS_KERNELS_H
#define ATTN_KERNELS_KERNELS_H

#include "core/cpu.h"
#include "kernels/args.h"
#include "kernels/slot.h"

#define ATTN__KERNEL(pass, dtype, isa, needs, rows, real, parts, budget)      \
    void attn__##pass##_##dtype##_##isa(                                      \
        const attn__problem *problem, const attn__unit *unit, void *slot);
#include "kernels/kernels.def"
#undef ATTN__KERNEL

/* What a kernel is for. */
typedef enum attn__pass {
    ATTN__PASS_fwd,
    ATTN__PASS_decode, /* fwd of few queries */
    ATTN__PASS_weights,
    ATTN__PASS_dq,
    ATTN__PASS_dkv,
    ATTN__PASS_dbias,
    ATTN__N_PASSES
} attn__pass;

typedef struct attn__kernel_row {
    attn__kernel *run;
    const char *name; /* without attn__ */
    attn__pass pass;
    attn_dtype dtype;
    attn_isa isa;
    unsigned needs;
    attn__tile_shape tile;
    double budget;
} attn__kernel_row;

extern const attn__kernel_row attn__kernels[];
extern const size_t attn__n_kernels;

/* Where a pass has its kernel of a type (attn_dtype) and a level (attn_isa):
 * its row's number, counted from 1; 0 where there is none. */
extern const uint8_t attn__kernel_number[ATTN__N_PASSES][ATTN_F16 + 1]
                                        [ATTN_ISA_AMX + 1];

#endif
