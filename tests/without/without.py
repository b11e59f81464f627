#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# without.py [NAME...]: delete one part of the tree at a time, in a copy, build
# the rest and run its quick unit tests. One line a part, and as the last one
# `N passed, N failed`.
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# The build lies in the copy as `build` lies in the tree, and tools/check has
# set that up with the same compiler: ccache then knows the answers.
TREE = os.path.join(ROOT, "build", "without", "tree")
BUILD = os.path.join(TREE, "build")
CC = ("ccache " if shutil.which("ccache") else "") + "gcc"
SKIP = re.compile(r"(build.*|\..*|__pycache__)$")

# What to delete, options of the build, and lines of the root's meson.build
# that go too.
PARTS = {
    "nothing": ([], [], []),
    "python": (["python", "tests/python", "pyproject.toml"], [], []),
    "bench": (["bench", "tests/bench"], [], []),
    "examples": (["examples"], [], []),
    "pages": (["docs", "samples"], [], []),
    "packaging": (["packaging", "tests/install"], [],
                  ["subdir('packaging')"]),
    "cli": (["cli", "tests/cli", "tests/docs"], ["-Dcli=false"], []),
    "lab": (["src/lab", "tests/unit/lab"], ["-Dcli=false"], []),
    "limits": (["src/limits"], ["-Dcli=false"], []),
    "fuzz": (["tests/fuzz"], [], []),
    "amx": (["src/kernels/amx"], ["-Dlevels=avx2,avx512"], []),
    "avx512": (["src/kernels/amx", "src/kernels/avx512"], ["-Dlevels=avx2"],
               []),
    "avx2": (["src/kernels/amx", "src/kernels/avx512", "src/kernels/avx2"],
             ["-Dlevels="], []),
    "tests": (["tests"], ["-Dtests=false"], []),
}


def copy():
    """The tree as it is, fresh."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, symlinks=True, ignore=lambda _, names:
                    [name for name in names if SKIP.match(name)])


def delete(folders, lines):
    """Delete folders and lines; each must have been there."""
    for path in folders:
        path = os.path.join(TREE, path)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    path = os.path.join(TREE, "meson.build")
    with open(path, encoding="utf-8") as file:
        left = file.read().splitlines()
    for line in lines:
        left.remove(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(left) + "\n")


def commands(options):
    """What builds the rest and runs it."""
    yield ["meson", "setup", BUILD, TREE, *options]
    yield ["ninja", "-C", BUILD]
    if "-Dtests=false" in options:
        yield [os.path.join(BUILD, "attn"), "info"]
    else:
        yield ["meson", "test", "-C", BUILD, "--no-rebuild", "--suite", "unit",
               "--no-suite", "slow", "--timeout-multiplier=5",
               "--print-errorlogs"]


def wrong(options):
    """What the first command that fails prints, or None."""
    for command in commands(options):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT,
                              env={**os.environ, "CC": CC})
        if done.returncode or "warning:" in done.stdout:
            return done.stdout[-4000:]
    return None


def main():
    names = sys.argv[1:] or list(PARTS)
    passed = failed = 0
    for name in names:
        folders, options, lines = PARTS[name]
        start = time.monotonic()
        copy()
        delete(folders, lines)
        said = wrong(options)
        passed, failed = passed + (said is None), failed + (said is not None)
        print(f"without {name:12} {time.monotonic() - start:6.1f} s  "
              + ("builds and passes" if said is None else "FAILED\n" + said),
              flush=True)
    shutil.rmtree(TREE, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
