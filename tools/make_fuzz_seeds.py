#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# make_fuzz_seeds: the first files of tests/fuzz/corpus, small ones of each
# kind that the readers know. Needs numpy: .venv/bin/python tools/make_fuzz_...

import io
import json
import os
import random
import struct
import zipfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")

ARRAYS = {
    "f4": numpy.arange(6, dtype="<f4").reshape(2, 3),
    "big": numpy.arange(4, dtype=">f8"),
    "half": numpy.ones((1, 2), "<f2"),
    "fortran": numpy.asfortranarray(numpy.arange(6, dtype="i2").reshape(2, 3)),
    "flags": numpy.array([True, False]),
    "words": numpy.array(["it", "animal"]),
    "bytes": numpy.array([b"ab", b"c"]),
    "void": numpy.zeros(2, "V2"),
    "scalar": numpy.array(1.5),
    "empty": numpy.zeros((0, 3), "<i8"),
}


def save(folder, name, data):
    os.makedirs(os.path.join(CORPUS, folder), exist_ok=True)
    with open(os.path.join(CORPUS, folder, name), "wb") as file:
        file.write(data)


def npy(array, version=None):
    buffer = io.BytesIO()
    numpy.lib.format.write_array(buffer, array, version)
    return buffer.getvalue()


def npz(names, method, zip64=False):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in names:
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w",
                              force_zip64=zip64) as member:
                member.write(npy(ARRAYS[name]))
    return buffer.getvalue()


def safetensors(tensors, metadata=None):
    """tensors: name, dtype, shape, bytes."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, piece in tensors:
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def text(string):
    return struct.pack("<I", len(string)) + string


def messages():
    """One of each kind; the first byte says which."""
    yield "hello", b"\0H" + struct.pack("<I", 2) + text(b"q") + b"\0" + \
        text(b"") + text(b"mask") + b"\1" + text(b"None") + text(b"words")
    yield "failure", b"\0E" + text(b"it could not be loaded")
    tensor = struct.pack("<BBqqqqQ", 1, 2, 2, 3, 3, 1, 6) + bytes(48)
    yield "call", b"\1" + struct.pack("<I", 6) + \
        struct.pack("<iB", 0, 1) + tensor + \
        struct.pack("<iBd", 1, 2, 0.5) + struct.pack("<iBq", 2, 3, 7) + \
        struct.pack("<iBB", 3, 4, 1) + struct.pack("<iBqq", 4, 5, 2, 0) + \
        struct.pack("<iB", 5, 6) + text(b"word")
    yield "answer", b"\2A" + struct.pack("<dIIBBqq", 0.25, 1, 1, 2, 2, 1, 2) \
        + bytes(16)
    yield "refusal", b"\2R" + text(b"it refused")


def dump(arrays):
    """Arrays by the number of their name, of type float64."""
    found = b"\1\77"
    for name, array in arrays:
        found += bytes([name, 0, array.ndim, *array.shape]) + \
            array.astype("<f8").tobytes()
    return found


def dumps():
    generator = numpy.random.default_rng(5)
    q, k = generator.normal(size=(2, 2)), generator.normal(size=(3, 2))
    v, do = generator.normal(size=(3, 1)), generator.normal(size=(2, 1))
    p = numpy.exp(q @ k.T / numpy.sqrt(2))
    p /= p.sum(1, keepdims=True)
    dp = do @ v.T
    ds = p * (dp - (p * dp).sum(1, keepdims=True)) / numpy.sqrt(2)
    qkv = [(0, q), (1, k), (2, v)]
    yield "forward", dump([*qkv, (3, p @ v)])
    yield "wrong", dump([*qkv, (3, q[:, :1])])
    yield "backward", dump([*qkv, (3, p @ v), (4, do), (5, ds @ k),
                            (6, ds.T @ q), (7, p.T @ do)])
    yield "weights", dump([*qkv, (3, p @ v), (15, p)])


def main():
    for name, message in messages():
        save("protocol", name + "_seed", message)
    for name, arrays in dumps():
        save("dump", name + "_seed", arrays)
    for name, array in ARRAYS.items():
        save("npy", name + "_seed", npy(array))
    save("npy", "version2_seed", npy(ARRAYS["f4"], (2, 0)))
    save("npy", "version3_seed", npy(ARRAYS["words"], (3, 0)))
    save("npz", "stored_seed", npz(["f4", "words"], zipfile.ZIP_STORED))
    save("npz", "zip64_seed", npz(["f4"], zipfile.ZIP_STORED, True))
    save("npz", "deflated_seed", npz(["f4", "flags"], zipfile.ZIP_DEFLATED))
    save("npz", "none_seed", npz([], zipfile.ZIP_STORED))
    for name, dtype, size in (("f32", "F32", 4), ("bf16", "BF16", 2),
                              ("bool", "BOOL", 1), ("u64", "U64", 8),
                              ("unknown", "F8_E4M3", 1)):
        save("safetensors", name + "_seed",
             safetensors([("a", dtype, [2, 3], bytes(6 * size))]))
    save("safetensors", "many_seed", safetensors(
        [("x.\u00e9", "I8", [1], b"1"), ("n", "F64", [0, 3], b""),
         ("s", "F16", [], b"12")], {"format": "pt"}))
    save("safetensors", "none_seed", safetensors([]))
    # Calls are read from bytes of any kind; zeros are the plainest call.
    generator = random.Random(1)
    for i in range(8):
        save("call", f"random{i}_seed", generator.randbytes(120))
    save("call", "plain_seed", bytes([0, 0, 1, 2, 1, 0, 9, 70, 8, 8]))
    save("picture", "random_seed", random.Random(3).randbytes(240))
    # A figure of two panels: its options, eight labels, sides and numbers.
    save("picture", "plain_seed", bytes([0xf8, 1]) + b"a label " * 8 +
         bytes([0x1f, 5, 7]) + bytes([100, 150] * 16) +
         bytes([0x0f, 5, 7]) + bytes([100, 90] * 16))


if __name__ == "__main__":
    main()
