#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our error beside theirs: attention on random configurations by attn, torch,
JAX and onnxruntime, each against the formula in extended precision.

    python tests/peers/agreement.py [CONFIGURATIONS [SEED]]

Prints, for each library, type and result, the largest errors, and the ratio
ours / theirs of each configuration's error (root of the mean square, which
chance moves less than the largest): its geometric mean and its largest value.
Exits with 1 if one of our results leaves its bound
(docs/numerics.md), or theirs is so far off that the configuration was not the
same. (The "float64" of JAX and onnxruntime has float32 inside.)
"""

import os
import pathlib
import sys

os.environ["JAX_ENABLE_X64"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper

import attn
from reference import Problem, backward, check, forward, visible

TYPES = {"f64": np.float64, "f32": np.float32, "bf16": ml_dtypes.bfloat16,
         "f16": np.float16}
ONNX_TYPES = {"f64": TensorProto.DOUBLE, "f32": TensorProto.FLOAT,
              "f16": TensorProto.FLOAT16}


def draw(rng, dtype):
    """A configuration that all four can express: no row is empty."""
    group = int(rng.choice([1, 2, 4]))
    batch, kv = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    len_q, len_k = int(rng.choice([1, 7, 48])), int(rng.choice([7, 48]))
    dim = int(rng.choice([8, 32]))
    words = {}
    corner = rng.choice(["none", "top_left", "bottom_right"])
    # One query at the top left sees one key: no gradient to compare.
    if len_q > 1 if corner == "top_left" else corner != "none" and \
            len_q <= len_k:
        words["causal"] = str(corner)
    kind = rng.choice(["none", "bool", "float"])
    shape = (batch, kv * group, len_q, len_k)
    if kind == "bool":
        words["attn_mask"] = rng.random(shape[2:]) < 0.8
        words["attn_mask"][:, 0] = True
    elif kind == "float":
        words["attn_bias"] = rng.normal(size=shape).astype(dtype)
    return Problem(rng.normal(size=shape[:3] + (dim,)).astype(dtype),
                   rng.normal(size=(batch, kv, len_k, dim)).astype(dtype),
                   rng.normal(size=(batch, kv, len_k, dim)).astype(dtype),
                   words)


def plain_mask(p):
    """The corner and the boolean mask as one mask, or None; and the bias."""
    if p.get("causal", False) is False and p.get("attn_mask") is None:
        return None, p.get("attn_bias")
    seen = visible(Problem(p.q, p.k, p.v, {
        name: value for name, value in p.keywords.items()
        if name != "attn_bias"}))
    return np.ascontiguousarray(seen), p.get("attn_bias")


# ------------------------------------------------------- the four libraries


def by_attn(p, do):
    o, vjp = attn.attention_vjp(p.q, p.k, p.v, **p.keywords)
    g = vjp(do)
    return {"o": o, "dq": g.dq, "dk": g.dk, "dv": g.dv}


def to_torch(x):
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def by_torch(p, do):
    mask, bias = plain_mask(p)
    q, k, v = (to_torch(x).requires_grad_() for x in (p.q, p.k, p.v))
    if bias is not None:
        both = to_torch(np.ascontiguousarray(bias))
        if mask is not None:
            both = both.masked_fill(~torch.from_numpy(mask), -torch.inf)
    else:
        both = None if mask is None else torch.from_numpy(mask)
    o = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=both, enable_gqa=p.group > 1)
    grads = torch.autograd.grad(o, (q, k, v), to_torch(do))
    return {name: x.detach().double().numpy()
            for name, x in zip(("o", "dq", "dk", "dv"), (o, *grads))}


def by_jax(p, do):
    mask, bias = plain_mask(p)

    def run(q, k, v):
        return jax.nn.dot_product_attention(
            q, k, v, mask=None if mask is None else jnp.asarray(mask),
            bias=None if bias is None else jnp.asarray(bias))

    swap = [jnp.asarray(x).swapaxes(1, 2) for x in (p.q, p.k, p.v, do)]
    o, vjp = jax.vjp(run, *swap[:3])
    return {name: np.asarray(x.swapaxes(1, 2), dtype=np.float64)
            for name, x in zip(("o", "dq", "dk", "dv"), (o, *vjp(swap[3])))}


def by_onnxruntime(p, name):
    mask, bias = plain_mask(p)
    feeds = {"q": p.q, "k": p.k, "v": p.v}
    kind = ONNX_TYPES[name]
    if bias is not None:
        feeds["m"] = bias if mask is None else np.where(
            mask, bias, -np.inf).astype(bias.dtype)
    elif mask is not None:
        feeds["m"] = mask
    inputs = [helper.make_tensor_value_info(
        key, TensorProto.BOOL if x.dtype == bool else kind, x.shape)
        for key, x in feeds.items()]
    graph = helper.make_graph(
        [helper.make_node("Attention", list(feeds), ["o"])], "attention",
        inputs, [helper.make_tensor_value_info("o", kind, None)])
    model = helper.make_model(graph,
                              opset_imports=[helper.make_opsetid("", 24)])
    model.ir_version = min(model.ir_version, onnx.IR_VERSION, 11)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"])
    return {"o": session.run(None, feeds)[0]}


# --------------------------------------------------------------- the table


def errors(results, exact):
    """{result: (its largest error, the root of the mean square)}"""
    off = {name: abs(np.asarray(x, np.longdouble) - exact[name].value)
           for name, x in results.items()}
    return {name: (float(x.max()), float(np.sqrt((x * x).mean())))
            for name, x in off.items()}


def measure(n, seed):
    """{(library, type, result): [(*our errors, *theirs, size), ...]}, and how
    many results were out of bounds."""
    found, wrong = {}, 0
    for name, dtype in TYPES.items():
        rng = np.random.default_rng(seed)
        for i in range(n):
            p = draw(rng, dtype)
            do = rng.normal(size=p.q.shape).astype(dtype)
            exact = {"o": forward(p)["o"], **backward(p, do)}
            ours = by_attn(p, do)
            for key, x in ours.items():
                try:
                    check(key, x, exact[key])
                except AssertionError as problem:
                    wrong += 1
                    print(f"configuration {i} of {name}: {problem}")
            off = errors(ours, exact)
            peers = {"torch": by_torch(p, do), "jax": by_jax(p, do)}
            if name in ONNX_TYPES:
                peers["onnxruntime"] = by_onnxruntime(p, name)
            for peer, results in peers.items():
                for key, theirs in errors(results, exact).items():
                    size = float(abs(exact[key].value).max())
                    found.setdefault((peer, name, key), []).append(
                        (*off[key], *theirs, size))
    return found, wrong


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    found, wrong = measure(n, seed)
    print(f"attn {attn.__version__} ({attn.info()['isa']}), "
          f"torch {torch.__version__}, jax {jax.__version__}, "
          f"onnxruntime {onnxruntime.__version__}")
    print(f"{n} configurations a type, seed {seed}; errors against extended "
          "precision\n")
    print("library      type  of   largest error         ours / theirs, rms")
    print("                        ours      theirs      mean     largest")
    for (peer, name, key), rows in found.items():
        most, ours, their_most, theirs, size = np.array(rows).T
        # An error below a tenth of an ulp of the result is as good as none.
        floor = {"f64": 2**-57, "f32": 2**-28, "bf16": 2**-13,
                 "f16": 2**-16}[name] * size
        ratio = np.maximum(ours, floor) / np.maximum(theirs, floor)
        # Another configuration would be off by about the size of the result.
        other = their_most > 0.1 * size
        wrong += int(other.sum())
        print(f"{peer:12} {name:5} {key:3}  {most.max():8.2e}  "
              f"{their_most.max():8.2e}  "
              f"{np.exp(np.log(ratio).mean()):8.2g} {ratio.max():8.2g}"
              + ("  NOT THE SAME" if other.any() else ""))
    print(f"\n{wrong} results out of bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
