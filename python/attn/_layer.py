# SPDX-License-Identifier: Apache-2.0
"""A multi-head attention layer: projections, norm, RoPE, attention, output."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Unpack

from . import _core
from ._keywords import Array, Keywords, features, real, whole
from ._rope import options

_NAMES = ("x", "x_kv", "w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o",
          "g_q", "g_k", "positions", "positions_kv")


# Arrays, heads, kv_heads, rope, qk_norm, norm_eps and features of a layer.
_Given = tuple[dict[str, Any], int, int, dict[str, Any] | None, bool, float,
               tuple[Any, ...]]


class LayerGradients:
    """Gradients of a layer: ``dx, dw_q, dw_k, dw_v, dw_o = g``, and all by
    their names (dx_kv, db_q, ..., dg_q, dg_k, dbias, dsinks, dslopes); None
    for what the call did not have."""

    __slots__ = tuple("d" + name for name in _NAMES[:12]) + (
        "dbias", "dsinks", "dslopes")

    dx: Array
    dx_kv: Array | None
    dw_q: Array
    dw_k: Array
    dw_v: Array
    dw_o: Array | None
    db_q: Array | None
    db_k: Array | None
    db_v: Array | None
    db_o: Array | None
    dg_q: Array | None
    dg_k: Array | None
    dbias: Array | None
    dsinks: Array | None
    dslopes: Array | None

    def __init__(self, found: Mapping[str, Any]):
        for name in self.__slots__:
            setattr(self, name, found.get(name))

    def __iter__(self) -> Iterator[Array]:
        return iter((self.dx, self.dw_q, self.dw_k, self.dw_v, self.dw_o))

    def __repr__(self) -> str:
        given = [f"{name}{tuple(getattr(self, name).shape)}"
                 for name in self.__slots__ if getattr(self, name) is not None]
        return f"LayerGradients({', '.join(given)})"


def _gather(arrays: Mapping[str, Any], heads: int, kv_heads: int | None,
            qk_norm: bool, norm_eps: float,
            rope: Mapping[str, Any] | bool | None, keywords: Any) -> _Given:
    """The arguments that forward and backward share."""
    if keywords.get("layout", "bhsd") != "bhsd":
        raise ValueError("layout: a layer takes (B, L, width); it has no other")
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        if keywords.get(name) is not None:
            raise NotImplementedError(f"{name}: a layer takes no packed "
                                      "sequences")
    rotation = None
    if rope is not None and rope is not False:
        words = {"base": 10000.0, "interleaved": False, "rotary_dim": None,
                 "scaling": None}
        for word, value in ({} if rope is True else rope).items():
            if word not in words:
                raise ValueError(f"rope: {word!r} is not one of "
                                 f"{', '.join(words)}")
            words[word] = value
        rotation = options(**words)
    elif arrays.get("positions") is not None:
        raise ValueError("positions: are given, but rope is not")
    given = {name: arrays[name] for name in _NAMES
             if arrays[name] is not None}
    for name in ("x", "w_q", "w_k", "w_v"):
        if name not in given:
            raise TypeError(f"{name}: is None, must be an array")
    heads = whole("heads", heads)
    return (given, heads,
            heads if kv_heads is None else whole("kv_heads", kv_heads),
            rotation, bool(qk_norm), real("norm_eps", norm_eps),
            features(**keywords))


def multi_head(x: Array, w_q: Array, w_k: Array, w_v: Array,
               w_o: Array | None = None, *, heads: int,
               kv_heads: int | None = None, x_kv: Array | None = None,
               b_q: Array | None = None, b_k: Array | None = None,
               b_v: Array | None = None, b_o: Array | None = None,
               qk_norm: bool = False, g_q: Array | None = None,
               g_k: Array | None = None, norm_eps: float = 1e-6,
               rope: Mapping[str, Any] | bool | None = None,
               positions: Array | None = None,
               positions_kv: Array | None = None,
               return_lse: bool = False, return_weights: bool = False,
               return_entropy: bool = False,
               **keywords: Unpack[Keywords]) -> Any:
    """A multi-head attention layer (Vaswani et al. 2017, arXiv:1706.03762)::

        q = x w_q + b_q      k = x_kv w_k + b_k      v = x_kv w_v + b_v
        q, k = norm(q), norm(k)      per head, with qk_norm
        q, k = rope(q), rope(k)      per head, with rope
        y = attention(q, k, v) w_o + b_o

        norm(u) = u g / sqrt(mean(u**2) + norm_eps)

    Parameters
    ----------
    x, x_kv
        (L, width) or (B, L, width); x_kv is x in self-attention.
    w_q, w_k, w_v, w_o
        (width in, width out), applied as x @ w; torch's (out, in) as ``w.T``,
        without a copy. Columns h * D to (h + 1) * D belong to head h. Without
        w_o, y is o with its heads side by side.
    heads, kv_heads
        Query heads, and KV heads (default: as many), which divide them.
    b_q, b_k, b_v, b_o
        One number a column; optional.
    qk_norm, g_q, g_k, norm_eps
        Root-mean-square norm of q and k, with gains (D,) or (H, D).
    rope
        True, or the keywords of ``attn.rope`` as a dict: base, interleaved,
        rotary_dim, scaling.
    positions, positions_kv
        (L,) or (B, L); default 0, 1, 2, ...
    **keywords
        Those of ``attention``, except layout and cu_seqlens.

    Returns
    -------
    y, or (y, lse, weights, entropy) less those not asked for. Weights are
    (B, H, Lq, Lk), or (H, Lq, Lk) for x without batch.

    Raises
    ------
    As ``attention``.

    Examples
    --------
    >>> import numpy as np, attn
    >>> x = np.eye(4)
    >>> y, w = attn.multi_head(x, x, x, x, x, heads=2, causal=True,
    ...                        return_weights=True)
    >>> w.shape, bool(np.allclose(w.sum(-1), 1))
    ((2, 4, 4), True)
    """
    return _core.multi_head(
        *_gather(locals(), heads, kv_heads, qk_norm, norm_eps, rope, keywords),
        bool(return_lse), bool(return_weights), bool(return_entropy))


def multi_head_vjp(x: Array, w_q: Array, w_k: Array, w_v: Array,
                   w_o: Array | None = None, *, heads: int,
                   kv_heads: int | None = None, x_kv: Array | None = None,
                   b_q: Array | None = None, b_k: Array | None = None,
                   b_v: Array | None = None, b_o: Array | None = None,
                   qk_norm: bool = False, g_q: Array | None = None,
                   g_k: Array | None = None, norm_eps: float = 1e-6,
                   rope: Mapping[str, Any] | bool | None = None,
                   positions: Array | None = None,
                   positions_kv: Array | None = None,
                   **keywords: Unpack[Keywords]
                   ) -> tuple[Any, Callable[..., LayerGradients]]:
    """``multi_head``, and the function that turns dy into gradients.

    Nothing is kept between the two: backward makes q, k, v and o from x once
    more, with the same bits.

    Returns
    -------
    y, vjp
        ``g = vjp(dy, dlse=None)`` gives ``LayerGradients``, of every array
        that the call has.

    Examples
    --------
    >>> import numpy as np, attn
    >>> x = np.eye(4)
    >>> y, vjp = attn.multi_head_vjp(x, x, x, x, x, heads=2)
    >>> dx, dw_q, dw_k, dw_v, dw_o = vjp(np.ones_like(y))
    """
    given = _gather(locals(), heads, kv_heads, qk_norm, norm_eps, rope,
                    keywords)

    def vjp(dy: Array, dlse: Array | None = None) -> LayerGradients:
        return LayerGradients(_core.multi_head_backward(dy, *given, dlse))

    return _core.multi_head(*given, False, False, False), vjp
