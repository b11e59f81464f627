/* SPDX-License-Identifier: Apache-2.0
 *
 * What subject_faults calls in a shared library. */
#include <stdint.h>
#include <string.h>

void same(const double *q, double *out, int64_t n, int64_t d);

void same(const double *q, double *out, int64_t n, int64_t d)
{
    memcpy(out, q, (size_t)(n * d) * sizeof *q);
}
