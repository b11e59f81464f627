#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer's end of the pipe: answers compare.py's requests with one library.

    python bench/peer.py NAME      (turns.py says what comes and goes)

The library's module, peer_NAME.py, has `prepare(row, arrays, threads)`: it
returns a `Work`, or raises `NotSupported` with the reason.
"""

import importlib
import json
import os
import statistics
import sys
import time


class NotSupported(Exception):
    """What this library does not do."""


class Work:
    """A problem made ready: `call()` does it once and returns what it made;
    `results(made)` are the arrays in it, (batch, heads, len, dim)."""

    def __init__(self, call, results):
        self.call = call
        self.results = results


# Calls that are timed together take at least so long.
TOGETHER = 200e-6


class Bursts:
    """Several works, in turn: a decode's copies of K and V."""

    def __init__(self, works):
        self.works = works
        self.at = 0
        # The first call warms up; what it made is what errors are measured of.
        start = time.perf_counter()
        self.made = works[0].call()
        self.last = time.perf_counter() - start  # seconds of a call

    def one(self):
        self.at = (self.at + 1) % len(self.works)
        return self.works[self.at].call()

    def time(self, n):
        start = time.perf_counter()
        for _ in range(n):
            self.one()
        return (time.perf_counter() - start) / n

    def run(self, seconds):
        if self.last < seconds / 4:
            self.last = self.time(1)
        n = max(1, int(TOGETHER / self.last))
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            times.append(self.time(n))
        self.last = statistics.median(times)
        return {"seconds": self.last, "calls": n * len(times)}


def load(row, folder):
    """The inputs as views (batch, heads, len, dim); with bshd, of memory of
    that order."""
    import numpy as np
    arrays = {}
    for name in row.inputs:
        x = np.load(os.path.join(folder, name + ".npy"))
        if row.bshd:
            x = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
        arrays[name] = x
    return arrays


class Session:
    """One row after another."""

    def __init__(self, module):
        self.module = module
        self.bursts = self.results = None

    def row(self, request):
        from rows import Row
        self.bursts = self.results = None  # its memory goes first
        row = Row(**request["row"])

        def ready():
            return self.module.prepare(row, load(row, request["inputs"]),
                                       request["threads"])

        first = ready()
        if hasattr(first, "run"):  # bursts of its own, not made of calls
            self.bursts = first
            return {}
        self.bursts = Bursts([first] + [ready()
                                        for _ in range(row.copies - 1)])
        self.results = first.results
        return {}

    def burst(self, request):
        return self.bursts.run(request["seconds"])

    def save(self, request):
        import numpy as np
        if self.results:
            for name, x in self.results(self.bursts.made).items():
                np.save(os.path.join(request["folder"], name + ".npy"), x)
        return {}


def answer(session, request):
    try:
        return getattr(session, request["do"])(request)
    except NotSupported as why:
        return {"missing": str(why)}
    except MemoryError:
        return {"missing": "out of memory"}
    except Exception as error:  # whatever a library throws is a reason
        text = str(error).strip().splitlines() or [""]
        return {"missing": f"{type(error).__name__}: {text[0][:90]}"}


def main():
    # What libraries print must not look like an answer.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        session = Session(importlib.import_module("peer_" + sys.argv[1]))
    except ImportError as error:
        session, problem = None, f"not installed: {error}"
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "end":
            break
        told = answer(session, request) if session else {"missing": problem}
        out.write(json.dumps(told) + "\n")
    out.flush()
    os._exit(0)  # threads of libraries may be slow to say goodbye


if __name__ == "__main__":
    # The modules say `from peer import Work`: one class, not two.
    sys.modules["peer"] = sys.modules["__main__"]
    main()
