#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# run.py ATTN [WORD]...: let the doctor examine the zoo, print what it says
# and the confusion matrix, and fail below the promised numbers.
import collections
import concurrent.futures
import importlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAMED_FIRST, PAIRS_NAMED, SECONDS = 0.95, 0.70, 5.0


def animals(words):
    """(file, function, wanted, options) of every row."""
    sys.path.insert(0, HERE)
    for name in sorted(os.listdir(HERE)):
        if not name.startswith("zoo_") or not name.endswith(".py"):
            continue
        module = importlib.import_module(name[:-3])
        source = getattr(module, "SOURCE", None)
        for row in module.ZOO:
            function, wanted = row[0], row[1]
            options = row[2] if len(row) > 2 else []
            label = name[4:-3] + ":" + function
            if not words or any(w in label or w in wanted for w in words):
                yield (library_of(source) if source else name, function,
                       wanted, options)


def library_of(source, built={}):
    """The shared library of a C file, built once a run."""
    if source not in built:
        folder = tempfile.mkdtemp()
        built[source] = os.path.join(folder, source[:-2] + ".so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", built[source],
                        os.path.join(HERE, source), "-lm"], check=True)
    return built[source]


def examine(attn, animal):
    """(animal, report, seconds of this process, its child's included)"""
    name, function, wanted, options = animal
    with tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as err:
        run = subprocess.Popen(
            [attn, "doctor", "%s:%s" % (name, function), "--json"] + options,
            cwd=HERE, stdout=out, stderr=err)
        usage = os.wait4(run.pid, 0)[2]
        out.seek(0)
        err.seek(0)
        try:
            report = json.load(out)
        except ValueError:
            report = {"verdict": "broken", "faults": [],
                      "reason": err.read().strip()[:200]}
    return animal, report, usage.ru_utime + usage.ru_stime


def grade(wanted, report):
    """(detected, named first, pair: both named)"""
    verdict = report["verdict"]
    ids = [f["id"] for f in report["faults"]]
    if wanted in ("correct", "unusable"):
        return verdict == wanted, verdict == wanted, None
    detected = verdict == "fault"
    if " + " in wanted:
        both = [set(part.split("|")) for part in wanted.split(" + ")]
        named = all(any(i in part for i in ids) for part in both)
        return detected, bool(ids) and any(ids[0] in p for p in both), named
    return detected, bool(ids) and ids[0] in wanted.split("|"), None


class Tally:
    def __init__(self):
        self.wrong = self.detected = self.named = 0
        self.right = self.alarms = 0
        self.pairs = self.both = 0
        self.unusable = self.unusable_seen = 0
        self.slow = []
        self.matrix = collections.Counter()

    def add(self, animal, report, seconds):
        wanted = animal[2]
        detected, named, both = grade(wanted, report)
        if seconds > SECONDS:
            self.slow.append((animal, seconds))
        first = report["faults"][0]["id"] if report["faults"] else "-"
        if wanted == "correct":
            self.right += 1
            self.alarms += not detected
        elif wanted == "unusable":
            self.unusable += 1
            self.unusable_seen += detected
        elif both is not None:
            self.pairs += 1
            self.both += both
            self.wrong += 1
            self.detected += detected
            self.named += named
        else:
            self.wrong += 1
            self.detected += detected
            self.named += named
        key = first if report["verdict"] == "fault" else report["verdict"]
        self.matrix[wanted, key] += 1
        return detected and named and both is not False

    def ok(self):
        return (self.detected == self.wrong and self.alarms == 0
                and self.unusable_seen == self.unusable
                and self.named >= NAMED_FIRST * self.wrong
                and self.both >= PAIRS_NAMED * self.pairs)

    def show(self):
        print("\nwanted -> first named (times)")
        for (wanted, said), n in sorted(self.matrix.items()):
            mark = " " if said in wanted.split("|") or said == wanted or \
                any(said in p.split("|") for p in wanted.split(" + ")) \
                else "*"
            print(" %s %-44s %-28s %3d" % (mark, wanted, said, n))
        print("\ndetected      %d of %d wrong ones" % (self.detected,
                                                       self.wrong))
        print("named first   %d of %d" % (self.named, self.wrong))
        print("both of pair  %d of %d" % (self.both, self.pairs))
        print("false alarms  %d of %d right ones" % (self.alarms, self.right))
        print("unusable      %d of %d" % (self.unusable_seen, self.unusable))
        for animal, seconds in self.slow:
            print("slow          %s:%s %.1f s" % (animal[0], animal[1],
                                                  seconds))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__ or "usage: run.py ATTN [WORD]...")
    attn = os.path.abspath(sys.argv[1])
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for animal, report, seconds in pool.map(
                lambda a: examine(attn, a), animals(sys.argv[2:])):
            if not tally.add(animal, report, seconds):
                print("%s:%s wanted %s, got %s %s %s" % (
                    animal[0], animal[1], animal[2], report["verdict"],
                    [f["id"] for f in report["faults"]],
                    report.get("reason", "")))
    tally.show()
    sys.exit(not tally.ok())


main()
