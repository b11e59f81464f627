# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding, with the scalings of Hugging Face."""

from collections.abc import Mapping
from typing import Any

from . import _core
from ._keywords import Array

_TYPES = {"default": 0, "linear": 1, "dynamic": 2, "ntk": 3, "yarn": 4,
          "longrope": 5, "llama3": 6}

# Hugging Face's keys, and the fields of attn_rope_desc.
_FIELDS = {
    "factor": "factor",
    "original_max_position_embeddings": "original_max_position",
    "max_position_embeddings": "max_position",
    "attention_factor": "attention_factor",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "short_factor": "short_factor",
    "long_factor": "long_factor",
    "seq_len": "seq_len",
    "rope_theta": "base",
}


def options(base, interleaved, rotary_dim, scaling):
    """The fields of attn_rope_desc, by their names."""
    fields = {"base": base, "interleaved": bool(interleaved)}
    if rotary_dim is not None:
        fields["rotary_dim"] = rotary_dim
    if scaling is None:
        return fields
    if not isinstance(scaling, Mapping):
        raise TypeError("scaling: is no mapping; give Hugging Face's "
                        "rope_scaling, such as {'rope_type': 'linear', "
                        "'factor': 2.0}")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind not in _TYPES:
        raise ValueError(f"scaling: rope_type is {kind!r}, must be one of "
                         + ", ".join(_TYPES))
    fields["scaling"] = _TYPES[kind]
    for key, value in scaling.items():
        if key in ("rope_type", "type") or value is None:
            continue
        if key == "truncate":
            fields["no_truncate"] = not value
        elif key in _FIELDS:
            fields[_FIELDS[key]] = value
        else:
            raise ValueError(f"scaling: {key!r} is not a key that is known; "
                             f"known are {', '.join(_FIELDS)}, truncate")
    return fields


def _rotate(x, positions, fields, transposed):
    shape = tuple(getattr(x, "shape", ()))
    if len(shape) <= 4:
        return _core.rope(x, positions, fields, transposed)
    # More leading axes are one axis to the library.
    folded = x.reshape((shape[0], -1) + shape[-2:])
    return _core.rope(folded, positions, fields, transposed).reshape(shape)


def rope(x: Array, positions: Array, *, base: float = 10000.0,
         interleaved: bool = False, rotary_dim: int | None = None,
         scaling: Mapping[str, Any] | None = None) -> Any:
    """Rotary embedding: pairs of components turned by position times frequency.

    ``(a, b) -> (a cos t - b sin t, b cos t + a sin t)`` with t = position *
    base**(-2m / rotary_dim) for pair m (Su et al. 2021, arXiv:2104.09864).
    Angles are computed in float64.

    Parameters
    ----------
    x
        (..., L, D).
    positions
        (L,) or (B, L) integers.
    base
        10000 by default.
    interleaved
        Pairs are (2m, 2m + 1); else (m, m + rotary_dim / 2), as in Llama of
        Hugging Face.
    rotary_dim
        How many components turn, even; None = D.
    scaling
        Hugging Face's ``rope_scaling``: ``rope_type`` one of linear, dynamic,
        ntk, yarn, longrope, llama3, and the keys that go with it; ``seq_len``
        for dynamic and longrope (default: largest position + 1).

    Returns
    -------
    As x.

    Raises
    ------
    ValueError, TypeError
        One sentence: the argument, its value and the rule.

    Examples
    --------
    >>> import numpy as np, attn
    >>> attn.rope(np.array([[1.0, 0.0]]), [1]).round(2)
    array([[0.54, 0.84]])
    """
    return _rotate(x, positions, options(base, interleaved, rotary_dim,
                                         scaling), False)


def rope_backward(dy: Array, positions: Array, *, base: float = 10000.0,
                  interleaved: bool = False, rotary_dim: int | None = None,
                  scaling: Mapping[str, Any] | None = None) -> Any:
    """The transpose of ``rope``: dx from dy, with the keywords of that call.

    Examples
    --------
    >>> import numpy as np, attn
    >>> y = attn.rope(np.array([[1.0, 0.0]]), [1])
    >>> attn.rope_backward(y, [1]).round(2)          # a rotation turns back
    array([[1., 0.]])
    """
    return _rotate(dy, positions, options(base, interleaved, rotary_dim,
                                          scaling), True)


def rope_frequencies(dim: int, seq_len: int = 1, *, base: float = 10000.0,
                     rotary_dim: int | None = None,
                     scaling: Mapping[str, Any] | None = None
                     ) -> tuple[list[float], float]:
    """The rotary_dim / 2 inverse frequencies, and the factor on cos and sin,
    that ``rope`` uses for positions below ``seq_len``.

    Examples
    --------
    >>> import attn
    >>> attn.rope_frequencies(4)
    ([1.0, 0.01], 1.0)
    """
    return _core.rope_frequencies(options(base, False, rotary_dim, scaling),
                                  dim, seq_len)
