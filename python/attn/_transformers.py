# SPDX-License-Identifier: Apache-2.0
"""attn as an attention implementation of Hugging Face transformers."""

from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from ._attention import weights
from .torch import attention


def _forward(module, query, key, value, attention_mask, dropout=0.0,
             scaling=None, is_causal=None, softcap=None, s_aux=None,
             position_bias=None, **rest):
    """The contract of transformers: (B, H, L, D) in, (B, L, H, D) out; the
    mask holds windows and padding. Without one, causal is what the argument or
    else the module says, for more than one query, from the top left."""
    words = dict(scale=scaling, softcap=softcap or 0.0, sinks=s_aux,
                 causal=False)
    if attention_mask is None:
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        if is_causal and query.shape[2] > 1:
            words["causal"] = "top_left"
    elif attention_mask.is_floating_point():
        words["attn_bias"] = attention_mask
    else:
        words["attn_mask"] = attention_mask
    if position_bias is not None:
        bias = words.get("attn_bias")
        words["attn_bias"] = (position_bias if bias is None
                              else position_bias + bias)
    batch = query.shape[0]
    if key.shape[0] != batch:  # learned queries, of batch 1
        batch = max(batch, key.shape[0])
        query, key, value = (x.expand((batch,) + x.shape[1:])
                             for x in (query, key, value))
    o = attention(query, key, value, dropout_p=dropout, **words)
    shown = None
    if rest.get("output_attentions"):
        shown = weights(query.detach(), key.detach(), **{
            name: x.detach() if hasattr(x, "detach") else x
            for name, x in words.items()}).to(query.dtype)
    return o.transpose(1, 2).contiguous(), shown


def register(name):
    AttentionInterface.register(name, _forward)
    # Without a function of its own a name gets no mask at all, silently.
    AttentionMaskInterface.register(name, sdpa_mask)
