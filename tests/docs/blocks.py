#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# blocks.py ATTN PAGE [--update]: runs the ```console and ```python blocks of a
# page in one folder and compares what they write, line for line; `...` stands
# for any lines. Blocks that name the folder model/ are passed over where
# `tools/setup model` has not made it. Ends with `N passed, N failed`.

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.M | re.S)


def run(words, environment, shell=False):
    done = subprocess.run(words, shell=shell, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=environment, check=False)
    return done.stdout, done.returncode


def matches(shown, expected):
    """Whether lines are those expected, among which `...` is any number."""
    if not expected:
        return not shown
    if expected[0] == "...":
        return any(matches(shown[n:], expected[1:])
                   for n in range(len(shown) + 1))
    return bool(shown) and shown[0] == expected[0] and matches(shown[1:],
                                                               expected[1:])


def commands(text):
    """[command, the lines after it] of a console block."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        else:
            found[-1][1].append(line)
    return found


def play(kind, text, environment, complain):
    """The block as it happened, with as many failures."""
    if kind == "python":
        out, code = run([sys.executable, "-c", text], environment)
        if code:
            complain(f"a python block ends with {code}: {out}")
        return text, int(code != 0)
    happened, failed = [], 0
    for command, expected in commands(text):
        out, _ = run(command, environment, shell=True)
        shown = out.splitlines()
        if matches(shown, expected):
            happened += ["$ " + command, *expected]
            continue
        failed += 1
        complain(f"$ {command}\nexpected\n  " + "\n  ".join(expected) +
                 "\nhappened\n  " + "\n  ".join(shown))
        happened += ["$ " + command, *shown]
    return "\n".join(happened) + "\n", failed


def main():
    update = "--update" in sys.argv
    attn, page = (pathlib.Path(w).resolve() for w in sys.argv[1:3])
    text = page.read_text(encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "ATTN_ISA"}
    environment["PATH"] = f"{attn.parent}:{environment['PATH']}"
    blocks = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.symlink(ROOT / "samples", "samples")
        os.symlink(attn.parent, "build")
        if (ROOT / ".venv/model").exists():
            os.symlink(ROOT / ".venv/model", "model")

        def once(match):
            nonlocal blocks, failed
            if "model/" in match[2] and not os.path.exists("model"):
                print("no model here (tools/setup model): passed over")
                return match[0]
            body, bad = play(match[1], match[2], environment,
                             (lambda _: None) if update else print)
            blocks += 1
            failed += bool(bad)
            return f"```{match[1]}\n{body}```"

        text = BLOCK.sub(once, text)
        os.chdir("/")
    if update:
        page.write_text(text, encoding="utf-8")
        return 0
    print(f"{blocks - failed} passed, {failed} failed")
    return 1 if failed or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
