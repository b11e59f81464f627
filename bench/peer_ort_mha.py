# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's MultiHeadAttention: inputs (batch, len, heads * dim)."""

import numpy as np
from onnx import helper

from peer import NotSupported, Work
from peer_onnxruntime import KINDS, bound, check, packed, session_of, unpacked
from rows import float_mask, padded_length, seen


def prepare(row, arrays, threads):
    check(row)
    if row.dtype == "f64":
        raise NotSupported("no f64")
    if row.group > 1:
        raise NotSupported("no grouped heads")
    kind, dtype = KINDS[row.dtype]
    feeds = {name: packed(arrays[name].astype(dtype)) for name in "qkv"}
    names = ["q", "k", "v"]
    words = {"num_heads": row.heads, "unidirectional": int(row.square_causal)}
    if row.padding:
        # Which keys of each batch entry are there.
        feeds["m"] = np.tile(np.arange(row.len_k) < padded_length(row),
                             (row.batch, 1)).astype(np.int32)
        names += ["", "m"]
    elif row.alibi or not row.square_causal and seen(row) is not None:
        feeds["m"] = float_mask(row).astype(dtype)
        names += ["", "", "m"]
    node = helper.make_node("MultiHeadAttention", names, ["o"],
                            domain="com.microsoft", **words)
    session = session_of(node, feeds, kind, threads)
    return Work(bound(session, feeds, feeds["q"].shape),
                lambda o: {"o": unpacked(row, o).astype(np.float64)})
