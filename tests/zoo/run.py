#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# run.py ATTN [--every N] [--update PAGE] [WORD]...: let the doctor examine the
# zoo, print what it says and the confusion matrix, and fail below the promised
# numbers. WORDs: only animals whose name or fault contains one. --every: only
# each Nth of the others. --update: the matrix goes into a page, between
# `<!-- zoo -->` and `<!-- /zoo -->`. Ends with `N passed, N failed`.
import argparse
import collections
import concurrent.futures
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAMED_FIRST, PAIRS_NAMED, SECONDS = 0.95, 0.70, 5.0
PLACE = re.compile(r"(?<=<!-- zoo -->\n).*?(?=<!-- /zoo -->)", re.S)

Animal = collections.namedtuple("Animal", "subject label wanted options")


# ------------------------------------------------------------------ animals

class Libraries:
    """Shared libraries of the C files, each built once."""

    def __init__(self, folder):
        self.folder = folder
        self.built = {}

    def of(self, source):
        if source not in self.built:
            path = os.path.join(self.folder, source[:-2] + ".so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", path,
                            os.path.join(HERE, source), "-lm"], check=True)
            self.built[source] = path
        return self.built[source]


def animals(libraries):
    sys.path.insert(0, HERE)
    for name in sorted(os.listdir(HERE)):
        if not name.startswith("zoo_") or not name.endswith(".py"):
            continue
        module = importlib.import_module(name[:-3])
        source = getattr(module, "SOURCE", None)
        for row in module.ZOO:
            function, wanted = row[0], row[1]
            yield Animal((libraries.of(source) if source else name) + ":" +
                         function, name[4:-3] + ":" + function, wanted,
                         row[2] if len(row) > 2 else [])


def chosen(found, words, every):
    for n, animal in enumerate(found):
        if words and not any(w in animal.label or w in animal.wanted
                             for w in words):
            continue
        if n % every == 0:
            yield animal


def examine(attn, animal):
    """(animal, report, seconds of the doctor and its child)"""
    with tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as err:
        run = subprocess.Popen([attn, "doctor", animal.subject, "--json",
                                *animal.options], cwd=HERE, stdout=out,
                               stderr=err)
        usage = os.wait4(run.pid, 0)[2]
        out.seek(0)
        err.seek(0)
        try:
            report = json.load(out)
        except ValueError:
            report = {"verdict": "broken", "faults": [],
                      "reason": err.read().strip()[:200]}
    return animal, report, usage.ru_utime + usage.ru_stime


# -------------------------------------------------------------------- grade

Grade = collections.namedtuple("Grade", "detected named both")


def grade(wanted, report):
    """Whether it was found out, whether its bug came first, and of a pair
    whether both were named (else None)."""
    verdict = report["verdict"]
    ids = [f["id"] for f in report["faults"]]
    if wanted in ("correct", "unusable"):
        return Grade(verdict == wanted, verdict == wanted, None)
    parts = [set(part.split("|")) for part in wanted.split(" + ")]
    first = bool(ids) and any(ids[0] in part for part in parts)
    both = all(any(i in part for i in ids) for part in parts)
    return Grade(verdict == "fault", first, both if len(parts) > 1 else None)


class Tally:
    """What was seen, and whether that is enough."""

    def __init__(self):
        self.graded = []
        self.slow = []

    def add(self, animal, report, seconds):
        g = grade(animal.wanted, report)
        said = report["faults"][0]["id"] \
            if report["verdict"] == "fault" and report["faults"] \
            else report["verdict"]
        self.graded.append((animal.wanted, said, g))
        if seconds > SECONDS:
            self.slow.append((animal.label, seconds))
        return g.detected and g.named and g.both is not False

    def of(self, *kinds):
        """The grades of right, unusable, single or pair animals."""
        def kind(wanted):
            return wanted if wanted in ("correct", "unusable") else \
                "pair" if " + " in wanted else "single"
        return [g for wanted, _, g in self.graded if kind(wanted) in kinds]

    def ok(self):
        wrong, pairs = self.of("single", "pair"), self.of("pair")
        return (all(g.detected for g in self.of("single", "pair", "correct",
                                                "unusable"))
                and sum(g.named for g in wrong) >= NAMED_FIRST * len(wrong)
                and sum(g.both for g in pairs) >= PAIRS_NAMED * len(pairs)
                and not self.slow)

    def matrix(self):
        """Markdown: a row per bug, by the first of its names."""
        rows = collections.defaultdict(list)
        for wanted, said, g in self.graded:
            name = "a pair" if " + " in wanted else wanted.split("|")[0]
            rows[name].append((said, g))
        lines = ["| what it is | animals | named first | taken for |",
                 "|---|---|---|---|"]
        for name in sorted(rows, key=lambda n: (
                ["correct", "unusable", "a pair"].index(n)
                if n in ("correct", "unusable", "a pair") else -1, n)):
            others = collections.Counter(
                "`%s`" % said for said, g in rows[name] if not g.named)
            code = name if name in ("correct", "unusable", "a pair") \
                else "`%s`" % name
            lines.append("| %s | %d | %d | %s |" % (
                code, len(rows[name]), sum(g.named for _, g in rows[name]),
                ", ".join(f"{o} {n} x" if n > 1 else o
                          for o, n in sorted(others.items()))))
        return "\n".join(lines)

    def numbers(self):
        wrong, pairs = self.of("single", "pair"), self.of("pair")
        right, odd = self.of("correct"), self.of("unusable")
        return "\n".join([
            "| promise | seen |", "|---|---|",
            "| every bug is found | %d of %d |" % (
                sum(g.detected for g in wrong), len(wrong)),
            "| 95 of 100 are named first | %d of %d |" % (
                sum(g.named for g in wrong), len(wrong)),
            "| of 70 in 100 pairs both are named | %d of %d |" % (
                sum(g.both for g in pairs), len(pairs)),
            "| no alarm on right code | %d alarms, %d right ones |" % (
                sum(not g.detected for g in right), len(right)),
            "| crashes, hangs, wrong shapes: unusable | %d of %d |" % (
                sum(g.detected for g in odd), len(odd)),
            "| a verdict within %g s of CPU time | %d slower |" % (
                SECONDS, len(self.slow))])


def update(page, text):
    path = pathlib.Path(page)
    old = path.read_text(encoding="utf-8")
    path.write_text(PLACE.sub(lambda _: text + "\n", old), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="examine the zoo")
    parser.add_argument("attn")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--update", metavar="PAGE")
    options = parser.parse_args()
    attn = os.path.abspath(options.attn)
    folder = tempfile.mkdtemp()
    tally = Tally()
    good = bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for animal, report, seconds in pool.map(
                lambda a: examine(attn, a),
                chosen(animals(Libraries(folder)), options.words,
                       options.every)):
            if tally.add(animal, report, seconds):
                good += 1
                continue
            bad += 1
            print("%s wanted %s, got %s %s %s" % (
                animal.label, animal.wanted, report["verdict"],
                [f["id"] for f in report["faults"]],
                report.get("reason", "")), flush=True)
    shutil.rmtree(folder)
    for label, seconds in tally.slow:
        print("%s took %.1f s" % (label, seconds))
    text = tally.numbers() + "\n\n" + tally.matrix()
    print(text)
    if options.update:
        update(options.update, text)
    ok = tally.ok()
    print("%d passed, %d failed" % (good + (bad if ok else 0),
                                    0 if ok else bad))
    sys.exit(not ok)


main()
