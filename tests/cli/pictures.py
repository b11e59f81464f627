#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# pictures.py ATTN: looks at what attn plot draws. An SVG tells the value of
# each cell, which is compared with textbook.py; a PNG is decoded here, from its
# chunks up, and must show the same cells in the same colours. Ends with
# `N passed, N failed`.

import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
import zlib

import numpy as np

import fixtures

import textbook

SVG = "{http://www.w3.org/2000/svg}"
ROOT = pathlib.Path(__file__).resolve().parents[2]
attn = ""
passed = failed = 0


def expect(holds, what):
    global passed, failed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print(f"not so: {what}")


def plot(*words, code=0):
    done = subprocess.run([attn, "plot", *words], capture_output=True,
                          text=True, check=False)
    expect(done.returncode == code and not done.stdout,
           f"{words}: exit code {done.returncode}, {done.stderr.strip()}")


def read_png(path):
    """(height, width, 3) of bytes, by the PNG specification."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, head, names = 8, b"", None, []
    while at < len(data):
        n, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        crc, = struct.unpack(">I", data[at + 8 + n:at + 12 + n])
        assert crc == zlib.crc32(name + body), "checksum"
        names.append(name)
        head = body if name == b"IHDR" else head
        packed += body if name == b"IDAT" else b""
        at += 12 + n
    assert names[0] == b"IHDR" and names[-1] == b"IEND"
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", head)
    assert (depth, kind, rest) == (8, 2, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(packed), np.uint8)
    rows = rows.reshape(height, 1 + 3 * width)
    out = np.zeros((height + 1, 3 * (width + 1)), np.int64)
    for y in range(height):
        out[y + 1] = unfilter(rows[y, 0], rows[y, 1:].astype(np.int64), out[y])
    return out[1:, 3:].reshape(height, width, 3).astype(np.uint8)


def unfilter(kind, row, above):
    """One row behind a pixel of zeros; `above` is the one before it."""
    out = np.zeros(len(row) + 3, np.int64)
    if kind in (0, 2):
        out[3:] = (row + (above[3:] if kind == 2 else 0)) & 255
        return out
    if kind == 1:
        out[3:] = row.reshape(-1, 3).cumsum(0).ravel() & 255
        return out
    # Each byte needs the one before: a loop, over lists, whose elements are
    # ten times as quick as an array's.
    done, above = [0, 0, 0], above.tolist()
    for left, up, corner, value in zip(done, above[3:], above, row.tolist()):
        if kind == 3:
            guess = (left + up) // 2
        else:
            a, b = abs(up - corner), abs(left - corner)
            c = abs(left + up - 2 * corner)
            guess = left if a <= b and a <= c else up if b <= c else corner
        done.append((value + guess) & 255)
    return np.array(done, np.int64)


def read_cells(path):
    """For each panel a dictionary (row, column) of names -> (value, colour)."""
    panels = []
    for group in xml.parse(path).getroot().iter(SVG + "g"):
        cells = {}
        for cell in group.iter(SVG + "path"):
            text = cell.find(SVG + "title").text
            names, value = text.rsplit(": ", 1)
            place = tuple(int(x) for x in
                          re.match(r"M(\d+) (\d+)h", cell.get("d")).groups())
            cells[place[::-1]] = (names, float(value), cell.get("fill"))
        panels.append(cells)
    return panels


def texts(path):
    return [x.text for x in xml.parse(path).getroot().iter(SVG + "text")]


def luminance(color):
    c = np.array([int(color[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
        0.2126, 0.7152, 0.0722]


def check_cells(cells, want, shown, what):
    """Every shown cell has its value, to the digits that are told; no other
    cell is there; darker is more."""
    expect(set(cells) == set(zip(*np.nonzero(shown))), what + ": shown cells")
    for (i, j), (_, value, _) in cells.items():
        expect(abs(value - want[i, j]) < 0.5e-4 + 1e-6, f"{what}: {i}, {j}")
    by_value = sorted((value, luminance(fill)) for _, value, fill
                      in cells.values())
    expect(all(a[1] >= b[1] for a, b in zip(by_value, by_value[1:])),
           what + ": darker is more")


# --------------------------------------------------------------------- cases

def weights_of_models(rng):
    """Every head of two batches, with grouped heads and all that hides."""
    B, H, G, Lq, Lk, D = 2, 4, 2, 5, 7, 8
    q, k = rng.normal(size=(B, H, Lq, D)), rng.normal(size=(B, G, Lk, D))
    mask = rng.random((B, 1, Lq, Lk)) < 0.8
    lengths = np.array([7, 5])
    np.savez("all.npz", q=q, k=k, mask=mask, k_lengths=lengths)
    for batch in range(B):
        plot("all.npz", "-o", "a.svg", f"--batch={batch}", "--window=4,3")
        r = textbook.attention(q, k, np.zeros((B, G, Lk, 1)), mask=mask,
                               k_lengths=lengths, window=(4, 3))[0]
        panels = read_cells("a.svg")
        expect(len(panels) == H, "a panel for each head")
        for h, cells in enumerate(panels):
            w = r["weights"][batch, h]
            check_cells(cells, w, w > 0, f"batch {batch}, head {h}")
    plot("all.npz", "-o", "a.svg", "--heads=2,0", "--rows=1,3-4",
         "--stage=raw")
    scores = np.einsum("bhid,bhjd->bhij", q, np.repeat(k, 2, 1)) / D ** 0.5
    r = textbook.attention(q, k, np.zeros((B, G, Lk, 1)), mask=mask,
                           k_lengths=lengths)[0]
    for h, cells in zip((2, 0), read_cells("a.svg")):
        check_cells(cells, scores[0, h][[1, 3, 4]],
                    r["weights"][0, h][[1, 3, 4]] > 0, f"raw, head {h}")
        expect({n.split(",")[0] for n, _, _ in cells.values()} ==
               {"1", "3", "4"}, "rows have their own numbers")


def weights_of_layers(rng):
    """q and k are made of x: by its matrices, biases, and rotation."""
    x, w_q, w_k = (rng.normal(size=n) / 2 for n in ((2, 5, 12), (12, 16),
                                                    (12, 8)))
    b_q = rng.normal(size=16)
    np.savez("layer.npz", x=x, w_q=w_q, w_k=w_k, w_v=w_k, b_q=b_q)
    plot("layer.npz", "-o", "a.svg", "--heads=4", "--head=3,1", "--batch=1",
         "--causal", "--rope=half")
    q, k = ((y[1:].reshape(1, 5, n, 4).swapaxes(1, 2))
            for y, n in ((x @ w_q + b_q, 4), (x @ w_k, 2)))
    at = np.arange(5)[None]
    r = textbook.attention(textbook.rope(q, at), textbook.rope(k, at),
                           np.zeros((1, 2, 5, 1)), causal="top_left")[0]
    panels = read_cells("a.svg")
    expect(len(panels) == 2, "the heads that were chosen")
    for h, cells in zip((3, 1), panels):
        w = r["weights"][0, h]
        check_cells(cells, w, w > 0, f"layer, head {h}")
    plot("layer.npz", "-o", "a.svg", "--heads=4", "--entropy")


def weights_from_elsewhere(rng):
    w = rng.random((3, 6, 6))
    np.savez("w.npz", weights=w, tokens=np.array(list("abcdef")))
    plot("w.npz", "-o", "a.svg")
    for h, cells in enumerate(read_cells("a.svg")):
        check_cells(cells, w[h], w[h] >= 0, f"given weights, head {h}")
    expect(cells[1, 2][0] == "b, c", "cells are named by tokens")


def dots_are_the_cells(rng):
    """The same colours in the PNG, 20 x 20 dots a cell, in the same order."""
    w = rng.permutation(36).reshape(6, 6) / 36
    np.save("weights.npy", w)
    for theme in "light", "dark":
        plot("weights.npy", "-o", "a.svg", f"--theme={theme}", "--cell=20")
        plot("weights.npy", "-o", "a.png", f"--theme={theme}", "--cell=20",
             "--density=1")
        dots, cells = read_png("a.png"), read_cells("a.svg")[0]
        fills = np.array([[[int(cells[i, j][2][c:c + 2], 16)
                            for c in (1, 3, 5)] for j in range(6)]
                          for i in range(6)], np.uint8)
        want = fills.repeat(20, 0).repeat(20, 1)
        corners = np.argwhere((dots == want[0, 0]).all(-1))
        expect(any((dots[y:y + 120, x:x + 120].shape == want.shape and
                    (dots[y:y + 120, x:x + 120] == want).all())
                   for y, x in corners), f"the cells are in the {theme} PNG")


def one_of_many():
    w = np.zeros((4096, 4096), np.float32)
    w[1234, 3456] = 1
    np.save("weights.npy", w)
    plot("weights.npy", "-o", "a.png", "--density=1", "--shades=linear")
    dots = read_png("a.png")
    np.save("weights.npy", np.eye(2))
    plot("weights.npy", "-o", "a.svg")
    fill = read_cells("a.svg")[0][0, 0][2]
    # The top colour is also in the bar, 14 dots wide.
    rows = (dots == [int(fill[i:i + 2], 16) for i in (1, 3, 5)]).all(-1).sum(1)
    expect((rows % 14 <= 1).all() and (rows % 14 == 1).sum() == 1,
           f"one hot cell is one dot: {np.unique(rows)}")


def hostile_tokens():
    tokens = np.array(["<script>", "&amp;", "a\"b'", "\u200b", "日本", "]]>",
                       "tab\tbell\x07", "x" * 300])
    np.savez("w.npz", weights=np.eye(8), tokens=tokens)
    plot("w.npz", "-o", "a.svg", "--title=<&\">")
    plot("w.npz", "-o", "a.png", "--title=\x1b[31m")
    read_png("a.png")
    seen = texts("a.svg")
    for token in "<script>", "&amp;", "a\"b'", "日本", "]]>":
        expect(seen.count(token) == 2, f"{token} on both axes")
    expect("<&\">" in seen, "the title is there")
    expect(any(t.startswith("xxx") and t.endswith("…") and len(t) < 60
               for t in seen if t), "long tokens are cut")


def entropies(rng):
    q, k = rng.normal(size=(2, 9, 4)), rng.normal(size=(2, 9, 4))
    np.savez("qk.npz", q=q, k=k)
    plot("qk.npz", "-o", "a.svg", "--entropy", "--causal")
    r = textbook.attention(q[None], k[None], np.zeros((1, 2, 9, 1)),
                           causal="top_left")[0]
    lines = [p.get("d") for p in xml.parse("a.svg").getroot()
             if p.get("fill") == "none"]
    expect(len(lines) == 2, "a curve for each head")
    for h, line in enumerate(lines):
        y = [float(p.split()[1]) for p in re.findall(r"[ML](\S+ [^LMh]+)",
                                                     line)]
        want = r["entropy"][0, h]
        # On a common scale: heights are affine in the entropies.
        a, b = np.polyfit(want, y, 1)
        expect(a < 0 and np.abs(a * want + b - y).max() < 0.011,
               f"the curve of head {h}")


def pages():
    """The picture of the README is the one that `make demo` makes: its command
    is taken from the Makefile. Levels differ in the last bit of a weight, which
    moves a colour by one of 256 steps, and a channel by two at most."""
    with open(ROOT / "Makefile", encoding="utf-8") as file:
        words = re.search(r"build/attn plot (.*?-o)", file.read().replace(
            "\\\n", ""), re.S)
    words = shlex.split(words[1])
    words[0] = str(ROOT / words[0])
    for theme in ("light", "dark"):
        plot(*words, "a.png", "--theme=" + theme)
        ours, shown = read_png("a.png"), read_png(
            ROOT / f"docs/images/minilm-{theme}.png")
        expect(ours.shape == shown.shape and
               abs(ours.astype(int) - shown.astype(int)).max() <= 2,
               f"docs/images/minilm-{theme}.png is what make demo draws")


def refusals():
    np.save("weights.npy", np.eye(3))
    os.mkdir("closed")
    os.symlink("/dev/full", "full.png")
    for path in "no/such/a.png", "closed/none/a.svg", "full.png":
        plot("weights.npy", "-o", path, code=3)
    os.chmod("closed", 0o500)
    if os.geteuid() != 0:  # root may write everywhere
        plot("weights.npy", "-o", "closed/a.png", code=3)
    expect(os.listdir("closed") == [], "nothing is left behind")
    os.chmod("closed", 0o700)
    plot("weights.npy", "-o", "a.png", "--cell=512", "--density=4")
    np.save("weights.npy", np.eye(70))
    plot("weights.npy", "-o", "b.png", "--cell=512", code=2)
    expect(not os.path.exists("b.png"), "no picture beyond the limit")


def main():
    global attn
    attn = os.path.abspath(sys.argv[1])
    with fixtures.own_folder():
        rng = np.random.default_rng(1)
        weights_of_models(rng)
        weights_of_layers(rng)
        weights_from_elsewhere(rng)
        dots_are_the_cells(rng)
        one_of_many()
        hostile_tokens()
        entropies(rng)
        refusals()
        pages()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
