#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# numpy_files.py READ_FILES [N [SEED]]: N files, good and damaged, read by us
# and by NumPy. Ends with `N passed, N failed`.

import io
import os
import re
import sys
import warnings
import zipfile

import numpy as np

from our_reader import damage, run

# Reasons for which we alone may refuse, by status and sentence: what each is
# for is said in docs/formats.md.
REFUSALS = [
    (r"E_UNSUPPORTED", r"type '.*' is not read|Python objects|array of records"
                       r"|\.npy version|not a \.npy member|have no length"
                       r"|archive inside"),
    (r"E_UNSUPPORTED", r"encrypted|unknown flags|compressed by method"
                       r"|several volumes|needs version|another volume"
                       r"|not marked as UTF-8"),
    # Python is a large language; a header needs little of it.
    (r"E_FORMAT", r"header's dictionary|does not end in a newline"
                  r"|is no type such as"),
    (r"E_DUPLICATE", r"twice"),
    (r"E_LIMIT", r"axes|header of|strings|inflate|members|a name of"),
    (r"E_OVERFLOW", r"integer above|product of shape"),
    # NumPy ignores bytes behind the data, and what it need not know of a ZIP.
    (r"E_FORMAT", r"more than shape and type need|not Unicode text"
                  r"|leads out|plain UTF-8|without a name"
                  r"|contradicts|damaged|does not end where|overlaps"
                  r"|before the directory|inside the directory"
                  r"|no local header|more bytes than|end record|end records"
                  r"|two sizes|too short|exceeds the archive|ambiguous"
                  r"|CRC says"),
    (r"E_TRUNCATED", r"no archive directory|bytes of data|less than"
                     r"|fewer bytes"),
    # What is not a ZIP by its first bytes is no .npz.
    (r"E_FORMAT", r"no known format|is empty"),
    (r"E_OVERFLOW", r"2\^63"),
]

TYPES = ["<f8", ">f8", "<f4", ">f4", "<f2", ">f2", "|b1", "|i1", "|u1", "<i2",
         ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", "|V2", "<U3", ">U2",
         "|S4"]
TOKENS = ["{", "}", "(", ")", "[", "]", ",", ":", "'", '"', " ", "\n", "\t",
          "\\", "0", "1", "3", "-1", "10", "00", "3L", "1e3", "1_0", "True",
          "False", "None", "'descr'", "'shape'", "'fortran_order'", "'<f4'",
          "'>f8'", "'<f2'", "'|O'", "'<c8'", "'<U3'", "'|S0'", "'<M8[s]'",
          "(3,)", "(3)", "(2, 3)", "()", "4294967296", "9223372036854775807",
          "u", "b", "#", ";", "\0", "\xe9", "np.int64(3)", "[('a', '<f4')]"]


def random_array(rng):
    kind = str(rng.choice(TYPES))
    shape = tuple(rng.integers(0, 5, size=rng.integers(0, 4)))
    n = int(np.prod(shape))
    if kind[1] in "US":
        words = ["", "a", "né" if kind[1] == "U" else "ne", "abc", "x" * 5]
        x = np.array(rng.choice(words, size=n), dtype=kind)
    elif kind == "|V2":
        x = rng.integers(0, 65536, size=n).astype("u2").view(kind)
    elif kind == "<u8":
        x = rng.integers(0, 2 ** 62, size=n).astype(kind)
    else:
        x = (rng.normal(size=n) * 50).astype(kind)
    x = x.reshape(shape)
    return np.asfortranarray(x) if rng.random() < 0.3 else x


def npy_bytes(rng):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(buffer, random_array(rng),
                                  version=(int(rng.integers(1, 4)), 0))
    return buffer.getvalue()


def change_header(rng, data):
    """Tokens of the dictionary replaced, doubled, dropped; a right length."""
    narrow = data[6] == 1
    n = 2 if narrow else 4
    length = int.from_bytes(data[8:8 + n], "little")
    text = data[8 + n:8 + n + length].decode("latin1")
    words = re.findall(r"'[^']*'|\w+|\s+|.", text, re.S)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, max(1, min(len(words), 24))))
        token = str(rng.choice(TOKENS))
        action = rng.integers(0, 4)
        words[at:at + (action != 0)] = [[token], [token], [], words[at:at + 1]
                                        * 2][action]
    text = "".join(words).encode("latin1", "replace")
    return data[:8] + len(text).to_bytes(n, "little") + text + data[8 + n +
                                                                    length:]


def npz_bytes(rng, change):
    """An archive of a few arrays; its members' headers may be changed."""
    buffer = io.BytesIO()
    names = ["q", "k", "v", "a/b", "é", "Q", "x.y"]
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in rng.permutation(names)[:rng.integers(0, 4)]:
            content = npy_bytes(rng)
            if change and rng.random() < 0.5:
                content = change_header(rng, content)
            info = zipfile.ZipInfo(str(name) + (".npy" if rng.random() < 0.9
                                                else ""))
            info.compress_type = int(rng.choice([zipfile.ZIP_STORED,
                                                 zipfile.ZIP_DEFLATED]))
            with archive.open(info, "w", force_zip64=rng.random() < 0.5) as f:
                f.write(content)
    return buffer.getvalue()


def change_record(rng, data):
    """A field of a header, a directory record or an end record."""
    at = [m.start() for m in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06"
                                         rb"|\x06\x06|\x06\x07)", data)]
    if not at:
        return data
    data = bytearray(data)
    for _ in range(rng.integers(1, 3)):
        place = int(rng.choice(at)) + int(rng.integers(4, 47))
        size = int(rng.choice([1, 2, 4]))
        value = int(rng.choice([0, 1, 8, 45, 0xff, 0xffff, 0xffffffff,
                                len(data), int(rng.integers(0, 300))]))
        data[place:place + size] = value.to_bytes(8, "little")[:size]
    return bytes(data)


def make(rng):
    choice = rng.integers(0, 8)
    if choice == 0:
        return npy_bytes(rng)
    if choice <= 2:
        return change_header(rng, npy_bytes(rng))
    if choice == 3:
        return damage(rng, npy_bytes(rng))
    if choice == 4:
        return npz_bytes(rng, False)
    if choice == 5:
        return npz_bytes(rng, True)
    if choice == 6:
        return damage(rng, npz_bytes(rng, False))
    return change_record(rng, npz_bytes(rng, False))


def numpys(path):
    """{name: array or the exception}, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = np.load(path, max_header_size=65536)
        if isinstance(loaded, np.ndarray):
            return {os.path.basename(path).rsplit(".", 1)[0]: loaded}
        result = {}
        with loaded:
            for name in loaded.files:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        # By its full name, of which `files` lacks the end.
                        result[name] = np.lib.format.read_array(
                            io.BytesIO(loaded.zip.read(
                                name + ".npy" if name + ".npy" in
                                loaded.zip.namelist() else name)),
                            max_header_size=65536)
                except Exception as error:  # whatever it raises, it refuses
                    result[name] = error
        return result
    except Exception as error:
        return error


if __name__ == "__main__":
    sys.exit(run("x.npy", make, numpys, "NumPy", REFUSALS))
