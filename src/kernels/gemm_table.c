/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.def as a table. */
#include "kernels/gemm.h"

#include "core/cpu.h"

#define DTYPE_f64 ATTN_F64
#define DTYPE_f32 ATTN_F32
#define DTYPE_bf16 ATTN_BF16
#define DTYPE_f16 ATTN_F16
#define ISA_scalar ATTN_ISA_SCALAR
#define ISA_avx2 ATTN_ISA_AVX2
#define ISA_avx512 ATTN_ISA_AVX512
#define ISA_amx ATTN_ISA_AMX

const attn__gemm_row attn__gemm_rows[] = {
#define ATTN__GEMM(dtype, isa, needs, real, budget)                           \
    {attn__gemm_##dtype##_##isa, "gemm_" #dtype "_" #isa, DTYPE_##dtype,      \
     ISA_##isa,                  needs,                   real,               \
     budget},
#include "kernels/gemm.def"
#undef ATTN__GEMM
};

const size_t attn__n_gemm_rows =
    sizeof attn__gemm_rows / sizeof attn__gemm_rows[0];
