/* SPDX-License-Identifier: Apache-2.0
 *
 * What every template stands on: kernel names, unrolling, elements.
 * KERNEL(pass) is attn__<pass>_<NAME>, as kernels.def and gemm.def declare it.
 */

#include "kernels/kernels.h"
#include "kernels/real_math.h"
#include "kernels/slot.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define KERNEL_JOIN(pass, name) attn__##pass##_##name
#define KERNEL_NAMED(pass, name) KERNEL_JOIN(pass, name)
#define KERNEL(pass) KERNEL_NAMED(pass, NAME)

/* Loops over register tiles must be unrolled for acc to be registers. */
#define UNROLL_TEXT(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL(n) UNROLL_TEXT(unroll n)
#else
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

/* A function that is compiled for itself: what a loop keeps in registers then
 * does not depend on what is around its calls. */
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

#include "kernels/tmpl/storage_tmpl.h"
