/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product by another library, in builds with -Dblas. */
#ifndef ATTN_RUN_GEMM_BLAS_H
#define ATTN_RUN_GEMM_BLAS_H

#include "kernels/gemm.h"

/* Compute g and return true, or return false and have touched nothing: another
 * type, or strides that a BLAS does not take. c must not be empty. */
bool attn__gemm_by_blas(const attn__gemm *g);

#endif
