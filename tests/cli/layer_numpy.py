#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# layer_numpy.py ATTN: attn run on layers, from arrays and from models of every
# naming scheme, against NumPy float64: y, weights and gradients within the
# bound of their own rounding, carried from step to step. Also the first and the
# last layer of the model that `tools/setup model` has put into .venv, if it
# has. The same layer in another orientation, or packed, must have the same
# bits. Ends with `N passed, N failed`.

import json
import os
import re
import subprocess
import sys

import numpy as np

import fixtures

U = {"f8": 2.0 ** -53, "f4": 2.0 ** -24}
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "../../.venv/model/model.safetensors")
passed = failed = 0


def check(what, good, why=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"{what}: {why}")


# ------------------------------------------------------------ .safetensors

def write(path, tensors):
    """float32 tensors, float16 ones, and BF16 as uint16."""
    names = {"float32": "F32", "float64": "F64", "float16": "F16",
             "uint16": "BF16"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, x in tensors.items():
        piece = np.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": names[x.dtype.name], "shape": list(x.shape),
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def read(path, wanted):
    """float32 tensors whose names contain `wanted`."""
    with open(path, "rb") as file:
        n = int.from_bytes(file.read(8), "little")
        header, result = json.loads(file.read(n)), {}
        for name, entry in header.items():
            if wanted in name and entry["dtype"] == "F32":
                begin, end = entry["data_offsets"]
                file.seek(8 + n + begin)
                result[name] = np.frombuffer(file.read(end - begin), "f4") \
                    .reshape(entry["shape"])
    return result


# --------------------------------------------------------------- reference

def product(a, da, b, db, u, c=None):
    """a @ b + c and its error, from those of a and b: sums of n products."""
    n = a.shape[-1]
    y, size = a @ b, abs(a) @ abs(b)
    if c is not None:
        y, size = y + c, size + abs(c)
    return y, da @ abs(b) + abs(a) @ db + da @ db + (n + 2) * u * size


def layer(x, p, heads, kv_heads, u, causal=False, base=None):
    """y and weights, each with its error; second order is in a factor of 2."""
    x, p = x.astype("f8"), {n: w.astype("f8") for n, w in p.items()}
    zero = np.zeros(())

    def project(name, heads):
        w = p["w_" + name]
        y, e = product(x, 0 * x, w, 0 * w, u, p.get("b_" + name))
        shape = (*y.shape[:-1], heads, -1)
        return [t.reshape(shape).swapaxes(-2, -3) for t in (y, e)]

    def rotate(t, e):
        D = t.shape[-1]
        angle = np.arange(t.shape[-2])[:, None] \
            * base ** (-np.arange(0, D, 2) / D)
        c, s = np.cos(angle), np.sin(angle)
        a, b = t[..., :D // 2], t[..., D // 2:]
        ea, eb = e[..., :D // 2], e[..., D // 2:]
        y = np.concatenate([a * c - b * s, b * c + a * s], -1)
        f = abs(a) + abs(b)
        # Two products, a sum, and angles that are right to a few u.
        error = [abs(c) * ea + abs(s) * eb, abs(c) * eb + abs(s) * ea]
        return y, np.concatenate([error[0] + 4 * u * f, error[1] + 4 * u * f],
                                 -1)

    (q, eq), (k, ek), (v, ev) = (project("q", heads), project("k", kv_heads),
                                 project("v", kv_heads))
    if base:
        (q, eq), (k, ek) = rotate(q, eq), rotate(k, ek)
    k, ek, v, ev = (np.repeat(t, heads // kv_heads, -3)
                    for t in (k, ek, v, ev))
    s, es = product(q, eq, k.swapaxes(-1, -2), ek.swapaxes(-1, -2), u)
    scale = q.shape[-1] ** -0.5
    s, es = s * scale, es * scale + 2 * u * abs(s) * scale
    if causal:
        s = np.where(np.tri(s.shape[-2], dtype=bool), s, -np.inf)
        es = np.where(np.isfinite(s), es, 0)
    w = np.exp(s - s.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    ew = w * (2 * es.max(-1, keepdims=True) + (s.shape[-1] + 16) * u)
    o, eo = product(w, ew, v, ev, u)
    o, eo = (t.swapaxes(-2, -3).reshape(*x.shape[:-1], -1) for t in (o, eo))
    y, ey = product(o, eo, p["w_o"], 0 * p["w_o"], u, p.get("b_o", zero)) \
        if "w_o" in p else (o, eo)
    return {"y": (y, 2 * ey), "weights": (w, 2 * ew), "o": (o, 2 * eo)}


def compare(what, got, want):
    (value, error) = want
    worst = (abs(got - value) / (error + 1e-300)).max(initial=0)
    check(what, got.shape == value.shape and worst <= 1,
          f"{worst:.3g} of its bound")


# ------------------------------------------------------------------- cases

def run(attn, *words, code=0):
    done = subprocess.run([attn, "run", *words], capture_output=True,
                          text=True, check=False)
    check(" ".join(words), done.returncode == code,
          f"ended with {done.returncode}: {done.stderr}")
    return done.stderr


def compute(attn, *words):
    run(attn, *words, "-o", "out.npz")
    with np.load("out.npz") as file:
        return dict(file)


def random_layer(rng, d, heads, kv_heads, dim, bias=True, kind="f4"):
    p = {}
    n_q, n_kv = heads * dim, kv_heads * dim
    for name, rows, columns in (("q", d, n_q), ("k", d, n_kv),
                                ("v", d, n_kv), ("o", n_q, d)):
        p["w_" + name] = (rng.normal(size=(rows, columns)) / rows ** 0.5) \
            .astype(kind)
        if bias:
            p["b_" + name] = rng.normal(size=columns).astype(kind)
    return p


def arrays(attn, rng):
    """From plain arrays: both types, cross sizes, causal, rope, gradients."""
    for kind in ("f8", "f4"):
        for heads, kv_heads, causal, base in ((4, 4, False, None),
                                              (4, 2, True, None),
                                              (6, 1, True, 10000.0)):
            p = random_layer(rng, 24, heads, kv_heads, 4, kind=kind)
            x = rng.normal(size=(2, 7, 24)).astype(kind)
            dy = rng.normal(size=(2, 7, 24)).astype(kind)
            np.savez("layer.npz", x=x, dy=dy, **p)
            words = ["layer.npz", f"--heads={heads}", "--weights", "--grad"]
            words += ["--causal"] * causal
            words += [f"--rope=half,base={base}"] * bool(base)
            got = compute(attn, *words)
            want = layer(x, p, heads, kv_heads, U[kind], causal, base)
            for name in ("y", "weights"):
                compare(f"{name} {kind} {heads}/{kv_heads}", got[name],
                        want[name])
            # dW_o = o^T dy, db_o = 1^T dy, over all rows.
            o, eo = (t.reshape(14, -1) for t in want["o"])
            dy = dy.reshape(14, -1).astype("f8")
            compare("dw_o", got["dw_o"],
                    product(o.T, eo.T, dy, 0 * dy, U[kind]))
            ones = np.ones((1, 14))
            db, error = product(ones, 0 * ones, dy, 0 * dy, U[kind])
            compare("db_o", got["db_o"], (db[0], error[0]))
            if kind == "f8":
                differences(attn, rng, p, x, words, got)
                explained(attn, words, got, heads, kv_heads)


def explained(attn, words, got, heads, kv_heads):
    """attn explain tells of batch 1 and the last head what attn run gave: the
    values of small arrays, least and largest of the others. The two compute
    in different orders: 2^-40 of the largest number is far above that and far
    below any mistake."""
    words = [w for w in words if w != "--weights"]
    done = subprocess.run([attn, "explain", *words, "--json", "--batch=1",
                           f"--head={heads - 1}"], capture_output=True,
                          text=True, check=False)
    check("explain a layer", done.returncode == 0, done.stderr)
    steps = {step["name"]: step for step in json.loads(done.stdout)["steps"]}
    dim = got["dw_q"].shape[1] // heads
    h, g = (slice((n - 1) * dim, n * dim) for n in (heads, kv_heads))
    want = {"y": got["y"][1], "weights": got["weights"][1, -1],
            "lse": got["lse"][1, -1], "dx": got["dx"][1],
            "dw_o": got["dw_o"][h]}
    want |= {n: got[n][..., s] for n, s in (
        ("dw_q", h), ("dw_k", g), ("dw_v", g), ("db_q", h), ("db_k", g),
        ("db_v", g))}
    for name, x in want.items():
        step = steps[name]
        told = [step["min"], step["max"], *np.ravel(step.get("values", []))]
        right = [x.min(), x.max(), *(x.ravel() if "values" in step else [])]
        check(f"explain tells {name}", len(told) == len(right) and np.abs(
            np.subtract(told, right)).max() <= 2 ** -40 * abs(x).max(),
            f"{told} and not {right}")


def differences(attn, rng, p, x, words, got):
    """Along a random direction of every parameter and of x, the loss y.dy
    changes as the gradients say. Central differences at two steps, h and h/2,
    tell their own error: it falls by four."""
    with np.load("layer.npz") as file:
        base = dict(file)
    words = [w for w in words if w not in ("--grad", "--weights")]

    def loss(step, name, direction):
        np.savez("moved.npz", **{**base, name: base[name] + step * direction})
        y = compute(attn, "moved.npz", *words[1:])["y"]
        return float((y * base["dy"]).sum())

    for name in ("x", "w_q", "w_k", "w_v", "b_q", "b_v"):
        direction = rng.normal(size=base[name].shape)
        slopes = [(loss(h, name, direction) - loss(-h, name, direction))
                  / (2 * h) for h in (2e-3, 1e-3)]
        truth = float((got["d" + name] * direction).sum())
        # What the larger step is off, and the rounding of the difference.
        room = abs(slopes[0] - slopes[1]) + 1e-9 * (1 + abs(truth))
        check(f"d{name}", abs(slopes[1] - truth) <= room,
              f"{truth} by the gradient, {slopes[1]} by differences")


SPLIT = {
    "BERT": ("attention.", ["self.query", "self.key", "self.value",
                            "output.dense"]),
    "Llama": ("self_attn.", ["q_proj", "k_proj", "v_proj", "o_proj"]),
    "BART": ("self_attn.", ["q_proj", "k_proj", "v_proj", "out_proj"]),
    "DistilBERT": ("attention.", ["q_lin", "k_lin", "v_lin", "out_lin"]),
}


def tensors_of(title, p, prefix):
    """A layer in the names and the orientation of a framework."""
    if title in SPLIT:
        within, names = SPLIT[title]
        result = {}
        for name, ours in zip(names, "qkvo"):
            result[prefix + within + name + ".weight"] = p["w_" + ours].T
            if "b_" + ours in p:
                result[prefix + within + name + ".bias"] = p["b_" + ours]
        return result
    w = np.concatenate([p["w_" + n] for n in "qkv"], 1)
    b = np.concatenate([p["b_" + n] for n in "qkv"])
    if title == "GPT-2":
        at = prefix + "attn."
        return {at + "c_attn.weight": w, at + "c_attn.bias": b,
                at + "c_proj.weight": p["w_o"], at + "c_proj.bias": p["b_o"]}
    at = prefix + "self_attn."
    return {at + "in_proj_weight": w.T, at + "in_proj_bias": b,
            at + "out_proj.weight": p["w_o"].T, at + "out_proj.bias": p["b_o"]}


def models(attn, rng):
    """Every scheme, at the block and at the attention, against plain arrays:
    the same bits, and gradients of the shape of the file's tensors."""
    for title in (*SPLIT, "GPT-2", "nn.MultiheadAttention"):
        p = random_layer(rng, 16, 4, 2 if title == "Llama" else 4, 4,
                         bias=title != "Llama")
        x = rng.normal(size=(5, 16)).astype("f4")
        tensors = tensors_of(title, p, "h.0.")
        write("m.safetensors", {**tensors, "h.0.ln.weight": x[0]})
        np.save("x.npy", x)
        np.savez("layer.npz", x=x, **p)
        grad = ["--heads=4", "--grad", "--loss=half-square"]
        plain = compute(attn, "layer.npz", *grad)
        compare(title, plain["y"], layer(x, p, 4, p["w_k"].shape[1] // 4,
                                         U["f4"])["y"])
        name = next(iter(tensors))
        inner = "h.0." + name[4:].split(".")[0]
        for prefix in ("h.0", "h.0.", inner):
            got = compute(attn, "x.npy", "--model=m.safetensors",
                          "--prefix", prefix, *grad)
            check(f"{title} at {prefix}",
                  all((got[n] == plain[n]).all() for n in ("y", "lse", "dx")),
                  "other bits than from arrays")
        linear = title != "GPT-2"
        if "dw_qkv" in got:
            w = got["dw_qkv"].T if linear else got["dw_qkv"]
            got.update(zip(("dw_q", "dw_k", "dw_v"), np.split(w, 3, 1)))
            got.update(zip(("db_q", "db_k", "db_v"),
                           np.split(got["db_qkv"], 3)))
        else:
            got.update({n: got[n].T for n in ("dw_q", "dw_k", "dw_v")})
        got["dw_o"] = got["dw_o"].T if linear else got["dw_o"]
        for n in plain:
            check(f"{title} {n}", np.array_equal(got[n], plain[n]),
                  "differs from that of arrays")
    mapped(attn, p, x)


def mapped(attn, p, x):
    """--map, with and without --linear; bf16 weights follow x."""
    np.savez("layer.npz", x=x, **p)
    plain = compute(attn, "layer.npz", "--heads=4")
    write("m.safetensors", {f"a.{n}": w for n, w in p.items()})
    maps = [f"--map={n}=a.{n}" for n in p]
    got = compute(attn, "x.npy", "--model=m.safetensors", "--heads=4", *maps)
    check("--map", (got["y"] == plain["y"]).all(), "other bits")
    write("m.safetensors", {f"a.{n}": np.ascontiguousarray(w.T)
                            for n, w in p.items()})
    got = compute(attn, "x.npy", "--model=m.safetensors", "--heads=4",
                  "--linear", "--prefix=a", *[f"--map={n}={n}" for n in p])
    check("--map --linear", (got["y"] == plain["y"]).all(), "other bits")
    cut = {n: (w.view("u4") >> 16).astype("u2") for n, w in p.items()}
    np.savez("layer.npz", x=x, **{n: (w.astype("u4") << 16).view("f4")
                                  for n, w in cut.items()})
    plain = compute(attn, "layer.npz", "--heads=4")
    write("m.safetensors", cut)
    got = compute(attn, "x.npy", "--model=m.safetensors", "--heads=4",
                  *[f"--map={n}={n}" for n in p])
    check("bf16 model", (got["y"] == plain["y"]).all(), "other bits")


def real(attn, rng, path):
    """Layers of a BERT on disk."""
    tensors = read(path, "attention")
    layers = sorted({int(m.group(1)) for m in
                     (re.search(r"layer\.(\d+)\.", n) for n in tensors) if m})
    for n in (layers[0], layers[-1]):
        prefix = f"encoder.layer.{n}.attention"
        p = {}
        for name, ours in zip(SPLIT["BERT"][1], "qkvo"):
            p["w_" + ours] = tensors[f"{prefix}.{name}.weight"].T
            p["b_" + ours] = tensors[f"{prefix}.{name}.bias"]
        x = rng.normal(size=(2, 19, p["w_q"].shape[0])).astype("f4")
        np.save("x.npy", x)
        got = compute(attn, "x=x.npy", "--model", path, "--prefix", prefix,
                      "--linear", "--heads=12", "--weights")
        want = layer(x, p, 12, 12, U["f4"])
        for name in ("y", "weights"):
            compare(f"{name} of {prefix}", got[name], want[name])


def main():
    attn = os.path.abspath(sys.argv[1])
    rng = np.random.default_rng(7)
    with fixtures.own_folder():
        arrays(attn, rng)
        models(attn, rng)
        if os.path.exists(MODEL):
            real(attn, rng, MODEL)
        else:
            print("no model here (tools/setup model): passed over")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
