# SPDX-License-Identifier: Apache-2.0
#
# our_reader.py: what the comparisons of this folder share. A comparison makes
# files, good and damaged; read_files says what we read in each, the other
# reader what it does, and where we accept it must accept, with the same.

import os
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np


def damage(rng, data):
    """Some bytes changed, cut, doubled or appended."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        at, action = int(rng.integers(0, len(data))), rng.integers(0, 6)
        if action < 3:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif action == 3:
            data[at] = int(rng.choice([0, 1, 0x7f, 0x80, 0xff]))
        elif action == 4:
            del data[at:at + int(rng.integers(1, 9))]
        else:
            data[at:at] = bytes(rng.integers(0, 256, rng.integers(1, 9),
                                             dtype=np.uint8))
    return bytes(data)


def as_we_load(x):
    """(our type, bytes) of an array as NumPy has it."""
    kind = x.dtype.kind
    x = np.ascontiguousarray(x)
    if kind in "US":
        words = [w if kind == "U" else w.decode("utf-8")
                 for w in x.ravel().tolist()]
        return "text", b"".join(w.encode() + b"\0" for w in words)
    if kind == "V":
        return "bf16", x.tobytes()
    if kind == "b":
        return "bool", (x.view("u1") != 0).tobytes()
    if kind in "iu" and x.dtype.newbyteorder("=") != np.int32:
        return "i64", x.astype("i8").tobytes()
    x = x.astype(x.dtype.newbyteorder("="))
    return {"f8": "f64", "f4": "f32", "f2": "f16", "i4": "i32"}[
        x.dtype.str[1:]], x.tobytes()


def compare(lines, theirs, who, refusals, alone):
    """What is wrong, or ''. `theirs` is {name: array or an exception}, or an
    exception; `refusals` are (status, sentence) that may be ours alone, and
    where an exception says `alone` it is for an entry that we refuse alone."""
    def listed(status, sentence):
        return any(re.fullmatch(s, status) and re.search(r, sentence)
                   for s, r in refusals)

    for line in lines:
        what, *fields = line.split("\t")
        if what == "failed":
            if isinstance(theirs, Exception):
                continue
            # One damaged member, and we refuse the whole file.
            if any(isinstance(x, Exception) for x in theirs.values()):
                continue
            if not listed(*fields):
                return f"{who} reads it, we say {' '.join(fields)}"
            continue
        if isinstance(theirs, Exception):
            if alone and re.search(alone, str(theirs)) and any(
                    x.startswith("refused") for x in lines):
                continue
            return f"we read it, {who} says {theirs!r}"
        name = fields[0]
        their = theirs.get(name)
        if what == "refused":
            if their is not None and not isinstance(their, Exception) and \
                    not listed(*fields[1:]):
                return f"{who} reads {name}, we say {' '.join(fields[1:])}"
            continue
        if their is None or isinstance(their, Exception):
            return f"we read {name}, {who} says {their!r}"
        kind, content = as_we_load(their)
        shape = "(" + "".join(f"{n}," for n in their.shape) + ")"
        crc = f"{zlib.crc32(content):08x}"
        if fields[2:] != [kind, shape, crc]:
            return f"{name}: we {fields[2:]}, {who} {[kind, shape, crc]}"
    return ""


def ask(child, path, trial):
    """The lines that read_files says about a file."""
    child.stdin.write(path.encode() + b"\n")
    child.stdin.flush()
    lines = []
    while True:
        line = child.stdout.readline().decode("utf-8", "replace")
        if not line:
            sys.exit(f"our reader ended at file {trial}")
        if line == "done\n":
            return lines
        lines.append(line.rstrip("\n"))


def run(file_name, make, read, who, refusals, alone=None):
    """`SCRIPT READ_FILES [N [SEED]]`: N files of make(rng), each compared with
    read(path). Prints what is wrong and `N passed, N failed`."""
    reader = os.path.abspath(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261130
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    passed = failed = n_read = 0
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [reader], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        path = os.path.join(folder, file_name)
        for trial in range(n):
            with open(path, "wb") as file:
                file.write(make(rng))
            lines = ask(child, path, trial)
            wrong = compare(lines, read(path), who, refusals, alone)
            n_read += any(line.startswith("array") for line in lines)
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print(f"file {trial}: {wrong}")
        child.stdin.close()
    print(f"arrays were read from {n_read} of {n} files")
    if n_read * 5 < n:
        print("too few for the comparison to mean anything")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
