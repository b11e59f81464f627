# SPDX-License-Identifier: Apache-2.0
"""Keys and values of earlier tokens, and attention over them."""

from typing import Any, Unpack

import numpy as np

from . import _core
from ._keywords import Array, Keywords, features, whole


def _numpy_dtype(dtype):
    """A NumPy type of whatever names one: torch.float32, "bfloat16", ..."""
    if not isinstance(dtype, str) and "torch" in type(dtype).__module__:
        dtype = str(dtype).removeprefix("torch.")
    if str(dtype) == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError("dtype: bfloat16 in NumPy needs the package "
                              "ml_dtypes") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)


class KVCache:
    """Room for ``capacity`` keys and values of each of ``batch`` sequences.

    Contiguous, (B, H_kv, capacity, D), or with ``page_size`` in pages,
    (n, H_kv, page_size, D), that ``block_table`` (B, n / B) names: page
    ``block_table[b, j // page_size]`` holds key j of sequence b (Kwon et al.
    2023, arXiv:2309.06180).

    Parameters
    ----------
    batch, heads, capacity, dim
        Sequences, KV heads, keys of each, size of a key.
    dim_v
        Size of a value; default ``dim``.
    dtype
        Of keys and values; "bfloat16" needs ml_dtypes.
    page_size
        Keys of a page; None = contiguous.

    Attributes
    ----------
    k, v
        The memory, NumPy arrays.
    lengths
        (B,) int64: how many keys each sequence has. Yours to change, for
        example to forget a sequence (0) or its last tokens.
    block_table
        (B, n) int32, or None. Yours to change as well.

    Examples
    --------
    >>> import numpy as np, attn
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 5, 4))
    >>> cache = attn.KVCache(1, 2, capacity=8, dim=4, dtype=k.dtype)
    >>> for t in range(5):
    ...     cache.append(k[:, :, t:t + 1], v[:, :, t:t + 1])
    ...     o = attn.decode(q[:, :, t:t + 1], cache)
    >>> full = attn.attention(q, k, v, causal=True)
    >>> bool(np.allclose(o, full[:, :, -1:]))
    True
    """

    def __init__(self, batch: int, heads: int, capacity: int, dim: int,
                 dim_v: int | None = None, *, dtype: Any = np.float32,
                 page_size: int | None = None):
        sizes = {"batch": batch, "heads": heads, "capacity": capacity,
                 "dim": dim, "dim_v": dim if dim_v is None else dim_v,
                 "page_size": 1 if page_size is None else page_size}
        for name, size in sizes.items():
            if whole(name, size) < (name == "page_size"):
                raise ValueError(f"{name}: must be "
                                 f"{int(name == 'page_size')} or more, "
                                 f"got {size}")
        kind = _numpy_dtype(dtype)
        if kind.name not in ("float64", "float32", "float16", "bfloat16"):
            raise TypeError(f"dtype: is {kind}, must be float64, float32, "
                            "float16 or bfloat16")
        self.page_size = page_size
        self.capacity = capacity
        self.block_table: np.ndarray | None = None
        lead = (batch, heads, capacity)
        if page_size is not None:
            pages = -(-capacity // page_size)
            lead = (batch * pages, heads, page_size)
            self.block_table = np.arange(
                batch * pages, dtype=np.int32).reshape(batch, pages)
        self.k = np.zeros(lead + (sizes["dim"],), kind)
        self.v = np.zeros(lead + (sizes["dim_v"],), kind)
        self.lengths = np.zeros(batch, np.int64)

    def append(self, k: Array, v: Array) -> None:
        """Write (B, H_kv, n, D) keys and values behind those that are held.

        Raises ValueError, and writes nothing, where a sequence has no room
        left for n more or shapes differ; TypeError for another type.
        """
        new = k.shape[2] if len(getattr(k, "shape", ())) == 4 else 1
        for name, x, held in (("k", k, self.k), ("v", v, self.v)):
            shape = (len(self.lengths), held.shape[1], new, held.shape[3])
            given = getattr(x, "shape", None)
            if given is None or tuple(given) != shape:
                raise (TypeError if given is None else ValueError)(
                    f"{name}: " + ("has no shape" if given is None else
                                   f"has shape {tuple(given)}")
                    + f", must be {shape}")
        most = int(self.lengths.max(initial=0)) + int(new)
        if most > self.capacity:
            raise ValueError(f"k: {most} keys are more than the capacity of "
                             f"{self.capacity}")
        # v first, into room that no length names yet: were k refused
        # afterwards, the cache would hold what it held.
        _core.kv_append(self.v, v, self.lengths, self.block_table, "v")
        _core.kv_append(self.k, k, self.lengths, self.block_table, "k")
        self.lengths += new

    def __repr__(self) -> str:
        pages = f", page_size={self.page_size}" if self.page_size else ""
        return (f"KVCache(lengths={self.lengths.tolist()}, "
                f"capacity={self.capacity}, dtype={self.k.dtype}{pages})")


def decode(q: Array, cache: KVCache, *, out: Array | None = None,
           return_lse: bool = False, return_weights: bool = False,
           return_entropy: bool = False,
           **keywords: Unpack[Keywords]) -> Any:
    """Attention of the newest queries over all that a cache holds.

    Query i of Lq stands at position lengths[b] - Lq + i: append the keys of
    the new tokens first, then ask. ``causal`` is "bottom_right" unless given,
    so several new tokens see each other as they should.

    Parameters
    ----------
    q
        (B, H, Lq, D), or with cu_seqlens_q (T, H, D).
    cache
        With the keys of the queries already appended.
    **keywords
        Those of ``attention``, except k_lengths and cu_seqlens_k, which the
        cache knows.

    Returns
    -------
    As ``attention``.
    """
    for name in ("k_lengths", "cu_seqlens_k"):
        if keywords.get(name) is not None:
            raise ValueError(f"{name}: the cache knows its lengths")
    packed = keywords.get("cu_seqlens_q") is not None
    if not packed and len(q.shape) != 4:
        raise ValueError(f"q: has {len(q.shape)} axes, must be (B, H, Lq, D)")
    keywords.setdefault("causal", "bottom_right")
    keywords["k_lengths"] = cache.lengths
    k, v, table = cache.k, cache.v, cache.block_table
    if table is None and packed:  # one page for each sequence
        table = np.arange(k.shape[0], dtype=np.int32)[:, None]
    elif table is None and keywords.get("layout") == "bshd":
        k, v = k.swapaxes(1, 2), v.swapaxes(1, 2)
    return _core.attention(q, k, v, features(**keywords), out,
                           1 if return_lse else 0, bool(return_weights),
                           bool(return_entropy), table)
