/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops behind attn_bench.h. Each fma loop runs `rounds` rounds and
 * returns the operations of one round. */
#ifndef ATTN_LIMITS_LIMITS_H
#define ATTN_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

double attn__fma_f32_scalar(int64_t rounds);
double attn__fma_f64_scalar(int64_t rounds);
double attn__fma_f32_avx2(int64_t rounds);
double attn__fma_f64_avx2(int64_t rounds);
double attn__fma_f32_avx512(int64_t rounds);
double attn__fma_f64_avx512(int64_t rounds);
double attn__tiles_bf16_amx(int64_t rounds);

/* Seconds of a clock that only goes forward. */
double attn__now(void);

/* The median of n numbers, which are sorted. */
double attn__median(double *values, size_t n);

#endif
