/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward: three kernels over one block step (gradient_tmpl.h). dq owns rows,
 * dkv owns keys, dbias owns elements of the bias, so that nothing is added by
 * two units. Where memory is given for it, dkv also forms what its group of
 * keys gives to dq, and dq only sums that: five products instead of seven, and
 * the same bits, since every sum has one order either way. */

#include "kernels/tmpl/gradient_tmpl.h"

#include "kernels/tmpl/dq_tmpl.h"

#include "kernels/tmpl/dkv_tmpl.h"

#include "kernels/tmpl/dbias_tmpl.h"
