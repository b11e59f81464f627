# SPDX-License-Identifier: Apache-2.0
"""Exact attention on CPUs: forward, backward and decode.

>>> import numpy as np, attn
>>> q = k = v = np.random.default_rng(0).normal(size=(2, 8, 16, 64))
>>> o = attn.attention(q, k, v, causal=True)
>>> o.shape
(2, 8, 16, 64)

``attn.attention`` has the formula and explains every keyword; ``attn.lessons``
has the functions of attention lessons; ``attn.torch`` (needs PyTorch) the
drop-in replacements. docs/python.md is the tour.
"""

from ._attention import (Gradients, attention, attention_backward,
                         attention_vjp, dropout_mask, merge, weights)
from ._cache import KVCache, decode
from ._doctor import Report, doctor
from ._info import info
from ._lab import lab
from ._layer import LayerGradients, multi_head, multi_head_vjp
from ._rope import rope, rope_backward, rope_frequencies

__version__ = "0.1.0"

__all__ = [
    "Gradients", "KVCache", "LayerGradients", "Report", "attention",
    "attention_backward", "attention_vjp", "decode", "doctor", "dropout_mask",
    "info", "lab", "merge", "multi_head", "multi_head_vjp", "rope",
    "rope_backward", "rope_frequencies", "weights",
]
