/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.def as a table. */
#include "kernels/kernels.h"

#define DTYPE_f64 ATTN_F64
#define DTYPE_f32 ATTN_F32
#define DTYPE_bf16 ATTN_BF16
#define DTYPE_f16 ATTN_F16
#define ISA_scalar ATTN_ISA_SCALAR
#define ISA_avx2 ATTN_ISA_AVX2
#define ISA_avx512 ATTN_ISA_AVX512
#define ISA_amx ATTN_ISA_AMX

const attn__kernel_row attn__kernels[] = {
#define ATTN__KERNEL(pass, dtype, isa, needs, rows, real, parts, budget)      \
    {attn__##pass##_##dtype##_##isa,                                          \
     #pass "_" #dtype "_" #isa,                                               \
     ATTN__PASS_##pass,                                                       \
     DTYPE_##dtype,                                                           \
     ISA_##isa,                                                               \
     needs,                                                                   \
     {real, rows, parts},                                                     \
     budget},
#include "kernels/kernels.def"
#undef ATTN__KERNEL
};

const size_t attn__n_kernels = sizeof attn__kernels / sizeof attn__kernels[0];

enum {
    ATTN__KERNEL_BEFORE_ALL,
#define ATTN__KERNEL(pass, dtype, isa, needs, rows, real, parts, budget)      \
    ATTN__NUMBER_##pass##_##dtype##_##isa,
#include "kernels/kernels.def"
#undef ATTN__KERNEL
};

const uint8_t attn__kernel_number[ATTN__N_PASSES][ATTN_F16 + 1]
                                 [ATTN_ISA_AMX + 1] = {
#define ATTN__KERNEL(pass, dtype, isa, needs, rows, real, parts, budget)      \
    [ATTN__PASS_##pass][DTYPE_##dtype][ISA_##isa] =                           \
        ATTN__NUMBER_##pass##_##dtype##_##isa,
#include "kernels/kernels.def"
#undef ATTN__KERNEL
};
