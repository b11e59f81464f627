#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# json_fields.py ATTN JSON.md: runs the command with --json in every way below
# and holds what it writes against the tables of the page: each member is
# there, of its type, and each row of a table has been seen. Ends with
# `N passed, N failed`.

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
import fixtures  # noqa: E402, found by the line above

COMMANDS = [
    "run self.npz", "run heads.npz --causal --weights",
    "run grad.npz --grad --weights -o out.npz",
    "run bf16.npz --grad --loss=half-square",
    "run self.npz mask=mask_none.npy --empty-rows=nan",
    "run layer.npz --heads=2 --kv-heads=2 --grad --loss=half-square",
    "explain", "explain words.npz --causal", "explain long.npz --row=3",
    "explain layer_biased.npz --heads=2 --grad",
    "explain grad.npz --grad",
    "explain heads.npz --head=1 --softcap=2",
    "explain self.npz mask=mask_none.npy --empty-rows=nan",
    "doctor --list", "doctor --demo=scale-missing",
    f"doctor slow.py:attention --python={sys.executable}",
    f"doctor slow.py:filled --python={sys.executable}",
    "bench --only=tiny --seconds=0.01", "info", "info words.npz",
    "info object.npz", "info q.npy", "lab",
]
PASS = FAIL = 0


def check(what, good):
    global PASS, FAIL
    PASS, FAIL = PASS + bool(good), FAIL + (not good)
    if not good:
        print("not so: " + what)


def schemas(text):
    """{schema: {path: type}} of the page's tables."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        found[name] = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", body,
                                      re.M))
    return found


def is_number(x):
    return x in ("NaN", "Infinity", "-Infinity") if isinstance(x, str) else \
        isinstance(x, (int, float)) and not isinstance(x, bool)


def is_numbers(x):
    return all(map(is_numbers, x)) if isinstance(x, list) else is_number(x)


TYPES = {
    "text": lambda x: isinstance(x, str),
    "flag": lambda x: isinstance(x, bool),
    "count": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "number": is_number,
    "numbers": is_numbers,
    "text or number": lambda x: isinstance(x, str) or is_number(x),
}


def steps(path):
    """`a[].b.*` in pieces: a, [], b, *."""
    return re.findall(r"\[\]|[^.\[\]]+", path)


def walk(value, path, kind, seen):
    """Check a value against the rest of a path; mark what is met in `seen`
    (a set of the ids of objects' members and of list elements)."""
    if not path:
        return [] if TYPES[kind.rstrip("?")](value) else [
            f"{value!r} is no {kind}"]
    head, rest = path[0], path[1:]
    if head == "[]":
        if not isinstance(value, list):
            return [f"{value!r} is no list"]
        return [w for x in value for w in walk(x, rest, kind, seen)]
    if not isinstance(value, dict):
        return [f"{value!r} is no object"]
    names = list(value) if head == "*" else [head]
    wrong = []
    for name in names:
        seen.add((id(value), name))
        if name in value:
            wrong += walk(value[name], rest, kind, seen)
        elif not kind.endswith("?"):
            wrong.append(f"{name} is missing")
    return wrong


def members(value):
    """Every (id of the object, name) within."""
    if isinstance(value, dict):
        for name, x in value.items():
            yield id(value), name
            yield from members(x)
    elif isinstance(value, list):
        for x in value:
            yield from members(x)


def is_met(value, path):
    """Whether a value has something at the path."""
    if not path:
        return True
    if path[0] == "[]":
        return isinstance(value, list) and any(is_met(x, path[1:])
                                               for x in value)
    if path[0] == "*":
        return any(is_met(x, path[1:]) for x in value.values())
    return path[0] in value and is_met(value[path[0]], path[1:])


def judge(command, text, tables, met):
    got = json.loads(text)
    name = got.get("schema")
    if name not in tables or next(iter(got)) != "schema":
        check(f"{command}: the page has schema {name}, which comes first",
              False)
        return
    seen = {(id(got), "schema")}
    for path, kind in tables[name].items():
        wrong = walk(got, steps(path), kind, seen)
        check(f"{command}: {path}: {wrong[:1]}", not wrong)
        if is_met(got, steps(path)):
            met.add((name, path))
    extra = {name for at, name in members(got) if (at, name) not in seen}
    check(f"{command}: members that are not on the page: {extra}", not extra)


def main():
    attn, page = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    tables = schemas(page.read_text(encoding="utf-8"))
    met = set()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        fixtures.make()
        commands = list(COMMANDS)
        done = subprocess.run([attn, "lab", "--json"], capture_output=True,
                              check=True)
        commands += ["lab " + x["name"]
                     for x in json.loads(done.stdout)["experiments"]]
        for command in commands:
            done = subprocess.run([attn, *command.split(), "--json"],
                                  stdin=subprocess.DEVNULL, check=False,
                                  capture_output=True, text=True)
            try:
                judge(command, done.stdout, tables, met)
            except ValueError:
                check(f"{command} writes JSON: {done.stderr}", False)
        os.chdir("/")
    for name, paths in tables.items():
        for path in paths:
            check(f"{name} {path} is seen", (name, path) in met)
    print(f"{PASS} passed, {FAIL} failed")
    return 1 if FAIL else 0


if __name__ == "__main__":
    sys.exit(main())
