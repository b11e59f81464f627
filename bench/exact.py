# SPDX-License-Identifier: Apache-2.0
"""Attention in fp64 (for f64 rows in extended precision), as far as errors are
measured: some rows of o, some heads of gradients, in plain formulas."""

import numpy as np

from report import Error
from rows import bias, seen

ROWS = 256    # of each head, evenly spread, first and last among them
BLOCK = 512   # rows at a time


def sampled_rows(row):
    n = min(ROWS, row.len_q)
    return np.unique(np.linspace(0, row.len_q - 1, n).round().astype(int))


def wide(row, x):
    return x.astype(np.longdouble if row.dtype == "f64" else np.float64)


def weights(row, arrays, b, h, rows):
    """Of head h and some rows, (rows, len_k)."""
    q = wide(row, arrays["q"][b, h, rows])
    k = wide(row, arrays["k"][b, h // row.group])
    s = q @ k.T * row.dim ** -0.5
    add, see = bias(row, rows), seen(row, rows)
    if add is not None:
        s += add[h]
    if see is not None:
        s[~see] = -np.inf
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1, keepdims=True)
    return s


class Forward:
    """o at sampled rows of every head."""

    def __init__(self, row, arrays):
        self.rows = sampled_rows(row)
        self.o = wide(row, np.empty((row.batch, row.heads, len(self.rows),
                                     row.dim)))
        for b in range(row.batch):
            for h in range(row.heads):
                v = wide(row, arrays["v"][b, h // row.group])
                self.o[b, h] = weights(row, arrays, b, h, self.rows) @ v

    def errors(self, read):
        """{"o": Error}; `read(name)` gives the peer's array."""
        return {"o": error([(read("o")[:, :, self.rows], self.o)])}


class Backward:
    """dq, dk, dv of the first and the last KV head, whole."""

    def __init__(self, row, arrays):
        self.group = row.group
        self.heads = {(0, 0): None,
                      (row.batch - 1, row.heads_kv - 1): None}
        for b, g in self.heads:
            self.heads[b, g] = self.head(row, arrays, b, g)

    @staticmethod
    def head(row, arrays, b, g):
        """dq (group, len_q, dim), dk and dv (len_k, dim)."""
        k, v = (arrays[name][b, g].astype(np.float64) for name in "kv")
        dq = np.empty((row.group, row.len_q, row.dim))
        dk, dv = np.zeros_like(k), np.zeros_like(v)
        for member in range(row.group):
            h = g * row.group + member
            for first in range(0, row.len_q, BLOCK):
                rows = np.arange(first, min(first + BLOCK, row.len_q))
                p = weights(row, arrays, b, h, rows)
                do = arrays["do"][b, h, rows].astype(np.float64)
                q = arrays["q"][b, h, rows].astype(np.float64)
                dp = do @ v.T
                ds = p * (dp - (p * dp).sum(-1, keepdims=True))
                ds *= row.dim ** -0.5
                dq[member, rows] = ds @ k
                dk += ds.T @ q
                dv += p.T @ do
        return dq, dk, dv

    def errors(self, read):
        made = {name: read(name) for name in ("dq", "dk", "dv")}
        pairs = {name: [] for name in made}
        for (b, g), (dq, dk, dv) in self.heads.items():
            own = slice(g * self.group, (g + 1) * self.group)
            pairs["dq"].append((made["dq"][b, own], dq))
            pairs["dk"].append((made["dk"][b, g], dk))
            pairs["dv"].append((made["dv"][b, g], dv))
        return {name: error(found) for name, found in pairs.items()}


def error(pairs):
    """Of [(got, wanted)]: the largest error, and the root of the mean square,
    which chance moves less. What is not finite is infinitely wrong."""
    off = np.concatenate([np.abs(got - want).ravel() for got, want in pairs])
    if not np.isfinite(off).all():
        return Error(float("inf"), float("inf"))
    return Error(float(off.max()), float(np.sqrt((off * off).mean())))


def exact(row, arrays):
    return (Forward if row.kind == "forward" else Backward)(row, arrays)
