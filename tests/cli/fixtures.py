# SPDX-License-Identifier: Apache-2.0
#
# fixtures.py: the small files that the sessions use. Numbers are halves of
# small integers, so that the files are the same with every NumPy.

import contextlib
import json
import os
import struct
import tempfile
import zipfile

import numpy as np


@contextlib.contextmanager
def own_folder():
    """Work in a new folder, which goes at the end."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def numbers(*shape, kind="f8", shift=0):
    """Halves from -1 to 1 in a fixed order."""
    n = int(np.prod(shape))
    x = (np.arange(n) * 7 + 3 + shift) % 5 - 2
    return (x / 2).reshape(shape).astype(kind)


def raw_npy(path, header, data, version=1):
    """A .npy with any header."""
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + length + text + data)


def good():
    q, k, v = numbers(3, 4), numbers(3, 4, shift=1), numbers(3, 2, shift=2)
    three = {"q": q, "k": k, "v": v}
    np.savez("self.npz", **three)
    np.savez("grad.npz", do=numbers(3, 2, shift=4), **three)
    e = np.exp(q @ k.T / 2)
    np.savez("judged.npz", o=e / e.sum(1, keepdims=True) @ v, **three)
    np.savez("words.npz", tokens=np.array(["the", "chat", "s’assit"]), **three)
    np.savez("upper.npz", Q=q, K=k, V=v)
    np.savez("more.npz", extra=q, q2=q, **three)
    np.savez("many.npz", **three, **{f"x{i}": q for i in range(10)})
    np.savez_compressed("packed.npz", **three)
    np.savez("oblong.npz", q=numbers(2, 4), k=numbers(5, 4), v=numbers(5, 4))
    np.savez("heads.npz", q=numbers(4, 3, 4, kind="f4"),
             k=numbers(2, 3, 4, kind="f4", shift=1),
             v=numbers(2, 3, 2, kind="f4"), tokens=np.array([b"a", b"b", b"c"]))
    np.savez("batch.npz", q=numbers(2, 2, 3, 4), k=numbers(2, 2, 3, 4),
             v=numbers(2, 2, 3, 4))
    np.savez("half.npz", **{n: x.astype("f2") for n, x in three.items()})
    np.savez("bf16.npz", **{n: (x.astype("f4").view("u4") >> 16).astype("u2")
                            .view("V2") for n, x in three.items()})
    np.savez("long.npz", **{n: numbers(2, 40, 4) for n in "qkv"})
    np.savez("varlen.npz", q=numbers(5, 2, 4), k=numbers(6, 2, 4),
             v=numbers(6, 2, 4), cu_seqlens_q=np.array([0, 2, 5]),
             cu_seqlens_k=np.array([0, 3, 6], "i4"))
    for name in "qkv":
        np.save(name + ".npy", three[name])
    np.save("fortran.npy", np.asfortranarray(q))
    np.save("big_endian.npy", q.astype(">f8"))


def slow():
    """An attention that takes longer than a second to come to itself, and one
    with a limit."""
    with open("slow.py", "w", encoding="utf-8") as file:
        file.write("""import time
import numpy as np

time_left = [1.3]


