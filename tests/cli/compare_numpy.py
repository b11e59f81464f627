#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# compare_numpy.py ATTN [SEED]: runs the command on files that NumPy wrote and
# compares every result with textbook.py, each within a bound that follows from
# the sums it is made of. Ends with `N passed, N failed`.

import os
import subprocess
import sys
import tempfile

import numpy as np

import textbook

U = {"f8": 2.0 ** -53, "f4": 2.0 ** -24, "f2": 2.0 ** -24}
OUT = {"f8": 2.0 ** -53, "f4": 2.0 ** -24, "f2": 2.0 ** -11}
GRADIENTS = ("dq", "dk", "dv", "dbias", "dslopes", "dsinks")
passed = failed = 0


def tolerance(name, got, want, size, kind, dim, len_k):
    """What rounding may do to a result, element by element.

    A score of size S made of dim products errs by u (dim + 2) S, so a weight
    by twice that relative to itself (its own score, and the lse); the sums
    over keys add u len_k, exp and the division a few u. A gradient is made of
    two such sums and a difference. 16-bit types may round weights and their
    gradients to the type before the second product, and o before delta; then
    comes one rounding of the result."""
    u, S = U[kind], size["S"].max(initial=0)
    relative = 2 * u * ((dim + 2) * (1 + S) + len_k + 16)
    if name in GRADIENTS:
        relative *= 2
    if kind == "f2":
        relative += 4 * 2.0 ** -11
    stored = {np.dtype(t): x for t, x in
              (("f8", 2.0 ** -53), ("f4", 2.0 ** -24), ("f2", 2.0 ** -11))}
    tiny = 2.0 ** -24 if got.dtype == np.float16 else 1e-37
    return relative * size[name] + stored[got.dtype] * abs(want) + tiny


class Case:
    """Inputs, options, and what the textbook says."""

    def __init__(self, rng, kind, rank, bshd=False, sizes=None, fortran=False):
        self.rng, self.kind, self.rank, self.bshd = rng, kind, rank, bshd
        B, H, G, Lq, Lk, D, Dv = sizes or (2, 4, 2, 5, 7, 8, 6)
        B = B if rank == 4 else 1
        H, G = (H, G) if rank > 2 else (1, 1)
        self.B, self.H, self.Lq, self.Lk, self.D = B, H, Lq, Lk, D
        self.fortran = fortran
        self.arrays, self.full, self.options, self.keywords = {}, {}, [], {}
        for name, shape in (("q", (B, H, Lq, D)), ("k", (B, G, Lk, D)),
                            ("v", (B, G, Lk, Dv)), ("do", (B, H, Lq, Dv))):
            self.add(name, rng.normal(size=shape).astype(kind))

    def fold(self, x):
        """(B, H, L, D) as the user has it."""
        if self.bshd and self.rank > 2:
            x = x.swapaxes(1, 2)
        return x.reshape(x.shape[4 - self.rank:])

    def unfold(self, x, like):
        """Back again, to the shape of `like`."""
        if self.bshd and self.rank > 2:
            shape = [like.shape[i] for i in (0, 2, 1, 3)]
            return x.reshape(shape).swapaxes(1, 2)
        return x.reshape(like.shape)

    def add(self, name, x):
        self.full[name] = x.astype(np.float64)
        x = self.fold(x)
        self.arrays[name] = np.asfortranarray(x) if self.fortran else x

    def give(self, name, x):
        self.arrays[name] = x
        self.keywords[name] = (x if x.dtype.kind in "bi"
                               else x.astype(np.float64))

    def expect(self):
        f = self.full
        return textbook.attention(f["q"], f["k"], f["v"], do=f["do"],
                                  **self.keywords)


