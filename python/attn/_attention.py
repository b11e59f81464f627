# SPDX-License-Identifier: Apache-2.0
"""Attention, its gradients, its weights, and the parts that go with it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from . import _arrays, _core
from ._keywords import Array, Keywords, features, real, whole

_STAGES = {"raw": 0, "softcapped": 1, "biased": 2, "probs": 3}


def attention(q: Array, k: Array, v: Array, *,
              attn_mask: Array | None = None,
              attn_bias: Array | None = None,
              causal: bool | Literal["top_left", "bottom_right"] = False,
              window: tuple[int, int] | None = None,
              scale: float | None = None,
              softcap: float = 0.0,
              alibi_slopes: Array | None = None,
              sinks: Array | None = None,
              k_lengths: Array | int | None = None,
              q_offset: Array | int | None = None,
              cu_seqlens_q: Array | None = None,
              cu_seqlens_k: Array | None = None,
              dropout_p: float = 0.0,
              seed: int = 0,
              offset: int = 0,
              empty_rows: Literal["zero", "nan"] = "zero",
              precision: Literal["standard", "high"] = "standard",
              layout: Literal["bhsd", "bshd"] = "bhsd",
              threads: int | None = None,
              out: Array | None = None,
              return_lse: bool = False,
              return_weights: bool = False,
              return_entropy: bool = False) -> Any:
    """Exact attention: ``softmax(scale * q k^T + ...) v``, without the matrix.

    With g = h // (H // H_kv) and p = i + q_offset the position of query i on
    the key axis::

        s_ij = scale * <q_i, k_j>
        s_ij = softcap * tanh(s_ij / softcap)            if softcap > 0
        s_ij = s_ij + attn_bias_ij - alibi_slopes_h * |p - j|
        hidden unless mask, causal, window, k_lengths and sequence all agree
        lse_i = ln(sum_j exp(s_ij) [+ exp(sinks_h)])
        w_ij  = exp(s_ij - lse_i)
        o_i   = sum_j dropout(w_ij) v_j

    (Vaswani et al. 2017, arXiv:1706.03762; computed blockwise with an online
    softmax, Milakov and Gimelshein 2018, arXiv:1805.02867, so that memory
    grows with L, not with its square. ``docs/numerics.md`` bounds the error.)

    Parameters
    ----------
    q, k, v
        (L, D), (H, L, D) or (B, H, L, D), all of one rank and of one type:
        float64, float32, float16 or bfloat16. H of k and v must divide that of
        q; D of v is free. With ``layout="bshd"`` the axes are (L, H, D) and
        (B, L, H, D). NumPy arrays, and whatever has ``__dlpack__`` or the
        buffer protocol; strides are respected, nothing is copied.
    attn_mask
        bool, True = attend; broadcasts from the right to (B, H, Lq, Lk).
    attn_bias
        float64, float32 or the type of q, added to the scores; broadcasts
        likewise; -inf hides.
    causal
        ``"top_left"``: key j <= query i. ``"bottom_right"``: the last query
        sees every key. ``True``: either, where they agree (Lq = Lk, or
        q_offset given).
    window
        (left, right), inclusive: p - left <= j <= p + right; -1 = unbounded.
    scale
        Default 1 / sqrt(D).
    softcap
        0 = off.
    alibi_slopes
        (H,) or (B, H).
    sinks
        (H,): one logit per head that joins the denominator.
    k_lengths
        (B,) integers, or one for all: keys at and beyond it are hidden.
    q_offset
        (B,) integers, or one for all. Default: 0 for top_left and for
        Lq = Lk; else (k_length or Lk) - Lq.
    cu_seqlens_q, cu_seqlens_k
        (n + 1,) integers: n sequences packed as (T, H, D), from
        cu_seqlens[i] to cu_seqlens[i + 1]. No mask or bias then.
    dropout_p, seed, offset
        The probability of dropping a weight, and the key and counter of
        Philox4x32-10 (Salmon et al. 2011): ``attn.dropout_mask`` shows it.
    empty_rows
        A row that sees no key is 0 (lse -inf), or ``"nan"``.
    precision
        ``"high"`` keeps the weights of 16-bit inputs in full.
    threads
        1 to 1024; None = all cores, or fewer where there is little to do. The
        bits of the result don't depend on it.
    out
        Where o is written, of its shape and type; it is also what is returned.
    return_lse, return_weights, return_entropy
        Return (o, lse, weights, entropy) less those not asked for. lse
        (B, H, Lq), natural logarithm, and entropy, in nats: float64 for
        float64 and float32 inputs, else float32. weights (B, H, Lq, Lk),
        before dropout: float64 for float64, else float32. All less the axes
        that q lacks, in every layout; packed lse is (H, T).

    Returns
    -------
    o
        As q, with D of v; an array of the kind of q.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        One sentence: the argument, its value and the rule. Nothing was
        written then.

    Examples
    --------
    >>> import numpy as np, attn
    >>> q = k = v = np.eye(3)
    >>> o, w = attn.attention(q, k, v, causal=True, return_weights=True)
    >>> w.round(2)
    array([[1.  , 0.  , 0.  ],
           [0.36, 0.64, 0.  ],
           [0.26, 0.26, 0.47]])
    """
    return _core.attention(
        q, k, v,
        (attn_mask, attn_bias, causal, window, scale, softcap, alibi_slopes,
         sinks, k_lengths, q_offset, cu_seqlens_q, cu_seqlens_k, dropout_p,
         seed, offset, empty_rows, precision, layout, threads),
        out, 1 if return_lse else 0, bool(return_weights),
        bool(return_entropy), None)


class Gradients:
    """Gradients of a loss: ``dq, dk, dv = g``, and the others by their names.

    dq, dk, dv
        As q, k, v.
    dbias
        As attn_bias (summed over the axes that it broadcasts), or None.
    dsinks, dslopes
        As sinks and alibi_slopes, float32 for 16-bit ones; or None.
    """

    __slots__ = ("dq", "dk", "dv", "dbias", "dsinks", "dslopes")

    def __init__(self, dq: Array, dk: Array, dv: Array,
                 dbias: Array | None = None, dsinks: Array | None = None,
                 dslopes: Array | None = None):
        self.dq, self.dk, self.dv = dq, dk, dv
        self.dbias, self.dsinks, self.dslopes = dbias, dsinks, dslopes

    def __iter__(self) -> Iterator[Array]:
        return iter((self.dq, self.dk, self.dv))

    def __repr__(self) -> str:
        given = [f"{name}{tuple(getattr(self, name).shape)}"
                 for name in self.__slots__ if getattr(self, name) is not None]
        return f"Gradients({', '.join(given)})"


def attention_backward(do: Array, q: Array, k: Array, v: Array, o: Array,
                       lse: Array, *, dlse: Array | None = None,
                       **keywords: Unpack[Keywords]) -> Gradients:
    """The gradients of attention, from do = d loss / d o.

    Give it the o and lse that ``attention(..., return_lse=True)`` returned and
    the very keywords of that call (``attention_vjp`` remembers them for you).
    Scores are computed again, never stored; with w the weights after dropout
    and D_i = <do_i, o_i> - dlse_i::

        dv_j = sum_i w_ij do_i         ds_ij = w_ij (<do_i, v_j> - D_i)
        dq_i = scale sum_j ds_ij k_j   dk_j  = scale sum_i ds_ij q_i

    (Dao et al. 2022, arXiv:2205.14135, appendix B.)

    Parameters
    ----------
    do, o
        As q, with D of v.
    q, k, v
        As for ``attention``.
    lse, dlse
        (B, H, Lq), float64 or float32, less the axes that q lacks. dlse is the
        gradient by lse, where the loss uses it.
    **keywords
        Those of ``attention`` up to ``threads``.

    Returns
    -------
    Gradients
        Unpacks to dq, dk, dv; has .dbias, .dsinks, .dslopes.

    Raises
    ------
    As ``attention``; NotImplementedError for ``empty_rows="nan"``.

    Examples
    --------
    >>> import numpy as np, attn
    >>> q = k = v = np.eye(3)
    >>> o, lse = attn.attention(q, k, v, return_lse=True)
    >>> dq, dk, dv = attn.attention_backward(np.ones((3, 3)), q, k, v, o, lse)
    >>> bool(np.allclose(dv.sum(axis=0), 3))     # columns of w sum to Lq
    True
    """
    return Gradients(*_core.backward(do, q, k, v, o, lse, features(**keywords),
                                     dlse, 63))


def attention_vjp(q: Array, k: Array, v: Array, *, return_lse: bool = False,
                  **keywords: Unpack[Keywords]
                  ) -> tuple[Any, Callable[..., Gradients]]:
    """``attention``, and the function that turns do into gradients.

    The safe form of ``attention_backward``: nothing has to be repeated.

    Returns
    -------
    o, vjp
        ``g = vjp(do, dlse=None)`` gives ``Gradients``. With ``return_lse`` the
        first is (o, lse).

    Examples
    --------
    >>> import numpy as np, attn
    >>> q = k = v = np.eye(3)
    >>> o, vjp = attn.attention_vjp(q, k, v, causal=True)
    >>> dq, dk, dv = vjp(np.ones_like(o))
    """
    given = features(**keywords)
    # NumPy's: an array library without float64 would cost backward digits.
    o, lse = _core.attention(q, k, v, given, None, 2, False, False, None)

    def vjp(do: Array, dlse: Array | None = None) -> Gradients:
        return Gradients(*_core.backward(do, q, k, v, o, lse, given, dlse, 63))

    if not return_lse:
        return o, vjp
    kind = None if isinstance(q, np.ndarray) else _arrays.importer(q)
    return (o, lse if kind is None else kind(lse)), vjp


def _chosen(name, numbers):
    if numbers is None:
        return None
    numbers = np.asarray(numbers)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"{name}: are {numbers.dtype}, must be whole numbers")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def weights(q: Array, k: Array, *,
            mode: Literal["probs", "raw", "softcapped", "biased"] = "probs",
            heads: Sequence[int] | None = None,
            rows: Sequence[int] | None = None,
            **keywords: Unpack[Keywords]) -> Any:
    """The matrix that attention never makes: weights or scores of chosen rows.

    Parameters
    ----------
    q, k
        As for ``attention``.
    mode
        ``"raw"``: scale * <q_i, k_j>, and ``"softcapped"``, at every pair;
        ``"biased"``: with bias and ALiBi, -inf where hidden; ``"probs"``: the
        weights, 0 where hidden. (The four stages of ONNX's Attention.)
    heads, rows
        Which heads and queries, in this order; None = all.
    **keywords
        Those of ``attention`` up to ``threads``.

    Returns
    -------
    (B, n_heads, n_rows, Lk), less the axes that q lacks; float64 for float64,
    else float32.

    Examples
    --------
    >>> import numpy as np, attn
    >>> attn.weights(np.eye(3), np.eye(3), rows=[2], causal=True).round(2)
    array([[0.26, 0.26, 0.47]])
    """
    if mode not in _STAGES:
        raise ValueError(f"mode: is {mode!r}, must be 'probs', 'raw', "
                         "'softcapped' or 'biased'")
    return _core.weights(q, k, features(**keywords), _STAGES[mode],
                         _chosen("heads", heads), _chosen("rows", rows))


def dropout_mask(shape: Sequence[int], p: float, seed: int, offset: int = 0, *,
                 start: tuple[int, int] = (0, 0)) -> np.ndarray:
    """The dropout mask of a call as an array: True = kept.

    Philox4x32-10 (Salmon et al. 2011) with key = seed and counter =
    (j // 4, i, b * H + h, offset); word j % 4 decides: kept where it is at
    least floor(p * 2**32).

    Parameters
    ----------
    shape
        (B, H, Lq, Lk), or fewer axes from the right.
    p
        The probability of dropping, 0 to 1.
    seed, offset
        Those of ``attention``.
    start
        Added to i and j, for a part of a larger mask.

    Examples
    --------
    >>> import attn
    >>> attn.dropout_mask((2, 6), 0.5, seed=7).shape
    (2, 6)
    """
    if not hasattr(shape, "__iter__"):
        raise TypeError(f"shape: is {shape!r}, must be a list of sizes")
    sizes = [whole("shape", n) for n in shape]
    if not 1 <= len(sizes) <= 4:
        raise ValueError(f"shape: has {len(sizes)} axes, must have 1 to 4")
    if any(n < 0 for n in sizes):
        raise ValueError(f"shape: {tuple(sizes)} has a negative size")
    return _core.dropout_mask(sizes, real("p", p), seed, offset, *start)


def merge(o1: Array, lse1: Array, o2: Array, lse2: Array, *,
          layout: Literal["bhsd", "bshd"] = "bhsd") -> tuple[Any, Any]:
    """Attention over the union of two disjoint sets of keys.

    ``lse = ln(e^lse1 + e^lse2)``, ``o = e^(lse1-lse) o1 + e^(lse2-lse) o2``
    (Rabe and Staats 2021, arXiv:2112.05682).

    Parameters
    ----------
    o1, o2
        Results over each set, as ``attention`` gives them.
    lse1, lse2
        (B, H, L), less the axes that o lacks.

    Returns
    -------
    o, lse

    Examples
    --------
    >>> import numpy as np, attn
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 4, 8))
    >>> parts = [attn.attention(q, k[part], v[part], return_lse=True)
    ...          for part in (slice(0, 1), slice(1, 4))]
    >>> o, lse = attn.merge(*parts[0], *parts[1])
    >>> bool(np.allclose(o, attn.attention(q, k, v)))
    True
    """
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: is {layout!r}, must be 'bhsd' or 'bshd'")
    return _core.merge(o1, lse1, o2, lse2, layout == "bshd")
