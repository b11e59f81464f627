#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# doctor.py ATTN LIBRARY [--all]: every way to bring a subject to `attn
# doctor`, with what it says, its exit code and the files that it makes. LIBRARY
# is tests/zoo/c_animals.c, built; --all: every --demo, and what takes long.
# Ends with `N passed, N failed`.
import json
import os
import subprocess
import sys
import time

import numpy as np

import fixtures

ONE = ("--signature=q f32[n,d], k f32[m,d], v f32[m,e], out f32[n,e], "
       "n int, m int, d int, e int")
PASSED = FAILED = 0

PROGRAM = """import sys
import numpy as np
given = np.load(sys.argv[1])
q, k, v = given["q"], given["k"], given["v"]
s = q @ k.swapaxes(-1, -2) %s
e = np.exp(s - s.max(-1, keepdims=True))
np.savez(sys.argv[2], o=e / e.sum(-1, keepdims=True) @ v)
"""


def check(what, good, said=""):
    global PASSED, FAILED
    PASSED, FAILED = PASSED + bool(good), FAILED + (not good)
    if not good:
        print(f"not so: {what}\n    {said}")


class Doctor:
    """The command, and what it said the last time."""

    def __init__(self, attn):
        self.attn = attn

    def __call__(self, *words):
        start = time.monotonic()
        done = subprocess.run([self.attn, "doctor", *words], check=False,
                              capture_output=True, text=True)
        self.seconds = time.monotonic() - start
        self.said = done.stdout + done.stderr
        return done.returncode, done.stdout

    def expect(self, what, code, ids, *words):
        """Its exit code, and the ids of the faults, the first ones."""
        got, text = self(*words, "--json")
        try:
            report = json.loads(text)
        except ValueError:
            check(what, False, self.said)
            return {}
        named = [f["id"] for f in report["faults"]][:len(ids)]
        check(what, (got, named) == (code, ids), self.said)
        return report


def libraries(doctor, library):
    """Symbols of a library: named bugs, and those that end their process."""
    for symbol, code, ids, more in [
            ("right", 0, [], []), ("online_right", 0, [], []),
            ("wrong_transpose", 1, ["k-wrong-transpose"], []),
            ("window_four", 1, ["window-off-by-one"],
             ["--expect=window=2:0"]),
            ("no_rescale", 1, ["online-max-stale"], [])]:
        doctor.expect(symbol, code, ids, f"{library}:{symbol}", ONE, *more)
    doctor.expect("the usual prototype", 0, [], f"{library}:usual")
    for symbol, reason in [("crashes", "signal 11"), ("hangs", "10 s"),
                           ("overruns", "beyond")]:
        report = doctor.expect(symbol, 3, [], f"{library}:{symbol}", ONE)
        check(f"{symbol} is unusable", report.get("verdict") == "unusable" and
              reason in report.get("reason", ""), doctor.said)
        check(f"{symbol} within 30 s", doctor.seconds < 30, doctor.seconds)
    check("no such symbol", doctor(f"{library}:nothing")[0] == 3 and
          "nothing" in doctor.said, doctor.said)
    check("no such library", doctor("./none.so:right")[0] == 3, doctor.said)


def commands(doctor, every):
    """A process for every question takes its time: one command, or both."""
    python = sys.executable
    programs = [("unscaled.py", "", 1, ["scale-missing"]),
                ("right.py", "/ q.shape[-1] ** 0.5", 0, [])]
    for name, scale, code, ids in programs if every else programs[:1]:
        with open(name, "w", encoding="utf-8") as file:
            file.write(PROGRAM % scale)
        doctor.expect(f"--exec {name}", code, ids,
                      f"--exec={python} {name} {{in}} {{out}}")
    code, _ = doctor(f"--exec={python} -c 'raise SystemExit(5)' {{in}} {{out}}")
    check("a command that fails", code == 3 and "unusable" in doctor.said,
          doctor.said)
    check("nothing is left behind", not os.listdir(os.environ["TMPDIR"]))


def attention(q, k, v, scale):
    s = q @ k.swapaxes(-1, -2) * scale
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def dumps(doctor):
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal(s) for s in ((7, 5), (9, 5), (9, 4)))
    np.savez("good.npz", q=q, k=k, v=v, o=attention(q, k, v, 5 ** -0.5))
    np.savez("bad.npz", q=q, k=k, v=v, o=attention(q, k, v, 1.0))
    doctor.expect("a good dump", 0, [], "--dump=good.npz")
    doctor.expect("a bad dump", 1, ["scale-missing"], "--dump=bad.npz")
    # One query at the end of a cache: causality cannot be seen.
    np.savez("last.npz", q=q[:1], k=k, v=v,
             o=attention(q[:1], k, v, 5 ** -0.5))
    report = doctor.expect("what a dump hides", 3, [], "--dump=last.npz",
                           "--expect=causal=bottom_right")
    check("it says what would tell", report.get("verdict") == "undecided" and
          report.get("reason"), doctor.said)
    check("no dump", doctor("--dump=none.npz")[0] == 3, doctor.said)


def pictures(doctor):
    for demo, name, start in [("mask-fill-zero", "a.png", b"\x89PNG\r\n"),
                              ("qkv-packing", "a.svg", b"<")]:
        code, _ = doctor(f"--demo={demo}", f"--picture={name}")
        with open(name, "rb") as file:
            data = file.read()
        check(f"--picture={name}", code == 1 and data.startswith(start) and
              len(data) > 1000, doctor.said)


def demonstrations(doctor, every):
    """Bugs of the list, made and named: a few, or all that can be."""
    listed = json.loads(doctor("--list", "--json")[1])["faults"]
    check("the list", len(listed) >= 60 and all(
        f["says"] and f["fix"] for f in listed))
    plain = doctor("--list")[1]
    check("the list, to read", all(f["id"] + "\n" in plain and
                                   f["says"] in plain for f in listed))
    few = ["scale-missing", "softmax-wrong-axis", "output-constant"]
    for name in [f["id"] for f in listed] if every else few:
        if name == "dtype-downgraded":  # a limit
            doctor.expect("--demo=" + name, 0, [], "--demo=" + name)
        elif name != "offset-int32":  # its arrays do not fit
            doctor.expect("--demo=" + name, 1, [name], "--demo=" + name)
    check("no such demo", doctor("--demo=no-such")[0] == 2, doctor.said)


def main():
    doctor = Doctor(os.path.abspath(sys.argv[1]))
    library = os.path.abspath(sys.argv[2])
    with fixtures.own_folder() as folder:
        os.environ["TMPDIR"] = os.path.join(folder, "scratch")
        os.mkdir("scratch")
        every = "--all" in sys.argv
        libraries(doctor, library)
        commands(doctor, every)
        dumps(doctor)
        pictures(doctor)
        demonstrations(doctor, every)
    print(f"{PASSED} passed, {FAILED} failed")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
