/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.def as a table. */
#include "kernels/kernels.h"

#include <stdio.h>

#define DTYPE_f64 ATTN_F64
#define DTYPE_f32 ATTN_F32
#define DTYPE_bf16 ATTN_BF16
#define DTYPE_f16 ATTN_F16
#define ISA_scalar ATTN_ISA_SCALAR
#define ISA_avx2 ATTN_ISA_AVX2
#define ISA_avx512 ATTN_ISA_AVX512
#define ISA_amx ATTN_ISA_AMX

const attn__kernel_row attn__kernels[] = {
#define ATTN__KERNEL(pass, dtype, isa, needs, rows, real, budget)             \
    {attn__##pass##_##dtype##_##isa,                                          \
     #pass "_" #dtype "_" #isa,                                               \
     ATTN__PASS_##pass,                                                       \
     DTYPE_##dtype,                                                           \
     ISA_##isa,                                                               \
     needs,                                                                   \
     {real, rows},                                                            \
     budget},
#include "kernels/kernels.def"
#undef ATTN__KERNEL
};

const size_t attn__n_kernels = sizeof attn__kernels / sizeof attn__kernels[0];

size_t attn_kernels_describe(char *text, size_t size)
{
    const attn__cpu *cpu = attn__cpu_facts();
    size_t used = 0;

    for (size_t i = 0; i < attn__n_kernels; i++) {
        const attn__kernel_row *row = &attn__kernels[i];
        const int n = snprintf(
            used < size ? text + used : NULL, used < size ? size - used : 0,
            "%-20s %-6s tile %2zu rows, budget %.2g, %s\n", row->name,
            attn_isa_name(row->isa), row->tile.tile_rows, row->budget,
            (row->needs & ~cpu->features) ? "not on this CPU"
            : row->isa > cpu->isa         ? "above ATTN_ISA"
                                          : "available");

        used += n > 0 ? (size_t)n : 0;
    }
    return used;
}
