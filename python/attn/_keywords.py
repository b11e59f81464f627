# SPDX-License-Identifier: Apache-2.0
"""The keywords that every function of attention takes, in one place."""

import operator
from typing import Any, Literal, TypedDict

Array = Any  # NumPy, or anything with __dlpack__ or the buffer protocol


class Keywords(TypedDict, total=False):
    """What may be said of an attention; ``attn.attention`` explains each."""

    attn_mask: Array | None
    attn_bias: Array | None
    causal: bool | Literal["top_left", "bottom_right"]
    window: tuple[int, int] | None
    scale: float | None
    softcap: float
    alibi_slopes: Array | None
    sinks: Array | None
    k_lengths: Array | int | None
    q_offset: Array | int | None
    cu_seqlens_q: Array | None
    cu_seqlens_k: Array | None
    dropout_p: float
    seed: int
    offset: int
    empty_rows: Literal["zero", "nan"]
    precision: Literal["standard", "high"]
    layout: Literal["bhsd", "bshd"]
    threads: int | None


def features(*, attn_mask=None, attn_bias=None, causal=False, window=None,
             scale=None, softcap=0.0, alibi_slopes=None, sinks=None,
             k_lengths=None, q_offset=None, cu_seqlens_q=None,
             cu_seqlens_k=None, dropout_p=0.0, seed=0, offset=0,
             empty_rows="zero", precision="standard", layout="bhsd",
             threads=None):
    """The keywords as the tuple that the extension reads; an unknown one is
    Python's own TypeError."""
    return (attn_mask, attn_bias, causal, window, scale, softcap,
            alibi_slopes, sinks, k_lengths, q_offset, cu_seqlens_q,
            cu_seqlens_k, dropout_p, seed, offset, empty_rows, precision,
            layout, threads)


def whole(name: str, value: Any) -> int:
    """A whole number, or TypeError with a sentence."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: is {value!r}, must be a whole number") \
            from None


def real(name: str, value: Any) -> float:
    """A number, or TypeError with a sentence."""
    if not isinstance(value, str):
        try:
            return float(value)
        except TypeError:
            pass
    raise TypeError(f"{name}: is {value!r}, must be a number")
