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


class Failure:
    """A kind of calls that fail: the k-th, or from it on."""

    def __init__(self, module, kind):
        self.module = module
        self.kind = kind

    def environment(self, **settings):
        return {**os.environ, "LD_PRELOAD": self.module,
                "FAIL_KIND": self.kind, **settings}

    def run(self, attn, words, before, **settings):
        """(exit code, stdout, stderr, files, what was there before)."""
        files = set(os.listdir())
        target = output(words)
        if before and target:
            with open(target, "wb") as file:
                file.write(before)
        done = subprocess.run([attn, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False,
                              env=self.environment(**settings))
        made = {}
        for name in set(os.listdir()) - files:
            with open(name, "rb") as file:
                made[name] = file.read()
            os.remove(name)
        return done.returncode, done.stdout, done.stderr, made

    def count(self, attn, words):
        """How many such calls a command makes, and what it gives."""
        reader, writer = os.pipe()
        done = subprocess.run([attn, *words], stdin=subprocess.DEVNULL,
                              pass_fds=[writer], stdout=subprocess.PIPE,
                              env=self.environment(FAIL_COUNT=str(writer)),
                              check=True)
        os.close(writer)
        with os.fdopen(reader) as file:
            n = int(file.read())
        target = output(words)
        made = {}
        if target:
            with open(target, "rb") as file:
                made[target] = file.read()
            os.remove(target)
        return n, done.stdout, made


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


def play(failure, attn, words):
    """What went wrong, for each k and manner; '' where nothing did."""
    n, *clean = failure.count(attn, words)
    for settings in ({}, {"FAIL_ONWARD": "1"}):
        # Half of them over a file that is already there.
        before = OLD if settings else b""
        target = output(words)
        untouched = {target: before} if before and target else {}
        for k in range(1, n + 1):
            wrong = judge(failure.run(attn, words, before, FAIL_AT=str(k),
                                      **settings), tuple(clean), untouched)
            yield wrong and (f"attn {' '.join(words)}: {wrong} "
                             f"({failure.kind} {k} of {n} {settings})")


def main():
    attn, module = (os.path.abspath(word) for word in sys.argv[1:3])
    folder = tempfile.mkdtemp()
    passed = failed = 0
    try:
        os.chdir(folder)
        fixtures.make()
        for kind in ("memory", "files", "threads"):
            for words in COMMANDS:
                for wrong in play(Failure(module, kind), attn, words):
                    passed += not wrong
                    failed += bool(wrong)
                    if wrong:
                        print(wrong)
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