def attention(q, k, v):
    time.sleep(time_left.pop() if time_left else 0)
    s = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def filled(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        s = np.where(mask, s, -1e9)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v
""")


def wrong_shapes():
    np.save("q1.npy", numbers(4))
    np.save("q5.npy", numbers(1, 1, 1, 3, 4))
    np.save("q3.npy", numbers(1, 3, 4))
    np.save("k_dim.npy", numbers(3, 5))
    np.save("k_len.npy", numbers(4, 4))
    np.save("k_heads.npy", numbers(3, 3, 4, kind="f4"))
    np.save("v_heads.npy", numbers(3, 3, 2, kind="f4"))
    np.save("mask.npy", np.tri(3, dtype=bool))
    np.save("mask_none.npy", np.zeros((3, 3), bool))
    np.save("mask_shape.npy", np.ones((2, 3), bool))
    np.save("mask_float.npy", np.ones((3, 3)))
    np.save("mask_int.npy", np.ones((3, 3), "u1"))
    np.save("mask5.npy", np.ones((1, 1, 1, 3, 3), bool))
    np.save("bias.npy", numbers(3, 3))
    np.save("bias_int.npy", np.ones((3, 3), "i8"))
    np.save("slopes.npy", np.array([0.5]))
    np.save("slopes2.npy", np.array([0.5, 0.25]))
    np.save("length.npy", np.array([2]))
    np.save("length_scalar.npy", np.int32(2))
    np.save("length9.npy", np.array([9]))
    np.save("length_float.npy", np.array([2.0]))
    np.save("lengths2.npy", np.array([2, 2]))
    np.save("positions.npy", np.array([5, 6, 7]))
    np.save("positions2.npy", np.array([5, 6]))
    np.save("do_wrong.npy", numbers(2, 3))
    np.save("dlse.npy", np.ones(3))
    np.save("tokens2.npy", np.array(["a", "b"]))
    np.save("cu_down.npy", np.array([0, 3, 2]))
    np.save("cu_short.npy", np.array([0, 2, 4]))
    np.save("cu_one.npy", np.array([1, 2, 5]))
    np.save("cu_float.npy", np.array([0.0, 2.0, 5.0]))
    np.save("cu_two.npy", np.array([0, 5]))


def wrong_types():
    np.save("int.npy", np.arange(12).reshape(3, 4))
    np.save("f4.npy", numbers(3, 4, kind="f4"))
    np.save("text.npy", np.array(["a", "b"]))
    np.savez("object.npz", q=np.array([{}], dtype=object), k=numbers(3, 4),
             v=numbers(3, 4))
    np.save("object.npy", np.array([None], dtype=object))


def wrong_files():
    def member(archive, name, content=b"", **fields):
        info = zipfile.ZipInfo(name)
        for field, value in fields.items():
            setattr(info, field, value)
        archive.writestr(info, content)

    with open("q.npy", "rb") as file:
        npy = file.read()
    usual = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
    open("empty.npz", "wb").close()
    raw_npy("cut.npy", usual, b"\0" * 23)
    raw_npy("trailing.npy", usual, b"\0" * 25)
    raw_npy("version.npy", usual, b"\0" * 24, version=4)
    raw_npy("call.npy", usual.replace("(3,)", "(np.int64(3),)"), b"\0" * 24)
    raw_npy("wrap.npy", usual.replace("(3,)", "(4294967296, 4294967296)"), b"")
    raw_npy("twice.npy", usual.replace("{", "{'shape': (3,), "), b"\0" * 24)
    with open("noise.npz", "wb") as file:
        file.write(b"this is no archive at all, but it is long enough")
    with open("self.npz", "rb") as file:
        whole = file.read()
    with open("cut.npz", "wb") as file:
        file.write(whole[:-1])
    with open("crc.npz", "wb") as file:
        at = whole.index(b"\x93NUMPY") + 130
        file.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    with zipfile.ZipFile("path.npz", "w") as archive:
        member(archive, "../q.npy", npy)
    with zipfile.ZipFile("mixed.npz", "w") as archive:
        member(archive, "q.npy", npy)
        member(archive, "readme.txt", b"hello")
    with zipfile.ZipFile("bzip2.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("q.npy", npy)
    with zipfile.ZipFile("two.npz", "w") as archive:
        member(archive, "q", npy)
        member(archive, "q.npy", npy)
    os.mkdir("folder.npz")


def safetensors(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        end = len(data) + x.nbytes
        header[name] = {"dtype": "F32", "shape": list(x.shape),
                        "data_offsets": [len(data), end]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def layers():
    weights = {"w_" + n: numbers(4, 4, kind="f4", shift=i)
               for i, n in enumerate("qkvo")}
    x = numbers(3, 4, kind="f4")
    np.savez("layer.npz", x=x, **weights)
    np.savez("layer_biased.npz", x=x, dy=numbers(3, 4, kind="f4", shift=3),
             **weights, **{"b_" + n: numbers(4, kind="f4", shift=i)
                           for i, n in enumerate("qkvo")})
    np.savez("layer_cross.npz", x=x, x_kv=numbers(2, 4, kind="f4", shift=1),
             **{n: w for n, w in weights.items() if n != "w_o"})
    np.savez("layer_packed.npz", x=x, w_qkv=numbers(4, 10, kind="f4"))
    np.savez("layer_mixed.npz", x=x, w_q=weights["w_q"],
             w_k=weights["w_k"].astype("f8"), w_v=weights["w_v"])
    np.savez("layer_flat.npz", x=x, w_q=x[0], w_k=x[0], w_v=x[0])
    np.save("x.npy", x)
    np.save("x1.npy", x[0])
    llama = {"h.0.self_attn." + n + "_proj.weight": weights["w_" + n]
             for n in "qkvo"}
    safetensors("llama.safetensors", llama)
    safetensors("norm.safetensors",
                {**llama, "h.0.self_attn.q_norm.weight": x[0, :2]})
    safetensors("gpt2.safetensors", {"h.0.attn.c_attn.weight":
                                     numbers(4, 12, kind="f4")})
    bert = dict(zip("qkvo", ("self.query", "self.key", "self.value",
                             "output.dense")))
    safetensors("bert.safetensors", {
        f"layer.0.attention.{bert[n]}.{kind}": w for n in bert for kind, w in
        (("weight", weights["w_" + n]), ("bias", x[0]))})
    safetensors("mha.safetensors", {
        "h.0.self_attn.in_proj_weight": numbers(12, 4, kind="f4"),
        "h.0.self_attn.in_proj_bias": numbers(12, kind="f4"),
        "h.0.self_attn.out_proj.weight": weights["w_o"],
        "h.0.self_attn.out_proj.bias": x[0]})
    safetensors("odd.safetensors", {"a." + n: w for n, w in weights.items()})
    safetensors("none.safetensors", {"embeddings": x})
    with open("llama.safetensors", "rb") as file:
        whole = file.read()
    for name, data in (("cut", whole[:-1]), ("long", whole + b"0"),
                       ("huge", struct.pack("<Q", 2 ** 63) + whole[8:]),
                       ("text", whole[:8] + b"x" + whole[9:]),
                       ("seven", whole[:7])):
        with open(name + ".safetensors", "wb") as file:
            file.write(data)


def make():
    """All files, in the current folder."""
    layers()
    good()
    slow()
    wrong_shapes()
    wrong_types()
    wrong_files()