def run(attn, arrays, options):
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "in.npz"), **arrays)
        out = os.path.join(folder, "out.npz")
        done = subprocess.run([attn, "run", os.path.join(folder, "in.npz"),
                               "-o", out, *options], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            return done.stderr
        with np.load(out) as file:
            return {name: file[name] for name in file}


def judge(name, case, got, want, size):
    """Compare all results of a run; print the first that is wrong."""
    global passed, failed
    if isinstance(got, str):
        failed += 1
        print(f"{name}: {got.strip()}")
        return
    expected = {"o", "lse", "weights", "entropy", "dq", "dk", "dv"}
    expected |= {n for n in GRADIENTS if n in want}
    wrong = "" if set(got) == expected else f"holds {sorted(got)}"
    for key in got if not wrong else ():
        x = got[key]
        if key in ("o", "dq", "dk", "dv"):
            x = case.unfold(x, want[key])
        else:
            x = x.reshape(want[key].shape)
        with np.errstate(invalid="ignore"):
            error = abs(np.where(x == want[key], 0, x - want[key]))
        limit = tolerance(key, got[key], want[key], size, case.kind, case.D,
                          case.Lk)
        if key in ("lse", "entropy"):
            limit = limit + 2 * U[case.kind] * (case.D + 2) * (
                1 + size["S"])
        if not (error <= limit).all():
            worst = np.nanargmax(error - limit)
            wrong = (f"{key}: off by {error.flat[worst]:.3g}, allowed "
                     f"{np.broadcast_to(limit, error.shape).flat[worst]:.3g}")
            break
    passed += not wrong
    failed += bool(wrong)
    if wrong:
        print(f"{name}: {wrong}")


def features(case):
    """(name, a function that adds it to the case) of everything."""
    rng, B, H, Lq, Lk = case.rng, case.B, case.H, case.Lq, case.Lk
    kind = case.kind

    def option(*words, **keywords):
        return lambda: (case.options.extend(words),
                        case.keywords.update(keywords))

    def array(name, x):
        return lambda: case.give(name, x)

    def padded():
        lengths = rng.integers(0, Lk + 1, size=B)
        case.give("k_lengths", lengths if B > 1 else lengths.astype("i4"))

    bias = rng.normal(size=(H, Lq, Lk)).astype("f4")
    bias[rng.random(bias.shape) < 0.2] = -np.inf
    return [
        ("plain", lambda: None),
        ("scale", option("--scale=-0.3", scale=-0.3)),
        ("top_left", option("--causal=top_left", causal="top_left")),
        ("bottom_right", option("--causal=bottom_right",
                                causal="bottom_right")),
        ("window", option("--window", "2,1", window=(2, 1))),
        ("softcap", option("--softcap=1.5", softcap=1.5)),
        ("mask", array("mask", rng.random((Lq, Lk)) < 0.5)),
        ("mask 4-D", array("mask", rng.random((1, H, 1, Lk)) < 0.5)),
        ("bias", array("bias", bias)),
        ("bias row", array("bias", rng.normal(size=(1, Lk)).astype("f8"))),
        ("alibi", array("alibi_slopes", rng.random(H).astype("f4"))),
        ("alibi (B, H)", array("alibi_slopes",
                               rng.random((B, H)).astype("f8"))),
        ("sinks", array("sinks", rng.normal(size=H).astype(kind))),
        ("k_lengths", padded),
        ("q_offset", array("q_offset", rng.integers(-2, 5, size=B))),
        ("offset causal", lambda: (option("--causal", causal="top_left")(),
                                   case.give("q_offset", rng.integers(
                                       -2, 5, size=B)))),
        ("dropout", option("--dropout=0.25,12345678901234567890,7",
                           dropout=(0.25, 12345678901234567890, 7))),
    ]


def check_features(attn, rng):
    shapes = [("f8", 4, False), ("f4", 4, True), ("f4", 3, False),
              ("f2", 3, True), ("f8", 2, False), ("f2", 4, False)]
    for kind, rank, bshd in shapes:
        n = len(features(Case(rng, kind, rank, bshd)))
        for i in range(n):
            case = Case(rng, kind, rank, bshd, fortran=i % 2 == 1)
            name, apply = features(case)[i]
            apply()
            options = ["--grad", "--weights", *case.options]
            if bshd:
                options += ["--layout=bshd"]
            judge(f"{kind} {rank}-D {'bshd ' if bshd else ''}{name}", case,
                  run(attn, case.arrays, options), *case.expect())


def check_pairs(attn, rng, n):
    """Two to four features at a time."""
    for trial in range(n):
        kind = ("f8", "f4")[trial % 2]
        case = Case(rng, kind, 4, fortran=trial % 3 == 0)
        chosen = rng.choice(np.arange(1, len(features(case))),
                            size=rng.integers(2, 5), replace=False)
        names = []
        for i in sorted(chosen):
            name, apply = features(case)[i]
            names.append(name)
            apply()
        judge(f"{kind} " + " + ".join(names), case,
              run(attn, case.arrays, ["--grad", "--weights", *case.options]),
              *case.expect())


def check_rope(attn, rng):
    """q and k turned before, dq and dk turned back after."""
    for spec, keywords in (("half", {}),
                           ("interleaved,base=500", {"interleaved": True,
                                                     "base": 500.0}),
                           ("rotary_dim=4", {"rotary_dim": 4}),
                           ("scaling=linear,factor=4", {"factor": 4.0})):
        case = Case(rng, "f8", 4)
        offset = rng.integers(0, 9, size=case.B)
        case.give("q_offset", offset)
        at_q = np.arange(case.Lq)[None, :] + offset[:, None]
        at_k = np.broadcast_to(np.arange(case.Lk), (case.B, case.Lk))
        for name, at in (("q", at_q), ("k", at_k)):
            case.full[name] = textbook.rope(case.full[name], at, **keywords)
        want, size = case.expect()
        for name, at in (("dq", at_q), ("dk", at_k)):
            want[name] = textbook.rope(want[name], at, inverse=True,
                                       **keywords)
            size[name] = 2 * size[name].max(axis=-1, keepdims=True)
        judge(f"rope {spec}", case,
              run(attn, case.arrays, ["--grad", "--weights", "--rope=" + spec]),
              want, size)


def check_packed(attn, rng):
    """Sequences packed by cu_seqlens against the sequences one by one."""
    global passed, failed
    H, G, D = 4, 2, 8
    cu_q, cu_k = np.array([0, 3, 3, 8]), np.array([0, 4, 6, 12], "i4")
    q, do = (rng.normal(size=(8, H, D)) for _ in range(2))
    k, v = (rng.normal(size=(12, G, D)) for _ in range(2))
    for words, causal in ([], None), (["--causal=bottom_right"],
                                      "bottom_right"):
        got = run(attn, {"q": q, "k": k, "v": v, "do": do, "cu_seqlens_q": cu_q,
                         "cu_seqlens_k": cu_k}, ["--grad", *words])
        wrong = got if isinstance(got, str) else ""
        for n in range(3 if not wrong else 0):
            rows = slice(cu_q[n], cu_q[n + 1])
            keys = slice(cu_k[n], cu_k[n + 1])

            def one(x, at):
                return x[at].swapaxes(0, 1)[None]

            want, size = textbook.attention(one(q, rows), one(k, keys),
                                            one(v, keys), causal=causal,
                                            do=one(do, rows))
            for name, at in (("o", rows), ("dq", rows), ("dk", keys),
                             ("dv", keys)):
                limit = tolerance(name, got[name], want[name], size, "f8", D,
                                  12)
                if not (abs(one(got[name], at) - want[name]) <= limit).all():
                    wrong = f"sequence {n}: {name}"
            if not np.allclose(got["lse"][:, rows], want["lse"][0],
                               rtol=0, atol=1e-13 * 40):
                wrong = f"sequence {n}: lse"
        passed += not wrong
        failed += bool(wrong)
        if wrong:
            print(f"packed {words}: {wrong}")


def check_bits(attn, rng):
    """Threads, layout, rank and slices do not change a bit."""
    global passed, failed
    case = Case(rng, "f4", 4, sizes=(2, 4, 2, 33, 70, 32, 32))
    a = case.arrays
    base = run(attn, a, ["--grad", "--weights", "--threads=1"])
    slices = {n: x[1] for n, x in a.items()}
    swapped = {n: np.ascontiguousarray(x.swapaxes(1, 2)) for n, x in a.items()}
    one_head = {"q": a["q"][1, 2], "k": a["k"][1, 1], "v": a["v"][1, 1]}

    def same(got, want, names):
        return all(got[n].tobytes() == np.ascontiguousarray(want(n)).tobytes()
                   for n in names)

    everything = sorted(base)
    for name, arrays, options, want, names in (
            *((f"{n} threads", a, [f"--threads={n}"], lambda n: base[n],
               everything) for n in (2, 3, 7)),
            ("one of the batch", slices, [], lambda n: base[n][1], everything),
            ("bshd", swapped, ["--layout=bshd"],
             lambda n: base[n].swapaxes(1, 2), ["o", "dq", "dk", "dv"]),
            ("bshd rows", swapped, ["--layout=bshd"], lambda n: base[n],
             ["lse", "weights", "entropy"])):
        got = run(attn, arrays, ["--grad", "--weights", *options])
        ok = same(got, want, names)
        passed += ok
        failed += not ok
        if not ok:
            print(f"bits: {name} differ")
    got = run(attn, one_head, [])
    ok = same(got, lambda n: base[n][1, 2], ["o", "lse"])
    passed += ok
    failed += not ok
    if not ok:
        print("bits: one head alone differs")


def main():
    attn = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261130
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    check_features(attn, rng)
    check_pairs(attn, rng, 40)
    check_rope(attn, rng)
    check_packed(attn, rng)
    check_bits(attn, rng)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
