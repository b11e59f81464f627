# SPDX-License-Identifier: Apache-2.0
"""This package."""

import numpy as np

import attn
from peer import Work
from rows import padded_length, slopes


def cast(x, dtype):
    if dtype == "bf16":
        import ml_dtypes
        return x.astype(ml_dtypes.bfloat16)
    return x.astype(np.float16) if dtype == "f16" else x


def keywords(row, threads):
    words = {"threads": threads, "causal": "bottom_right"} if row.causal \
        else {"threads": threads}
    if row.window is not None:
        words["window"] = (row.window, -1)
    if row.alibi:
        words["alibi_slopes"] = slopes(row)
    if row.padding:
        words["attn_mask"] = np.arange(row.len_k) < padded_length(row)
    return words


def wide(arrays):
    return {name: np.asarray(x, np.float64) for name, x in arrays.items()}


def prepare(row, arrays, threads):
    words = keywords(row, threads)
    q, k, v = (cast(arrays[name], row.dtype) for name in "qkv")
    if row.kind == "forward":
        out = np.empty_like(q)  # in the order of q's memory
        return Work(lambda: attn.attention(q, k, v, out=out, **words),
                    lambda o: wide({"o": o}))
    do = cast(arrays["do"], row.dtype)
    o, lse = attn.attention(q, k, v, return_lse=True, **words)

    def backward():
        return attn.attention_backward(do, q, k, v, o, lse, **words)

    def both():
        made, sums = attn.attention(q, k, v, return_lse=True, **words)
        return attn.attention_backward(do, q, k, v, made, sums, **words)

    return Work(backward if row.kind == "backward" else both,
                lambda g: wide({"dq": g.dq, "dk": g.dk, "dv": g.dv}))
