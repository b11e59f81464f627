#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# conform_test CONFORM VECTORS: conform fails on everything that it ought to
# fail on. Each row takes one good case, spoils one thing, and expects a
# failure that says what is wrong; the good case itself has to pass.

import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

CONFORM, VECTORS = sys.argv[1:]


def read(folder, name):
    """The sidecar and the members of a case."""
    base = os.path.join(VECTORS, folder, name)
    with open(base + ".json", encoding="utf-8") as file:
        sidecar = json.load(file)
    with zipfile.ZipFile(base + ".npz") as file:
        return sidecar, {n: file.read(n) for n in file.namelist()}


def packed(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def conform(index, sidecar, npz):
    """Run conform on a folder of one case; its output and exit code."""
    with tempfile.TemporaryDirectory() as folder:
        def put(name, content):
            if content is not None:
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)

        put("index.json", index)
        put("case.json", json.dumps(sidecar).encode())
        put(sidecar["file"], npz)
        done = subprocess.run([CONFORM, folder], text=True, check=False,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    return done.stdout, done.returncode


def nudged(members, array):
    """The largest float64 of an array off by one part in 10^9."""
    data = members[array]
    start = 10 + struct.unpack("<H", data[8:10])[0]
    values = [v for v, in struct.iter_unpack("<d", data[start:])]
    at = max(range(len(values)), key=lambda n: abs(values[n]))
    values[at] *= 1 + 1e-9
    data = data[:start] + struct.pack(f"<{len(values)}d", *values)
    return {**members, array: data}


def without(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


def deep(sidecar, path, value):
    """A copy of the sidecar with one member, given by its path, changed."""
    copy = json.loads(json.dumps(sidecar))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copy


INDEX = b'{"cases": [{"name": "case"}]}'


def rows():
    """(name, index, sidecar, npz, words expected in the output)."""
    side, members = read("core", "everything_b")
    good = packed(members)
    flipped = bytearray(good)
    flipped[-2000] ^= 1
    yield "no index", None, side, good, "index.json"
    yield "index is no JSON", b"{", side, good, "FAIL"
    yield "empty index", b'{"cases": []}', side, good, "no cases"
    yield ("case that is not there", b'{"cases": [{"name": "other"}]}', side,
           good, "other.json")
    yield "no arrays", INDEX, side, None, "FAIL"
    yield "arrays end early", INDEX, side, good[:-100], "FAIL"
    yield "a bit flipped", INDEX, side, bytes(flipped), "FAIL"
    yield ("an array is missing", INDEX, side,
           packed(without(members, "k.npy")), "no array k")
    for path, value, words in [
            (["kind"], "conv", "conv"),
            (["options", "scale"], 0.578, "reference: "),
            (["options", "softcap"], 3.001, "reference: "),
            (["options", "window"], [16, 0], "reference: "),
            (["options", "q_offset"], [24], "reference: "),
            (["options", "causal"], "diagonal", "diagonal"),
            (["options", "policy"], "one", "one"),
            (["options", "temperature"], 2, "temperature"),
            (["exact_in"], "f8", "f8"),
            (["atol", "f64", "dq"], 0, "dq["),
            (["atol", "f64"], {}, "no \"o\""),
            (["inputs", 0, "shape"], [1, 8, 3, 8], "shape"),
            (["inputs", 0, "dtype"], "float64", "type"),
            (["inputs", 0, "dtype"], "complex64", "complex64"),
            (["inputs", 3, "name"], "masque", "masque"),
            (["sizes", "Dv"], 6, "shape")]:
        yield f"{path} is {value}", INDEX, deep(side, path, value), good, words
    for name in ["o", "lse", "entropy", "dq", "dk", "dv", "dbias", "dsinks",
                 "dslopes"]:
        spoilt = nudged(members, f"expected_{name}.npy")
        yield f"{name} moved", INDEX, side, packed(spoilt), f" {name}["

    side, members = read("core", "plain_a")
    good = packed(members)
    for path, engine in [("f64", "reference"), ("f32", "f32")]:
        yield (f"no tolerance in {path}", INDEX,
               deep(side, ["atol", path, "dq"], 0), good, f"{engine}: dq[")
    side, members = read("core", "rope_yarn_b")
    good = packed(members)
    for path, value, words in [
            (["options", "scaling", "factor"], 15.9, "inv_freq["),
            (["options", "scaling", "type"], "warp", "warp"),
            (["options", "scaling", "gamma"], 1, "gamma"),
            (["options", "interleaved"], True, " y[")]:
        yield f"{path} is {value}", INDEX, deep(side, path, value), good, words
    side, members = read("onnx", "test_attention_local_window")
    good = packed(members)
    for path, value, words in [
            (["op"], "Conv", "Conv"),
            (["since_version"], 26, "26"),
            (["attributes", "left_window_size"], 1, " Y["),
            (["attributes", "is_causal"], 0, " Y["),
            (["attributes", "colour"], 1, "colour"),
            (["attribute_defaults", "softcap"], 0.5, " Y["),
            (["inputs", 0, "formal"], "R", "Q is missing")]:
        yield f"{path} is {value}", INDEX, deep(side, path, value), good, words
    side, members = read("onnx", "test_flexattention_prob_mod")
    good = packed(members)
    for path, value, words in [
            (["attributes", "prob_mod", "value"], 0.501, " Y["),
            (["attributes", "prob_mod", "kind"], "sort", "sort")]:
        yield f"{path} is {value}", INDEX, deep(side, path, value), good, words


def main():
    failed = 0
    for folder, name in [("core", "everything_b"), ("core", "rope_yarn_b"),
                         ("onnx", "test_attention_local_window")]:
        side, members = read(folder, name)
        text, code = conform(INDEX, side, packed(members))
        if code != 0 or not text.endswith("1 passed, 0 failed\n"):
            print(f"{name}: should pass\n{text}")
            failed += 1
    count = 0
    for name, index, side, npz, words in rows():
        text, code = conform(index, side, npz)
        count += 1
        if (code != 1 or words not in text or
                not text.endswith("0 passed, 1 failed\n")):
            print(f"{name}: should fail with '{words}', exit {code}\n{text}")
            failed += 1
    usage = subprocess.run([CONFORM], check=False, stderr=subprocess.DEVNULL)
    if usage.returncode != 2:
        print("without a folder: should exit with 2")
        failed += 1
    print(f"{count + 4 - failed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
