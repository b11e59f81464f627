/* SPDX-License-Identifier: Apache-2.0
 *
 * What this CPU and the operating system allow, found out once. ATTN_ISA in
 * the environment only lowers the level. */
#ifndef ATTN_CORE_CPU_H
#define ATTN_CORE_CPU_H

#include "attn.h"

#include <stdbool.h>

/* Feature bits that kernels.def may ask for. */
#define ATTN__CPU_AVX2_FMA 0x1u /* AVX2, FMA, F16C */
#define ATTN__CPU_AVX512 0x2u   /* F, BW, DQ, VL */
#define ATTN__CPU_AMX_BF16 0x4u /* tiles and bf16, granted by the system */

typedef struct attn__cpu {
    unsigned features; /* what the hardware and the system offer */
    attn_isa best;     /* the level that they make up */
    attn_isa isa;      /* and after ATTN_ISA */
    char model[64];
} attn__cpu;

/* The facts; found out on the first call, by whichever thread makes it. */
const attn__cpu *attn__cpu_facts(void);

/* Whether a kernel of level `isa` that needs these features may run here. */
static inline bool attn__cpu_runs(unsigned needs, attn_isa isa, attn_isa limit)
{
    const attn__cpu *cpu = attn__cpu_facts();

    return (needs & ~cpu->features) == 0 && isa <= cpu->isa &&
           (limit == ATTN_ISA_BEST || isa <= limit);
}

/* Whether the system lets this process use AMX's registers; asked once, when a
 * plan first would (Linux: arch_prctl, ARCH_REQ_XCOMP_PERM). */
bool attn__cpu_may_use_amx(void);

/* The level that `name` spells, or ATTN_ISA_BEST for anything else. */
attn_isa attn__isa_from_name(const char *name);

#endif
