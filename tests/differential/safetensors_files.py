#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# safetensors_files.py READ_FILES [N [SEED]]: N files, good and damaged, read by
# us and by the format's own library. Ends with `N passed, N failed`.

import json
import re
import sys

import numpy as np
import safetensors

from our_reader import damage, run

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "V2", "BOOL": "?",
         "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "u1",
         "U16": "<u2", "U32": "<u4", "U64": "<u8"}
# Reasons for which we alone may refuse: see docs/formats.md.
REFUSALS = [
    (r"E_FORMAT", r"a name that is empty or has control characters"
                  r"|does not begin with '{'"),
    (r"E_OVERFLOW", r"above 2\^63|product of shape"),
    (r"E_DUPLICATE", r"twice"),
    (r"E_UNSUPPORTED", r"type"),
]
TOKENS = ["{", "}", "[", "]", ",", ":", '"', " ", "\n", "\\", "0", "1", "3",
          "-1", "12", "3.0", "3e0", "03", "1e999", "9007199254740993",
          "9223372036854775807", "18446744073709551616", "true", "null",
          '"a"', '"dtype"', '"shape"', '"data_offsets"', '"__metadata__"',
          '"F32"', '"F8_E4M3"', '"F4"', '"I32"', '"x"', "[]", "{}", "[0, 4]",
          '""', "\x00", "\x7f", '"\\u0041"', '"\\ud800"',
          '"\\ud83d\\ude00"', "\u00e9"]


def content(rng, kind, n):
    if kind == "BF16":
        return rng.integers(0, 65536, size=n).astype("u2").tobytes()
    if kind == "BOOL":
        return rng.integers(0, 2, size=n).astype("u1").tobytes()
    if kind[0] in "IU":
        return rng.integers(0, 127, size=n).astype(TYPES[kind]).tobytes()
    return (rng.normal(size=n) * 50).astype(TYPES[kind]).tobytes()


def good(rng):
    """(header as an object, data) of a few tensors in any order."""
    header, data = {}, b""
    names = rng.permutation(["w", "b", "layer.0.w", "é", "W", "a/b"])
    for name in names[:rng.integers(0, 5)]:
        kind = str(rng.choice(list(TYPES)))
        shape = [int(n) for n in rng.integers(0, 4, size=rng.integers(0, 4))]
        piece = content(rng, kind, int(np.prod(shape)))
        entry = [("dtype", kind), ("shape", shape),
                 ("data_offsets", [len(data), len(data) + len(piece)])]
        header[str(name)] = {entry[n][0]: entry[n][1]
                             for n in rng.permutation(3)}
        data += piece
    if rng.random() < 0.3:
        header["__metadata__"] = {"format": "pt"}
    order = rng.permutation(list(header)) if header else []
    return {name: header[name] for name in order}, data


def whole(text, data):
    return len(text).to_bytes(8, "little") + text + data


def text_of(rng, header):
    text = json.dumps(header, ensure_ascii=rng.random() < 0.5,
                      separators=[(",", ":"), (", ", ": ")][
                          rng.integers(0, 2)])
    return text.encode() + b" " * int(rng.integers(0, 9))


def change_numbers(rng, header):
    """Sizes and offsets a little off, or swapped between tensors."""
    entries = [e for e in header.values() if "shape" in e]
    for _ in range(rng.integers(1, 3)):
        if not entries:
            return
        e = entries[rng.integers(0, len(entries))]
        key = ["shape", "data_offsets", "dtype"][rng.integers(0, 3)]
        other = entries[rng.integers(0, len(entries))]
        if key == "dtype" or not e[key] or rng.random() < 0.3:
            e[key] = other[key]
        else:
            at = int(rng.integers(0, len(e[key])))
            e[key] = list(e[key])
            e[key][at] += int(rng.choice([-1, 1, 4, 2 ** 53, 2 ** 63]))


def change_words(rng, text):
    """Words of the header replaced, doubled, dropped."""
    words = re.findall(r'"[^"]*"|[\w.+-]+|.', text.decode(), re.S)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, max(1, len(words))))
        action = rng.integers(0, 4)
        token = str(rng.choice(TOKENS))
        words[at:at + (action != 0)] = [[token], [token], [], words[at:at + 1]
                                        * 2][action]
    return "".join(words).encode("utf-8", "surrogatepass")


def make(rng):
    header, data = good(rng)
    choice = rng.integers(0, 8)
    if choice == 0:
        change_numbers(rng, header)
    text = text_of(rng, header)
    if choice == 1:
        text = change_words(rng, text)
    if choice == 2:
        data += bytes(int(rng.integers(1, 5)))
    if choice == 3:
        return damage(rng, whole(text, data))
    return whole(text, data)


def array_of(tensor):
    x = np.frombuffer(tensor["data"], TYPES.get(tensor["dtype"], "u1"))
    try:
        return x.reshape(tensor["shape"] if tensor["dtype"] in TYPES else -1)
    except ValueError:  # a shape of no elements that NumPy can't have
        return np.zeros(())


def theirs(path):
    """{name: array}, or the exception."""
    try:
        with open(path, "rb") as file:
            tensors = safetensors.deserialize(file.read())
    except Exception as error:  # whatever it raises, it refuses
        return error
    return {name: array_of(x) for name, x in tensors}


# Of a type that we don't read we don't know the size, either.
ALONE = "unknown variant|invalid shape, data type, or offset"

if __name__ == "__main__":
    sys.exit(run("x.safetensors", make, theirs, "safetensors", REFUSALS,
                 ALONE))
