# SPDX-License-Identifier: Apache-2.0
"""Random problems for hypothesis: shapes with distinct and with coinciding
sizes, zero among them, every feature alone and together."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from reference import Problem

FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


@st.composite
def shapes(draw):
    """(batch, heads_kv, group, len_q, len_k, dim, dim_v)"""
    if draw(st.booleans()):  # one number wherever it can stand
        n = draw(st.sampled_from([1, 2, 3, 8]))
        return n, n, 1, n, n, n, n
    batch = draw(st.integers(0, 3))
    heads_kv = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 2, 5]))
    len_q = draw(st.sampled_from([0, 1, 2, 7, 17, 33]))
    len_k = draw(st.sampled_from([0, 1, 3, 8, 16, 65, 130]))
    dim = draw(st.sampled_from([0, 1, 4, 5, 16, 33]))
    dim_v = draw(st.sampled_from([0, 1, 3, 8, 18]))
    return batch, heads_kv, group, len_q, len_k, dim, dim_v


def broadcast_shape(draw, full):
    """A shape that broadcasts to `full` from the right."""
    rank = draw(st.integers(2, 4))
    return tuple(1 if draw(st.booleans()) else n for n in full[4 - rank:])


@st.composite
def problems(draw, dtypes=(np.float64, np.float32), backward=False):
    batch, heads_kv, group, len_q, len_k, dim, dim_v = draw(shapes())
    heads = heads_kv * group
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(dtypes))

    def normal(*shape):
        return rng.normal(size=shape).astype(dtype)

    words = {}
    full = (batch, heads, len_q, len_k)
    offset = draw(st.sampled_from(["none", "one", "each"]))
    if offset == "one":
        words["q_offset"] = draw(st.integers(-5, len_k + 5))
    elif offset == "each":
        words["q_offset"] = rng.integers(-5, len_k + 5, size=batch)
    if draw(st.booleans()):
        words["k_lengths"] = rng.integers(
            0, len_k + 1, size=batch,
            dtype=draw(st.sampled_from([np.int32, np.int64])))
    corners = [False, "top_left", "bottom_right"]
    if len_q == len_k or offset != "none":
        corners.append(True)
    words["causal"] = draw(st.sampled_from(corners))
    if draw(st.booleans()):
        words["window"] = (draw(st.integers(-1, 9)), draw(st.integers(-1, 9)))
    if draw(st.booleans()):
        words["softcap"] = draw(st.sampled_from([0.5, 2.0, 30.0]))
    if draw(st.booleans()):
        words["scale"] = draw(st.sampled_from([0.0, -0.5, 1.0]))
    if draw(st.booleans()):
        shape = broadcast_shape(draw, full)
        words["attn_mask"] = rng.random(shape) < 0.7
    if draw(st.booleans()):
        bias = normal(*broadcast_shape(draw, full))
        if draw(st.booleans()):
            bias[rng.random(bias.shape) < 0.1] = -np.inf
        words["attn_bias"] = bias
    if draw(st.booleans()):
        shape = (batch, heads) if draw(st.booleans()) else (heads,)
        words["alibi_slopes"] = rng.random(shape).astype(
            draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        words["sinks"] = normal(heads).astype(
            draw(st.sampled_from([np.float32, np.float64])))
    p = Problem(normal(batch, heads, len_q, dim),
                normal(batch, heads_kv, len_k, dim),
                normal(batch, heads_kv, len_k, dim_v), words)
    if not backward:
        return p
    do = normal(batch, heads, len_q, dim_v)
    dlse = rng.normal(size=full[:3]) if draw(st.booleans()) else None
    return p, do, dlse
