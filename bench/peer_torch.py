# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled_dot_product_attention."""

import torch

from peer import Work
from rows import float_mask, padded_length, seen

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
         "bf16": torch.bfloat16}


def mask_of(row):
    """What is_causal does not say, as an array; None if that says it all."""
    if row.square_causal or row.decode:
        return None
    if row.alibi:
        return torch.from_numpy(float_mask(row))
    if row.padding:
        see = torch.arange(row.len_k) < padded_length(row)
        return see.expand(1, 1, 1, row.len_k)
    see = seen(row)
    return None if see is None else torch.from_numpy(see)[None, None]


def prepare(row, arrays, threads):
    torch.set_num_threads(threads)
    q, k, v = (torch.from_numpy(arrays[name]).to(TYPES[row.dtype])
               for name in "qkv")
    words = {"attn_mask": mask_of(row), "is_causal": row.square_causal,
             "enable_gqa": row.group > 1}
    attend = torch.nn.functional.scaled_dot_product_attention
    if row.kind == "forward":
        def forward():
            with torch.no_grad():
                return attend(q, k, v, **words)

        return Work(forward, lambda o: {"o": o.double().numpy()})
    do = torch.from_numpy(arrays["do"]).to(TYPES[row.dtype])
    wanted = tuple(x.requires_grad_() for x in (q, k, v))
    o = attend(*wanted, **words)

    def backward():
        return torch.autograd.grad(o, wanted, do, retain_graph=True)

    def both():
        return torch.autograd.grad(attend(*wanted, **words), wanted, do)

    return Work(backward if row.kind == "backward" else both,
                lambda g: {name: x.double().numpy()
                           for name, x in zip(("dq", "dk", "dv"), g)})
