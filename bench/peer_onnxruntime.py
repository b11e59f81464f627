# SPDX-License-Identifier: Apache-2.0
"""onnxruntime: a model of one Attention (opset 23), or of one
MultiHeadAttention of its own (peer_ort_mha.py), by I/O binding."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from peer import NotSupported, Work
from rows import float_mask, seen

KINDS = {"f32": (TensorProto.FLOAT, np.float32),
         "f64": (TensorProto.DOUBLE, np.float64),
         "f16": (TensorProto.FLOAT16, np.float16)}
OF_NUMPY = {np.dtype(np.float32): TensorProto.FLOAT,
            np.dtype(np.float64): TensorProto.DOUBLE,
            np.dtype(np.float16): TensorProto.FLOAT16,
            np.dtype(np.int32): TensorProto.INT32,
            np.dtype(bool): TensorProto.BOOL}


def session_of(node, feeds, kind, threads):
    """A session of a model of one node, whose inputs are the feeds."""
    inputs = [helper.make_tensor_value_info(name, OF_NUMPY[x.dtype], x.shape)
              for name, x in feeds.items()]
    graph = helper.make_graph(
        [node], "attention", inputs,
        [helper.make_tensor_value_info("o", kind, None)])
    model = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = min(model.ir_version, onnx.IR_VERSION, 11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def bound(session, feeds, shape):
    """A call of the session, all memory bound; it returns the output."""
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x)
              for name, x in feeds.items()}
    dtype = feeds["q"].dtype
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype))
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("o", out)

    def call():
        session.run_with_iobinding(binding)
        return out.numpy()

    call.keeps = values
    return call


def check(row):
    if row.kind != "forward":
        raise NotSupported("forward alone")
    if row.dtype not in KINDS:
        raise NotSupported(f"no {row.dtype} on CPUs")


def packed(x):
    """(batch, len, heads * dim)."""
    batch, heads, length, dim = x.shape
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(
        batch, length, heads * dim)


def unpacked(row, x):
    return x.reshape(row.batch, row.len_q, row.heads, row.dim).swapaxes(1, 2)


def prepare(row, arrays, threads):
    check(row)
    kind, dtype = KINDS[row.dtype]
    feeds = {name: (packed if row.bshd else np.ascontiguousarray)(
        arrays[name].astype(dtype)) for name in "qkv"}
    words = {"is_causal": int(row.square_causal)}
    if row.bshd:
        words |= {"q_num_heads": row.heads, "kv_num_heads": row.heads_kv}
    if row.alibi:
        feeds["m"] = float_mask(row).astype(dtype)
    elif not row.square_causal and seen(row) is not None:
        feeds["m"] = np.ascontiguousarray(seen(row)[None, None])
    node = helper.make_node("Attention", list(feeds), ["o"], **words)
    shape = feeds["q"].shape
    session = session_of(node, feeds, kind, threads)
    return Work(bound(session, feeds, shape), lambda o: {
        "o": (unpacked(row, o) if row.bshd else o).astype(np.float64)})
