# SPDX-License-Identifier: Apache-2.0
"""The functions that lessons on attention write by hand, under their names.

They compute with this library and answer as the lessons do: ``attention``
returns (out, A), and a row that may look nowhere is NaN, the sign that its
mask is wrong. Compare your own with them, or use them while you write the next
chapter. Lists and integers are fine; they become float64.

>>> from attn.lessons import attention, causal_mask
>>> out, A = attention([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [3, 4]],
...                    mask=causal_mask(2))
>>> A.round(2)
array([[1.  , 0.  ],
       [0.33, 0.67]])
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._attention import attention as _attention
from ._attention import weights as _weights
from ._keywords import Array
from ._layer import multi_head as _multi_head

__all__ = ["attention", "causal_mask", "causal_mha", "self_attention", "show",
           "single_head_attention", "softmax"]


def _real(x):
    """An array of numbers with a point; arrays of other makers pass."""
    if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        return x
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "iub" else x


def _mask_keywords(mask):
    """What a lesson calls a mask: booleans, ones and zeros, or something to
    be added."""
    if mask is None:
        return {}
    mask = np.asarray(mask)
    if mask.dtype == bool:
        return {"attn_mask": mask}
    if mask.dtype.kind in "iu" and not (mask < 0).any():
        if ((mask != 0) & (mask != 1)).any():
            raise ValueError("mask: whole numbers must be 0 (hide) or 1")
        return {"attn_mask": mask == 1}
    if (mask > 0).any():
        if ((mask != 0) & (mask != 1)).any():
            raise ValueError("mask: is neither ones and zeros nor 0 and less, "
                             "to be added to the scores")
        return {"attn_mask": mask == 1}
    return {"attn_bias": mask.astype(np.float64)}


def softmax(x: Array, axis: int = -1) -> np.ndarray:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    x may have any shape; the result has it too, float64 for integers and
    float64. Rows of -inf give NaN.

    >>> from attn.lessons import softmax
    >>> softmax([1000.0, 1000.0, -np.inf])
    array([0.5, 0.5, 0. ])
    """
    x = np.moveaxis(np.atleast_1d(_real(x)), axis, -1)
    rows = np.ascontiguousarray(x.reshape(-1, x.shape[-1]))
    # Attention of no components scores 0 everywhere: what is left is the
    # softmax of its bias.
    nothing = np.empty((max(rows.shape), 0), rows.dtype)
    probs = _weights(nothing[:rows.shape[0]], nothing[:rows.shape[1]],
                     attn_bias=rows, empty_rows="nan")
    return np.moveaxis(probs.reshape(x.shape).astype(x.dtype), -1, axis)


def causal_mask(n: int) -> np.ndarray:
    """(n, n) bool: True where query i may look at key j <= i.

    >>> from attn.lessons import causal_mask
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    return np.tri(n, dtype=bool)


def attention(Q: Array, K: Array, V: Array,
              mask: Array | None = None) -> tuple[Any, Any]:
    """``A = softmax(Q K^T / sqrt(d_k) + mask)``, ``out = A V``.

    Q, K, V
        (n, d), or with leading axes (heads, n, d), (batch, heads, n, d).
    mask
        True or 1 = look, False or 0 = don't; or floats of 0 and less (0 and
        -inf) that are added to the scores.

    Returns (out, A). Where a row of the mask hides everything, both are NaN.
    """
    return _attention(_real(Q), _real(K), _real(V), empty_rows="nan",
                      return_weights=True, **_mask_keywords(mask))


def self_attention(X: Array, Wq: Array, Wk: Array, Wv: Array,
                   mask: Array | None = None) -> tuple[Any, Any]:
    """``attention(X Wq, X Wk, X Wv, mask)``: (out, A).

    X is (n, d_model) or (batch, n, d_model), the weights (d_model, d).
    """
    X, Wq, Wk, Wv = map(_real, (X, Wq, Wk, Wv))
    return attention(X @ Wq, X @ Wk, X @ Wv, mask)


def single_head_attention(X: Array, W_Q: Array, W_K: Array,
                          W_V: Array) -> Any:
    """Causal self-attention of one head: Y, with Y[0] == (X W_V)[0].

    >>> from attn.lessons import single_head_attention
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> Y = single_head_attention(X, np.eye(2), np.eye(2), np.eye(2))
    >>> bool((Y[0] == X[0]).all())
    True
    """
    X, W_Q, W_K, W_V = map(_real, (X, W_Q, W_K, W_V))
    return _attention(X @ W_Q, X @ W_K, X @ W_V, causal=True)


def causal_mha(x: Array, W_q: Array, W_k: Array, W_v: Array, W_o: Array,
               n_heads: int) -> tuple[Any, Any]:
    """Causal multi-head self-attention: (y, w).

    x is (T, d) or (batch, T, d), the weights (d, d); head i owns columns
    i * d / n_heads to (i + 1) * d / n_heads. w is (n_heads, T, T), with the
    batch before. ValueError where n_heads does not divide d.
    """
    return _multi_head(*map(_real, (x, W_q, W_k, W_v, W_o)), heads=n_heads,
                       causal=True, return_weights=True)


class Picture:
    """A heat map: a notebook shows it, ``save`` writes it."""

    def __init__(self, values: Array, titles: list[str],
                 row_labels: list[str], column_labels: list[str]):
        self._figure = (values, titles, row_labels, column_labels)

    @property
    def svg(self) -> str:
        """As SVG text."""
        return _core.heat_map(*self._figure, False).decode()

    @property
    def png(self) -> bytes:
        """As the bytes of a PNG; NotImplementedError without libpng."""
        return _core.heat_map(*self._figure, True)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .svg or .png file, by its name."""
        data = self.png if str(path).endswith(".png") else self.svg.encode()
        with open(path, "wb") as file:
            file.write(data)


def show(A: Array, tokens: Sequence[str] | None = None) -> Picture:
    """Weights as a heat map: rows are queries, columns are keys.

    A
        (n, m), or (heads, n, m): one panel a head.
    tokens
        Names for rows and columns.

    Returns a ``Picture``, which a notebook shows.

    >>> from attn.lessons import show, softmax
    >>> show(softmax(np.eye(3)), ["the", "cat", "sat"]).svg[:4]
    '<svg'
    """
    A = _real(A)
    if A.ndim not in (2, 3):
        raise ValueError(f"A: has {A.ndim} axes; (n, m) and (heads, n, m) "
                         "can be shown")
    names = [str(token) for token in tokens or []]
    for n, axis in ((A.shape[-2], "rows"), (A.shape[-1], "columns")):
        if names and len(names) not in (A.shape[-2], A.shape[-1]):
            raise ValueError(f"tokens: are {len(names)}, A has {n} {axis}")
    titles = [f"head {h}" for h in range(A.shape[0])] if A.ndim == 3 else []
    rows = names if len(names) == A.shape[-2] else []
    columns = names if len(names) == A.shape[-1] else []
    return Picture(A, titles, rows, columns)
