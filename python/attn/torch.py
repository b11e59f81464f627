# SPDX-License-Identifier: Apache-2.0
"""Attention for PyTorch: with gradients, in graphs, and in Hugging Face models.

``scaled_dot_product_attention`` is PyTorch's, by this library; ``attention`` is
``attn.attention`` with gradients. Both are one custom operator with fake and
autograd registrations, so that ``torch.compile(fullgraph=True)``, ``opcheck``
and ``gradcheck`` take them. ``register_transformers`` makes
``attn_implementation="attn"`` known to transformers, which is only imported
then. Tensors live on the CPU; float64, float32, bfloat16, float16.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from . import _core

__all__ = ["attention", "register_transformers",
           "scaled_dot_product_attention"]

# ------------------------------------------------------------- the operator

_INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? attn_mask, Tensor? attn_bias, "
    "Tensor? alibi_slopes, Tensor? sinks, Tensor? k_lengths, "
    "Tensor? q_offset, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, "
    "Tensor? seed, str causal, int window_left, int window_right, "
    "float? scale, float softcap, float dropout_p, int offset, "
    "str precision, str layout, int threads")
_NAMES = [word.split()[-1] for word in _INPUTS.split(", ")]
# Where the tensors with a gradient stand, in the order of the bits of `wanted`.
_GRADIENTS = [_NAMES.index(name) for name in
              ("q", "k", "v", "attn_bias", "sinks", "alibi_slopes")]
_CAUSAL = {"none": False, "plain": True, "top_left": "top_left",
           "bottom_right": "bottom_right"}

torch.library.define("attn::attention", f"({_INPUTS}) -> (Tensor, Tensor)",
                     tags=torch.Tag.pt2_compliant_tag)
torch.library.define(
    "attn::attention_backward",
    f"(Tensor d_o, Tensor o, Tensor lse, Tensor? dlse, int wanted, {_INPUTS})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag)


def _features(attn_mask, attn_bias, alibi_slopes, sinks, k_lengths, q_offset,
              cu_seqlens_q, cu_seqlens_k, seed, causal, window_left,
              window_right, scale, softcap, dropout_p, offset, precision,
              layout, threads):
    """The tuple of attn._keywords.features."""
    def bare(x):
        return None if x is None else x.detach()

    return (bare(attn_mask), bare(attn_bias), _CAUSAL[causal],
            (window_left, window_right), scale, softcap, bare(alibi_slopes),
            bare(sinks), bare(k_lengths), bare(q_offset), bare(cu_seqlens_q),
            bare(cu_seqlens_k), dropout_p, 0 if seed is None else int(seed),
            offset, "zero", precision, layout, threads or None)


@torch.library.impl("attn::attention", "cpu")
def _forward(q, k, v, *features):
    return _core.attention(q.detach(), k.detach(), v.detach(),
                           _features(*features), None, True, False, False,
                           None)


@torch.library.impl("attn::attention_backward", "cpu")
def _backward(d_o, o, lse, dlse, wanted, q, k, v, *features):
    found = _core.backward(
        d_o.detach(), q.detach(), k.detach(), v.detach(), o.detach(),
        lse.detach(), _features(*features),
        None if dlse is None else dlse.detach(), wanted)
    given = (q, k, v, *features)
    return tuple(q.new_empty(0) if g is None else g.to(given[at].dtype)
                 for g, at in zip(found, _GRADIENTS))


def _lse_dtype(q):
    wide = q.dtype in (torch.float64, torch.float32)
    return torch.float64 if wide else torch.float32


@torch.library.register_fake("attn::attention")
def _(q, k, v, *features):
    shape = q.shape[:-1]
    if features[_NAMES.index("cu_seqlens_q") - 3] is not None:
        stats = (q.shape[1], q.shape[0])
    elif features[_NAMES.index("layout") - 3] == "bshd" and q.dim() > 2:
        stats = (*shape[:-2], shape[-1], shape[-2])
    else:
        stats = shape
    return (q.new_empty((*shape, v.shape[-1])),
            q.new_empty(stats, dtype=_lse_dtype(q)))


@torch.library.register_fake("attn::attention_backward")
def _(d_o, o, lse, dlse, wanted, *given):
    return tuple(given[at].new_empty(given[at].shape)
                 if wanted >> bit & 1 and given[at] is not None
                 else d_o.new_empty(0) for bit, at in enumerate(_GRADIENTS))


def _setup(ctx, inputs, output):
    tensors = [x if isinstance(x, Tensor) else None for x in inputs]
    ctx.others = [None if isinstance(x, Tensor) else x for x in inputs]
    ctx.save_for_backward(*output, *tensors)
    ctx.set_materialize_grads(False)


def _gradients(ctx, d_o, dlse):
    o, lse, *tensors = ctx.saved_tensors
    given = [other if tensor is None else tensor
             for tensor, other in zip(tensors, ctx.others)]
    result: list[Any] = [None] * len(given)
    wanted = sum(1 << bit for bit, at in enumerate(_GRADIENTS)
                 if given[at] is not None and ctx.needs_input_grad[at])
    if d_o is None and dlse is None or not wanted:
        return tuple(result)
    if d_o is None:
        d_o = torch.zeros_like(o)
    found = torch.ops.attn.attention_backward(d_o, o, lse, dlse, wanted,
                                              *given)
    for bit, at in enumerate(_GRADIENTS):
        if wanted >> bit & 1:
            result[at] = found[bit]
    return tuple(result)


def _no_more(ctx, *gradients):
    raise NotImplementedError("attn::attention_backward: has no derivative; "
                              "torch's math path has second ones")


torch.library.register_autograd("attn::attention", _gradients,
                                setup_context=_setup)
# Without this, second derivatives would be left out in silence.
torch.library.register_autograd("attn::attention_backward", _no_more)

# ------------------------------------------------------------ the functions


def _real(x, q):
    """Sinks, slopes and biases: float64, float32 or the type of q."""
    if x is None or x.dtype in (torch.float64, torch.float32, q.dtype):
        return x
    return x.to(q.dtype) if x.is_floating_point() else x


def attention(q: Tensor, k: Tensor, v: Tensor, *,
              attn_mask: Tensor | None = None,
              attn_bias: Tensor | None = None,
              causal: bool | Literal["top_left", "bottom_right"] = False,
              window: tuple[int, int] | None = None,
              scale: float | None = None, softcap: float = 0.0,
              alibi_slopes: Tensor | None = None,
              sinks: Tensor | None = None,
              k_lengths: Tensor | None = None,
              q_offset: Tensor | None = None,
              cu_seqlens_q: Tensor | None = None,
              cu_seqlens_k: Tensor | None = None,
              dropout_p: float = 0.0, seed: Tensor | None = None,
              offset: int = 0,
              precision: Literal["standard", "high"] = "standard",
              layout: Literal["bhsd", "bshd"] = "bhsd",
              threads: int | None = None, return_lse: bool = False) -> Any:
    """``attn.attention`` with gradients by q, k, v, attn_bias, sinks and
    alibi_slopes (and through lse).

    As there, with tensors. ``seed`` is an int64 tensor of one number; None
    draws one from torch's generator where dropout_p > 0.

    Returns
    -------
    o, or (o, lse)
    """
    if dropout_p > 0 and seed is None:
        seed = torch.randint(2**62, (), dtype=torch.int64)
    words = {False: "none", None: "none", True: "plain"}
    if window is not None and (not isinstance(window, (tuple, list))
                               or len(window) != 2):
        raise ValueError(f"window: is {window!r}, must be (left, right): how "
                         "many keys before and after, -1 = all")
    left, right = (-1, -1) if window is None else window
    o, lse = torch.ops.attn.attention(
        q, k, v, attn_mask, _real(attn_bias, q), _real(alibi_slopes, q),
        _real(sinks, q), k_lengths, q_offset, cu_seqlens_q, cu_seqlens_k,
        seed, causal if isinstance(causal, str) else words[causal], left,
        right, scale, softcap, dropout_p, offset, precision, layout,
        threads or 0)
    return (o, lse) if return_lse else o


def _autocast(*tensors):
    """As torch.autocast would have them: floats in its type."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return tuple(x.to(dtype) if x is not None and x.is_floating_point()
                 and x.dtype != torch.float64 else x for x in tensors)


