# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: a model of one ScaledDotProductAttention."""

import numpy as np
import openvino
from openvino import opset13

from peer import NotSupported, Work
from rows import float_mask, seen

TYPES = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16,
         "f16": openvino.Type.f16}


def tensor(x, dtype):
    """OpenVINO's, of the row's type, in memory of its own."""
    made = openvino.Tensor(TYPES[dtype], x.shape)
    if dtype == "bf16":
        bits = np.ascontiguousarray(x).view(np.uint32) >> 16
        made.data.view(np.uint16)[...] = bits.astype(np.uint16)
    else:
        made.data[...] = x
    return made


def model_of(row, tensors):
    """The model; with bshd, its inputs and output are in that order."""
    order = opset13.constant([0, 2, 1, 3])
    given = {name: opset13.parameter(list(t.shape), t.element_type, name)
             for name, t in tensors.items()}

    def turned(node):
        return opset13.transpose(node, order) if row.bshd else node

    o = opset13.scaled_dot_product_attention(
        *(turned(given[name]) for name in "qkv"), given.get("m"),
        causal=row.square_causal)
    return openvino.Model([turned(o)], list(given.values()))


def values(row, made):
    x = made.data
    if row.dtype == "bf16":
        x = (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    x = x.astype(np.float64)
    return {"o": x.swapaxes(1, 2) if row.bshd else x}


def prepare(row, arrays, threads):
    if row.kind != "forward":
        raise NotSupported("forward alone")
    if row.dtype not in TYPES:
        raise NotSupported(f"no {row.dtype}")
    if row.group > 1:
        raise NotSupported("no grouped heads")
    tensors = {name: tensor(arrays[name].swapaxes(1, 2) if row.bshd
                            else arrays[name], row.dtype) for name in "qkv"}
    if not row.square_causal and (row.alibi or seen(row) is not None):
        tensors["m"] = tensor(float_mask(row), row.dtype)
    compiled = openvino.Core().compile_model(model_of(row, tensors), "CPU", {
        "INFERENCE_PRECISION_HINT": TYPES[row.dtype],
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads})
    request = compiled.create_infer_request()
    for i, t in enumerate(tensors.values()):
        request.set_input_tensor(i, t)

    def call():
        request.infer()
        return request.get_output_tensor(0)

    return Work(call, lambda made: values(row, made))
