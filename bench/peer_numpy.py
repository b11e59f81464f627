# SPDX-License-Identifier: Apache-2.0
"""NumPy as people write it, but in place and a KV head at a time."""

import numpy as np

from peer import NotSupported, Work
from rows import float_mask, seen


def prepare(row, arrays, threads):
    del threads  # the environment tells the BLAS
    if row.kind != "forward":
        raise NotSupported("forward alone")
    if row.dtype not in ("f64", "f32"):
        raise NotSupported(f"no products of {row.dtype}")
    q, k, v = (arrays[name] for name in "qkv")
    add = None if seen(row) is None and not row.alibi else float_mask(row)[0]
    scale = q.dtype.type(row.dim ** -0.5)
    g = row.group
    o = np.empty_like(q)

    def call():
        for b in range(row.batch):
            for h in range(row.heads_kv):
                heads = slice(h * g, h * g + g)
                s = q[b, heads] * scale @ k[b, h].T
                if add is not None:
                    s += add[heads] if len(add) > 1 else add
                s -= s.max(-1, keepdims=True)
                np.exp(s, out=s)
                s /= s.sum(-1, keepdims=True)
                np.matmul(s, v[b, h], out=o[b, heads])
        return o

    return Work(call, lambda made: {"o": made})
