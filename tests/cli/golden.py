#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# golden.py ATTN [--update] [SESSION...]: runs the commands of the sessions in a
# folder with the files of fixtures.py, and compares word for word. In a session
#
#     $ attn run nothing.npz          is a command,
#     text                            what it writes to stdout,
#     2> text                         what it writes to stderr,
#     + out.npz                       a file that it made (removed again),
#     [3]                             its exit code, if not 0,
#     # text                          a remark.
#
# Words are compared word for word. Numbers belong to compare_numpy.py and its
# bounds; here two are the same if they differ by what rounding to fp32 and a
# dozen more operations may leave (NEAR), so that a kernel may sum in another
# order. --update writes what happened into the sessions, to be read before it
# is committed. Ends with `N passed, N failed`.

import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import fixtures

# 16 roundings of 2^-24, of numbers whose terms are no larger than 1 or they.
NEAR = 2.0 ** -20
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
HERE = pathlib.Path(__file__).resolve().parent
WITHOUT = ("ATTN_ISA", "NO_COLOR", "TERM", "COLUMNS")


def perform(attn, line, environment):
    """What the session shows of one command."""
    words = shlex.split(line)
    before = set(os.listdir())
    done = subprocess.run([attn, *words[1:]], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False,
                          env=environment)
    shown = done.stdout.splitlines()
    shown += ["2> " + text for text in done.stderr.splitlines()]
    for name in sorted(set(os.listdir()) - before):
        shown.append("+ " + name)
        os.remove(name)
    if done.returncode:
        shown.append(f"[{done.returncode}]")
    elif "--json" in words:
        json.loads(done.stdout)
    return shown


def blocks(text):
    """(command or remark or blank, the lines after it) of a session."""
    result = []
    for line in text.splitlines():
        if line.startswith(("$ ", "# ")) or not result:
            result.append((line, []))
        else:
            result[-1][1].append(line)
    return result


def last_place(number):
    """What one more in the last digit of a number is worth."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def is_near(a, b):
    """Whether two numbers, as they are written, are the same up to rounding,
    that of their last digit included. Whole ones count something."""
    if a.lstrip("-").isdigit() and b.lstrip("-").isdigit():
        return a == b
    x, y = float(a), float(b)
    return abs(x - y) <= NEAR * max(1, abs(x), abs(y)) + max(
        min(last_place(n), 1e-5 * abs(float(n))) for n in (a, b))


def is_same(expected, shown):
    """Whether a line is the one expected. Where numbers differ, columns may be
    of another width."""
    if expected == shown:
        return True
    a, b = (NUMBER.split(line) for line in (expected, shown))
    return len(a) == len(b) and all(
        is_near(x, y) if n % 2 else x.split() == y.split()
        for n, (x, y) in enumerate(zip(a, b)))


def are_same(expected, shown):
    return len(expected) == len(shown) and all(map(is_same, expected, shown))


def trim(lines):
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def play(attn, path, update, environment):
    """(passed, failed) of a session."""
    passed = failed = 0
    happened = []
    for line, expected in blocks(path.read_text(encoding="utf-8")):
        happened.append(line)
        if not line.startswith("$ "):
            happened += expected
            continue
        shown = perform(attn, line[2:], environment)
        gap = expected[len(trim(expected)):]
        same = are_same(trim(expected), trim(shown))
        happened += trim(expected) if same else shown
        happened += gap or [""] * bool(update and not gap)
        if same:
            passed += 1
            continue
        failed += 1
        if not update:
            print(f"{path.name}: {line}")
            for text in difflib.unified_diff(trim(expected), trim(shown),
                                             "expected", "happened",
                                             lineterm="", n=1):
                print("    " + text)
    if update:
        path.write_text("\n".join(happened).rstrip() + "\n", encoding="utf-8")
    return passed, failed


def on_terminal(words, environment, stream="stdout"):
    """What a command writes to a terminal."""
    ours, theirs = os.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
               stream: theirs}
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment,
                          **streams) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                piece = b""
            if not piece:
                break
            text += piece
    os.close(ours)
    return child.returncode, text


def surroundings(attn, environment):
    """(what, whether it holds) of terminals, full disks and this machine."""
    words = [attn, "run", "words.npz", "--weights"]
    plain = {**environment, "TERM": "xterm"}
    yield "colour on a terminal", b"\x1b[1m" in on_terminal(words, plain)[1]
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        code, text = on_terminal(words, {**plain, name: value})
        yield f"no colour with {name}", code == 0 and b"\x1b" not in text
    words = [attn, "doctor", "slow.py:attention", "--python", sys.executable]
    code, text = on_terminal(words, plain, "stderr")
    line = rb"(\r\x1b\[Kquestion \d+, \d+ s)+\r\x1b\[K"
    yield "progress on a terminal", code == 0 and re.fullmatch(line, text)
    yield "none with TERM=dumb", on_terminal(
        words, {**plain, "TERM": "dumb"}, "stderr") == (0, b"")
    yield "none of short work", on_terminal(
        [attn, "run", "self.npz"], plain, "stderr") == (0, b"")
    done = subprocess.run(words, capture_output=True, check=False, env=plain)
    yield "none in a pipe", (done.returncode, done.stderr) == (0, b"")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([attn, "run", "self.npz"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    yield "a full disk is told", (done.returncode, done.stderr) == (
        3, "attn run: cannot write to stdout\n")
    for isa in ("scalar", None):
        asked = {**environment, **({"ATTN_ISA": isa} if isa else {})}
        done = subprocess.run([attn, "info", "--json"], capture_output=True,
                              text=True, check=False, env=asked)
        machine = json.loads(done.stdout)
        yield f"info with ATTN_ISA={isa}", (
            done.returncode == 0 and machine["kernels"] and machine["cpu"] and
            machine["level"] == (isa or machine["level"]))
    for words in (["self.npz"], ["layer.npz", "--heads=2"]):
        done = subprocess.run([attn, "run", *words, "--plan"], check=False,
                              capture_output=True, text=True,
                              env={**environment, "ATTN_ISA": "scalar"})
        yield f"run --plan of {words[0]} names kernel, reason, memory", (
            done.returncode == 0 and
            re.search(r"^kernel decode_f(64|32)_scalar: .*; "
                      r"(best below ATTN_ISA|the level of this CPU)$.*"
                      r"^workspace forward: \d+ bytes", done.stdout,
                      re.MULTILINE | re.DOTALL))
    done = subprocess.run([attn, "info"], capture_output=True, text=True,
                          check=False, env=environment)
    yield "info lists every kernel", done.returncode == 0 and all(
        line in done.stdout for line in machine["kernels"])


def main():
    update = "--update" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--update"]
    attn = os.path.abspath(words[0])
    paths = sorted((HERE / "sessions").glob("*.session"))
    paths = [p for p in paths if not words[1:] or p.stem in words[1:]]
    environment = {k: v for k, v in os.environ.items() if k not in WITHOUT}
    passed = failed = 0
    with fixtures.own_folder():
        fixtures.make()
        # Digits to the last belong to one level.
        scalar = {**environment, "ATTN_ISA": "scalar"}
        for path in paths:
            good, bad = play(attn, path, update, scalar)
            passed, failed = passed + good, failed + bad
        for what, holds in surroundings(attn, environment):
            passed, failed = passed + bool(holds), failed + (not holds)
            if not holds:
                print(f"not so: {what}")
    if update:
        print(f"{failed} commands updated")
        return 0
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
