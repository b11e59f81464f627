/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of rotary embedding, by the names that attn._rope gives them. */
#ifndef ATTN_BINDING_ROTATION_H
#define ATTN_BINDING_ROTATION_H

#include "attention_call.h"

#include <nanobind/stl/vector.h>

#include <vector>

namespace binding {

/* attn._rope gives the fields of attn_rope_desc by their names. */
struct rope_options {
    attn_rope_desc desc;
    std::vector<double> short_factor, long_factor;

    explicit rope_options(const nb::dict &given)
    {
        attn_rope_init(&desc);
        for (auto [key, value] : given)
            set(nb::cast<std::string>(key), value);
        if (!short_factor.empty())
            desc.short_factor = short_factor.data();
        if (!long_factor.empty())
            desc.long_factor = long_factor.data();
        desc.n_factors = static_cast<int64_t>(
            std::max(short_factor.size(), long_factor.size()));
    }

private:
    void set(const std::string &key, nb::handle value)
    {
        const struct {
            const char *name;
            double *to;
        } reals[] = {{"base", &desc.base},
                     {"factor", &desc.factor},
                     {"attention_factor", &desc.attention_factor},
                     {"beta_fast", &desc.beta_fast},
                     {"beta_slow", &desc.beta_slow},
                     {"mscale", &desc.mscale},
                     {"mscale_all_dim", &desc.mscale_all_dim},
                     {"low_freq_factor", &desc.low_freq_factor},
                     {"high_freq_factor", &desc.high_freq_factor}};
        const struct {
            const char *name;
            int64_t *to;
        } sizes[] = {{"rotary_dim", &desc.rotary_dim},
                     {"original_max_position", &desc.original_max_position},
                     {"max_position", &desc.max_position},
                     {"seq_len", &desc.seq_len}};

        for (const auto &field : reals)
            if (key == field.name)
                *field.to = number(field.name, value);
        for (const auto &field : sizes)
            if (key == field.name)
                *field.to =
                    integer<int64_t>(field.name, value, "a whole number");
        if (key == "scaling")
            desc.scaling =
                static_cast<attn_rope_scaling>(nb::cast<int>(value));
        if (key == "interleaved")
            desc.interleaved = nb::cast<bool>(value);
        if (key == "no_truncate")
            desc.no_truncate = nb::cast<bool>(value);
        if (key == "short_factor")
            short_factor = nb::cast<std::vector<double>>(value);
        if (key == "long_factor")
            long_factor = nb::cast<std::vector<double>>(value);
    }
};

} // namespace binding

#endif
