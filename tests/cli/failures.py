#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# failures.py ATTN MODULE: runs commands while their k-th allocation, file
# operation or making of threads fails (once, and from then on), for every k. A
# command must end by itself, with exit code 3 and a sentence and the file of
# that name as it was, or with 0 and what it gives otherwise; and beside that no
# file may be left. Ends with `N passed, N failed`.

import os
import shutil
import subprocess
import sys
import tempfile

import fixtures

MODEL = ["--model=llama.safetensors", "--prefix=h.0", "--heads=2"]
COMMANDS = [
    ["run", "words.npz", "--weights"],
    ["run", "packed.npz", "--json"],
    ["run", "grad.npz", "--grad", "--rope=base=100", "--dtype=f32",
     "--threads=2", "-o", "out.npz"],
    ["run", "q.npy", "k.npy", "v=self.npz:v", "mask.npy"],
    ["run", "x.npy", *MODEL, "--grad", "--loss=half-square", "-o", "out.npz"],
    ["explain", "grad.npz", "--grad", "--causal"],
    ["explain", "x.npy", *MODEL, "--json", "--row=1"],
    ["plot", "words.npz", "--causal", "-o", "out.png"],
    ["plot", "heads.npz", "--entropy", "--rows=2,0", "-o", "out.svg"],
    ["plot", "layer.npz", "--heads=2", "--head=1", "-o", "out.svg"],
    ["lab", "sharpen", "self.npz", "--json"],
    ["lab", "heads", "--len=2", "--dim=2", "--heads=2"],
    ["lab", "window", "--len=3", "--plot=out.png"],
    ["doctor", "--dump=judged.npz"],
    ["info", "words.npz"],
    ["info", "llama.safetensors", "--json"],
    ["info"],
]
OLD = b"what was there before"


def contents(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class Failing:
    """A command that is loaded once and run each time it is asked to. Calls of
    one kind fail: the k-th, or from it on, or with k = 0 none."""

    def __init__(self, module, kind, attn, words):
        self.kind = kind
        self.target = output(words)
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [attn, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": module, "FAIL_KIND": kind,
                 "FAIL_OUTPUT": self.folder})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        shutil.rmtree(self.folder)

    def run(self, k, onward, before):
        """(exit code, stdout, stderr, files) over a file of before."""
        files = set(os.listdir())
        if before and self.target:
            with open(self.target, "wb") as file:
                file.write(before)
        self.process.stdin.write(f"{k} {onward:d}\n".encode())
        self.process.stdin.flush()
        code = os.waitstatus_to_exitcode(int(self.process.stdout.readline()))
        made = {}
        for name in set(os.listdir()) - files:
            made[name] = contents(name)
            os.remove(name)
        return (code, contents(self.folder, "out"),
                contents(self.folder, "err"), made)

    def count(self):
        """How many such calls the command makes, and what it gives."""
        code, out, err, made = self.run(0, False, b"")
        if code:
            sys.exit(f"fails without a failure: {err.decode()}")
        return int(contents(self.folder, "count")), out, made


def output(words):
    """The file that a command writes, if any."""
    names = [word.rpartition("=")[2] for word in words]
    return next((name for name in names if name.startswith("out.")), None)


def judge(result, clean, untouched):
    """What is wrong with the result of a command, or ''."""
    code, out, err, made = result
    if code == 0:
        # A lost note on stderr is no lost result.
        return "" if (out, made) == clean else "succeeds with another result"
    if code != 3:
        return f"exit code {code}"
    if made != untouched:
        return f"leaves {sorted(made)}, and not {sorted(untouched)} as before"
    if not err.startswith(b"attn") or not err.endswith(b"\n"):
        return f"says {err!r}"
    return ""


def play(failing, words):
    """What went wrong, for each k and manner; '' where nothing did."""
    n, *clean = failing.count()
    for onward in (False, True):
        # Half of them over a file that is already there.
        before = OLD if onward else b""
        target = failing.target
        untouched = {target: before} if before and target else {}
        for k in range(1, n + 1):
            wrong = judge(failing.run(k, onward, before), tuple(clean),
                          untouched)
            yield wrong and (f"attn {' '.join(words)}: {wrong} ({failing.kind} "
                             f"{k} of {n}{' and on' if onward else ''})")


def main():
    attn, module = (os.path.abspath(word) for word in sys.argv[1:3])
    passed = failed = 0
    with fixtures.own_folder():
        fixtures.make()
        for kind in ("memory", "files", "threads"):
            for words in COMMANDS:
                with Failing(module, kind, attn, words) as failing:
                    for wrong in play(failing, words):
                        passed += not wrong
                        failed += bool(wrong)
                        if wrong:
                            print(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
