#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# compare.py: other libraries and ours on the same rows, in turns; docs/bench.md
# says how. `make bench` runs it where the peers are installed.

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import exact
import report
from rows import ROWS, make_inputs
from turns import Missing, Peer, Turns

HERE = pathlib.Path(__file__).resolve().parent
IN_C, TINY = "attn in C", "tiny 8x4"  # a peer of one row
PEERS = ["attn", IN_C, "torch", "onnxruntime", "ort-mha", "openvino",
         "jax", "numpy"]


def module(name):
    return {IN_C: "attn_c"}.get(name, name).replace("-", "_")


def parse():
    parser = argparse.ArgumentParser(
        prog="make bench", description="other libraries and ours, in turns")
    parser.add_argument("--build", default="build", help="where libattn is")
    parser.add_argument("--only", metavar="WORD", action="append", default=[],
                        help="rows whose name holds WORD; may be repeated")
    parser.add_argument("--peers", metavar="A,B", default=",".join(PEERS),
                        help="of " + ", ".join(PEERS))
    parser.add_argument("--threads", type=int,
                        default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true",
                        help="two rounds of 0.1 s")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    options.rows = [row for row in ROWS if not options.only or any(
        word in row.name for word in options.only)]
    options.peers = options.peers.split(",")
    if not options.rows:
        parser.error("no row's name holds " + " or ".join(options.only))
    if set(options.peers) - set(PEERS):
        parser.error("--peers: of " + ", ".join(PEERS))
    return options


def environment(options):
    """What peers read: threads for those that only ask the environment, and
    where our own programs are."""
    build = pathlib.Path(options.build).resolve()
    n = str(options.threads)
    return os.environ | {
        "OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n,
        "ATTN_LIMITS": str(build / "src/limits/libattn_bench.so"),
        "ATTN_CALL_OVERHEAD": str(build / "bench/call_overhead")}


class Progress:
    """One line on a terminal; nothing elsewhere."""

    def __init__(self, total):
        self.total, self.at, self.row = total, 0, ""
        self.start = time.monotonic()
        self.shown = sys.stderr.isatty()

    def next(self, row):
        self.at, self.row = self.at + 1, row.name

    def tell(self, what):
        if not self.shown:
            return
        took = time.monotonic() - self.start
        left = ""
        if self.at > 1:
            minutes = took / (self.at - 1) * (self.total - self.at + 1) / 60
            left = f", about {minutes:.0f} min left"
        line = f"row {self.at} of {self.total}, {self.row}: {what}{left}"
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r" + line[:width].ljust(width))
        sys.stderr.flush()

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def errors_of(peer, truth, folder):
    """The peer's errors against fp64, by its own results in a folder."""
    with tempfile.TemporaryDirectory(dir=folder) as results:
        peer.ask(do="save", folder=results)
        if not os.listdir(results):
            return {}
        return truth.errors(lambda name: np.load(
            os.path.join(results, name + ".npy")))


def run_row(row, peers, turns, threads, progress):
    """The row's Outcome: made ready by all, errors, then turns."""
    ready, reasons, errors = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        progress.tell("inputs and fp64")
        arrays = make_inputs(row)
        for name, x in arrays.items():
            np.save(os.path.join(folder, name + ".npy"), x)
        truth = exact.exact(row, arrays)
        del arrays
        for peer in peers:
            progress.tell(f"{peer.name} makes ready")
            try:
                peer.ask(do="row", row=dataclasses.asdict(row),
                         inputs=folder, threads=threads)
                errors[peer.name] = errors_of(peer, truth, folder)
                ready.append(peer)
            except Missing as why:
                reasons[peer.name] = str(why)
    answers, failed = turns.take(ready)
    return report.Outcome(row, answers, reasons | failed, errors)


def machine():
    import attn
    return attn.info()["cpu"]


def draw(outcomes, options, folder):
    """The picture, if rows of it were run."""
    if sum(1 for o in outcomes if o.row.curve and o.rate) < 2:
        return []
    text = report.curves(outcomes, "Attention: " + machine().split(":")[0])
    names = [str(folder / "speed.svg"), str(folder / "speed.png")]
    drawn = subprocess.run([f"{options.build}/bench/curves", *names],
                           input=text, text=True, check=False)
    return names if drawn.returncode == 0 else []


def finish(outcomes, options, started):
    folder = pathlib.Path(options.build) / "bench"
    found = report.rates(outcomes)
    with open(folder / "bench.json", "w", encoding="utf-8") as file:
        json.dump({"schema": "peers-1", "cpu": machine(),
                   "threads": options.threads, "limits": found,
                   "rows": [o.json() for o in outcomes]}, file, indent=1)
    (folder / "bench.md").write_text(report.markdown(outcomes))
    print()
    print(report.table(outcomes))
    for part in (report.gradients(outcomes), report.summary(outcomes)):
        if part:
            print("\n" + part)
    for name, rate in found.items():
        print(f"limit {name}: {rate * 1e-9:.1f} "
              f"{'GB/s' if name == 'read' else 'GFLOP/s'}")
    names = [str(folder / "bench.json"), str(folder / "bench.md"),
             *draw(outcomes, options, folder)]
    print(f"\n{(time.monotonic() - started) / 60:.1f} minutes; "
          + ", ".join(names))


def main():
    options = parse()
    if options.list:
        for row in options.rows:
            print(f"{row.name:22} {row.kind:8} {report.describe(row)}")
        return
    started = time.monotonic()
    print(f"{machine()}, {options.threads} threads")
    turns = Turns(2, 0.1, few=1) if options.quick else Turns(options.rounds)
    progress = Progress(len(options.rows))
    turns.told = lambda name, at, of: progress.tell(
        f"{name}, round {at + 1} of {of}")
    outcomes = []
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(
            pathlib.Path(options.build) / "bench" / "peers.log", "wb"))
        peers = [Peer(name, [sys.executable, str(HERE / "peer.py"),
                             module(name)], log=log,
                      env=environment(options))
                 for name in [report.LIMITS, *options.peers]]
        for peer in peers:
            stack.callback(peer.stop)
        # Ctrl-C ends it with the rows that are done.
        with contextlib.suppress(KeyboardInterrupt):
            for row in options.rows:
                progress.next(row)
                asked = [peer for peer in peers
                         if peer.name != IN_C or row.name == TINY]
                outcomes.append(run_row(row, asked, turns, options.threads,
                                        progress))
                progress.clear()
                print(report.block(outcomes[-1]), flush=True)
    progress.clear()
    finish(outcomes, options, started)


if __name__ == "__main__":
    main()