def _common(what, q, k, v):
    """The shape that three broadcast to."""
    try:
        return torch.broadcast_shapes(q, k, v)
    except RuntimeError:
        raise ValueError(
            f"query, key, value: have {what} {tuple(q)}, {tuple(k)} and "
            f"{tuple(v)}, which do not broadcast; enable_gqa=True lets query "
            "heads share those of key and value") from None


def _fold(x, lead):
    """(..., H, L, D) as (B, H, L, D), with the leading axes of the call."""
    x = x.expand(lead + x.shape[-3:])
    return x.flatten(0, len(lead) - 1) if lead else x.unsqueeze(0)


def _fold_mask(mask, lead):
    """A mask that broadcasts to lead + (H, L, S) as one to (B, H, L, S)."""
    if mask is None or mask.dim() <= 3:
        return mask
    if all(n == 1 for n in mask.shape[:-3]):
        return mask.reshape((1,) + mask.shape[-3:])
    return _fold(mask, lead)


def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor,
        attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None,
        enable_gqa: bool = False) -> Tensor:
    """``torch.nn.functional.scaled_dot_product_attention``, by this library.

    Its signature and semantics: (..., H, L, E) with any leading axes, which
    broadcast; boolean masks (True = attend) and float masks (added, with a
    gradient); is_causal is aligned top-left, and applies together with a mask,
    as on torch's fused CPU path; dropout from torch's generator; enable_gqa
    for fewer key and value heads. Rows that see nothing are 0.

    Raises
    ------
    ValueError, TypeError
        One sentence with the argument, its value and the rule.
    """
    query, key, value, attn_mask = _autocast(query, key, value, attn_mask)
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise ValueError("query, key, value: must have 2 axes or more, have "
                         f"{query.dim()}, {key.dim()} and {value.dim()}")
    rank = max(query.dim(), key.dim(), value.dim(), 3)
    q, k, v = (x.reshape((1,) * (rank - x.dim()) + x.shape)
               for x in (query, key, value))
    lead = _common("leading axes", q.shape[:-3], k.shape[:-3], v.shape[:-3])
    if not enable_gqa:
        heads = _common("heads", q.shape[-3:-2], k.shape[-3:-2],
                        v.shape[-3:-2])
        q, k, v = (x.expand(x.shape[:-3] + heads + x.shape[-2:])
                   for x in (q, k, v))
    elif k.shape[-3] != v.shape[-3]:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3)
                for x in (k, v))
    mask = _fold_mask(attn_mask, lead)
    is_bool = mask is not None and mask.dtype == torch.bool
    if mask is not None and not is_bool and not mask.is_floating_point():
        raise TypeError(f"attn_mask: is {mask.dtype}, must be bool (True = "
                        "attend) or floating point (added to the scores)")
    o = attention(_fold(q, lead), _fold(k, lead), _fold(v, lead),
                  attn_mask=mask if is_bool else None,
                  attn_bias=None if is_bool else mask,
                  causal="top_left" if is_causal else False, scale=scale,
                  dropout_p=dropout_p)
    o = o.reshape(lead + o.shape[-3:])
    # Two-dimensional inputs got their axes here.
    return o.reshape(o.shape[1:]) if max(
        query.dim(), key.dim(), value.dim()) == 2 else o


def register_transformers(name: str = "attn") -> None:
    """Make ``attn_implementation=name`` known to Hugging Face transformers.

    Encoder, decoder and encoder-decoder models; padding on either side (rows of
    padding give 0), grouped heads, sliding windows, softcap, sinks and T5's
    position bias, each with its gradient. Needs transformers 5.24 or newer.
    """
    from ._transformers import register
    register(name)
