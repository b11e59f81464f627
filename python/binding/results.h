/* SPDX-License-Identifier: Apache-2.0
 *
 * The types and shapes of what calls return. */
#ifndef ATTN_BINDING_RESULTS_H
#define ATTN_BINDING_RESULTS_H

#include "arrays.h"

namespace binding {

inline attn_dtype stats_dtype(attn_dtype dtype)
{
    return dtype == ATTN_F64 || dtype == ATTN_F32 ? ATTN_F64 : ATTN_F32;
}

inline attn_dtype weights_dtype(attn_dtype dtype)
{
    return dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
}

/* A gradient of the shape and type of `model`, an input as it was given. */
inline void make_gradient(const maker &make, const attn_input &model,
                          bool small, output *to)
{
    const bool narrow = model.dtype == ATTN_BF16 || model.dtype == ATTN_F16;

    make.make(small && narrow ? ATTN_F32 : model.dtype, model.rank,
              model.shape, to);
}

/* The first alone, or a tuple of all that were made. */
inline nb::object finish_results(const maker &make, const output *const *made,
                                 int n)
{
    nb::list results;

    for (int i = 0; i < n; i++)
        if (made[i]->array.is_valid())
            results.append(make.finish(*made[i]));
    return results.size() == 1 ? nb::object(results[0]) : nb::tuple(results);
}

} // namespace binding

#endif
