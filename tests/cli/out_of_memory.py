#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# out_of_memory.py ATTN MODULE: runs commands while their k-th allocation fails
# (once, and from then on), for every k. A command must end by itself, with exit
# code 3 and a sentence and no file, or with 0 and what it gives otherwise.

import os
import shutil
import subprocess
import sys
import tempfile

import fixtures

COMMANDS = [
    ["run", "words.npz", "--weights"],
    ["run", "packed.npz", "--json"],
    ["run", "grad.npz", "--grad", "--rope=base=100", "--dtype=f32",
     "--threads=2", "-o", "out.npz"],
    ["run", "q.npy", "k.npy", "v=self.npz:v", "mask.npy"],
    ["plot", "words.npz", "--causal", "-o", "out.npz.png"],
    ["plot", "heads.npz", "--entropy", "--rows=2,0", "-o", "out.npz.svg"],
    ["info", "words.npz"],
    ["info"],
]


def run(attn, module, words, **settings):
    """(exit code, stdout, stderr, bytes of out.npz) of a command."""
    environment = {**os.environ, "LD_PRELOAD": module, **settings}
    done = subprocess.run([attn, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, env=environment, check=False)
    written = None
    for name in os.listdir():
        if name.startswith("out.npz"):
            with open(name, "rb") as file:
                written = file.read()
            os.remove(name)
    return done.returncode, done.stdout, done.stderr, written


def allocations(attn, module, words):
    reader, writer = os.pipe()
    environment = {**os.environ, "LD_PRELOAD": module,
                   "FAIL_COUNT": str(writer)}
    subprocess.run([attn, *words], stdin=subprocess.DEVNULL, pass_fds=[writer],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=environment, check=True)
    os.close(writer)
    with os.fdopen(reader) as file:
        n = int(file.read())
    for name in os.listdir():
        if name.startswith("out.npz"):
            os.remove(name)
    return n


def judge(result, clean):
    """What is wrong with the result of a command short of memory, or ''."""
    code, out, err, written = result
    if code == 0:
        # A lost note on stderr is no lost result.
        same = out == clean[1] and written == clean[3]
        return "" if same else "succeeds with another result"
    if code != 3:
        return f"exit code {code}"
    if written is not None:
        return "leaves a file"
    if not err.startswith(b"attn") or not err.endswith(b"\n"):
        return f"says {err!r}"
    return ""


def main():
    attn, module = (os.path.abspath(word) for word in sys.argv[1:3])
    folder = tempfile.mkdtemp()
    passed = failed = 0
    try:
        os.chdir(folder)
        fixtures.make()
        for words in COMMANDS:
            clean = run(attn, module, words)
            n = allocations(attn, module, words)
            for settings in ({}, {"FAIL_ONWARD": "1"}):
                for k in range(1, n + 1):
                    wrong = judge(run(attn, module, words, FAIL_AT=str(k),
                                      **settings), clean)
                    passed += not wrong
                    failed += bool(wrong)
                    if wrong:
                        print(f"attn {' '.join(words)}: {wrong} (allocation "
                              f"{k} of {n} {settings})")
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
