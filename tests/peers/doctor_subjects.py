# SPDX-License-Identifier: Apache-2.0
"""Attention of other people's libraries, as functions of NumPy arrays."""

import functools

import numpy as np


# ------------------------------------------------------------------ PyTorch

def torch_sdpa(backend, q, k, v, attn_mask, is_causal, scale):
    import torch
    from torch.nn.attention import sdpa_kernel
    q, k, v = (torch.from_numpy(np.ascontiguousarray(a)) for a in (q, k, v))
    if attn_mask is not None:
        attn_mask = torch.from_numpy(np.ascontiguousarray(attn_mask))
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=scale,
            enable_gqa=q.shape[1] != k.shape[1]).numpy()


def torch_math(q, k, v, attn_mask=None, is_causal=False, scale=None):
    """(B, H, L, D)"""
    from torch.nn.attention import SDPBackend
    return torch_sdpa(SDPBackend.MATH, q, k, v, attn_mask, is_causal, scale)


def torch_flash(q, k, v, attn_mask=None, is_causal=False, scale=None):
    """(B, H, L, D)"""
    from torch.nn.attention import SDPBackend
    return torch_sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, attn_mask,
                      is_causal, scale)


# ---------------------------------------------------------------------- JAX

def jax_attention(q, k, v, mask=None, bias=None, is_causal=False, scale=None):
    """(B, L, H, D)"""
    import jax
    return np.asarray(jax.nn.dot_product_attention(
        q, k, v, bias=bias, mask=mask, is_causal=is_causal, scale=scale))


# -------------------------------------------------------------- onnxruntime

@functools.lru_cache(maxsize=None)
def onnx_session(masked, is_causal, scale):
    import onnxruntime
    from onnx import TensorProto, helper
    names = ["q", "k", "v"] + (["mask"] if masked else [])
    types = [TensorProto.FLOAT] * 3 + [TensorProto.BOOL]
    words = {"is_causal": int(is_causal)}
    if scale is not None:
        words["scale"] = scale
    graph = helper.make_graph(
        [helper.make_node("Attention", names, ["o"], **words)], "attention",
        [helper.make_tensor_value_info(n, t, [None] * 4)
         for n, t in zip(names, types)],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    return onnxruntime.InferenceSession(model.SerializeToString(),
                                        providers=["CPUExecutionProvider"])


def onnx_attention(q, k, v, attn_mask=None, is_causal=False, scale=None):
    """(B, H, L, D)"""
    session = onnx_session(attn_mask is not None, is_causal, scale)
    given = {"q": q, "k": k, "v": v}
    if attn_mask is not None:
        shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        given["mask"] = np.broadcast_to(attn_mask, shape)
    return session.run(None, {n: np.ascontiguousarray(a)
                              for n, a in given.items()})[0]


# ----------------------------------------------------------------- OpenVINO

@functools.lru_cache(maxsize=None)
def openvino_model(masked, causal):
    import openvino
    from openvino import opset13
    kinds = [np.float32] * 3 + [np.bool_] * masked
    inputs = [opset13.parameter([-1] * 4, kind) for kind in kinds]
    node = opset13.scaled_dot_product_attention(*inputs, causal=causal)
    return openvino.Core().compile_model(
        openvino.Model([node], inputs), "CPU",
        {"INFERENCE_PRECISION_HINT": "f32"})


def openvino_attention(q, k, v, attn_mask=None, causal=False):
    """(B, H, L, D)"""
    if causal and attn_mask is not None:
        raise ValueError("causal ignores the mask, says its documentation")
    given = [q, k, v]
    if attn_mask is not None:
        given.append(np.broadcast_to(
            attn_mask, (q.shape[0], q.shape[1], q.shape[2], k.shape[2])))
    model = openvino_model(attn_mask is not None, causal)
    return model([np.ascontiguousarray(a) for a in given])[0]
