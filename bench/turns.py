# SPDX-License-Identifier: Apache-2.0
"""Peers as processes that take turns, and the medians of what they say.

A peer reads requests, one line of JSON each, and answers each with one line:

    {"do": "row", "row": {...}, "inputs": FOLDER, "threads": N}   -> {}
    {"do": "burst", "seconds": S}   -> {"seconds": of a call, "calls": n}
    {"do": "save", "folder": FOLDER}   -> {}, results as FOLDER/NAME.npy
    {"do": "end"}

or with {"missing": REASON} for what it does not do. Whatever else happens to
it (it is not there, dies, talks nonsense, falls silent) becomes a reason too:
a row goes on without it.
"""

import json
import os
import select
import statistics
import subprocess
import time


class Missing(Exception):
    """Why there is no result."""


class Peer:
    """One process; started when it is first asked, and again after it died."""

    def __init__(self, name, command, patience=120.0, log=None, env=None):
        self.name = name
        self.command = command
        self.patience = patience
        self.log = log
        self.env = env
        self.process = None
        self.unread = b""

    def start(self):
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self.log or subprocess.DEVNULL, env=self.env, bufsize=0)
        except OSError as error:
            raise Missing(f"does not start: {error.strerror}") from None
        self.unread = b""

    def ask(self, **request):
        """The answer to a request; Missing if there is none."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:
            raise Missing(self.ended()) from None
        try:
            answer = json.loads(self.line(time.monotonic() + self.patience))
        except ValueError:
            self.stop()
            raise Missing("its answer is not JSON") from None
        if "missing" in answer:
            raise Missing(answer["missing"])
        return answer

    def line(self, deadline):
        out = self.process.stdout
        while b"\n" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                self.stop()
                raise Missing(f"no answer in {self.patience:.0f} s")
            more = os.read(out.fileno(), 1 << 16)
            if not more:
                raise Missing(self.ended())
            self.unread += more
        line, self.unread = self.unread.split(b"\n", 1)
        return line

    def ended(self):
        """Why the process is no more."""
        code = self.process.wait()
        self.stop()
        return f"died of signal {-code}" if code < 0 else \
            f"ended with exit code {code}"

    def stop(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None


class Turns:
    """Bursts of the peers of one row, one after another, round by round.

    rounds   of all peers; `few` of one whose call takes longer than `slow`
             seconds, one if it takes longer than five times that
    burst    seconds of calls; pause   seconds of sleep before each
    """

    def __init__(self, rounds=5, burst=0.4, pause=0.25, few=3, slow=1.0,
                 sleep=time.sleep, told=lambda name, done, of: None):
        self.rounds = rounds
        self.burst = burst
        self.pause = pause
        self.few = min(few, rounds)
        self.slow = slow
        self.sleep = sleep
        self.told = told

    def take(self, peers):
        """({name: [answer of each round]}, {name: reason}): a peer that
        fails in any round has a reason, and no answers."""
        answers = {peer.name: [] for peer in peers}
        reasons = {}
        for number in range(self.rounds):
            for peer in peers:
                if peer.name in reasons or self.is_done(answers[peer.name]):
                    continue
                self.told(peer.name, number, self.rounds)
                self.sleep(self.pause)
                try:
                    answers[peer.name].append(
                        peer.ask(do="burst", seconds=self.burst))
                except Missing as why:
                    reasons[peer.name] = str(why)
        return ({name: told for name, told in answers.items()
                 if name not in reasons}, reasons)

    def is_done(self, answers):
        """Whether a slow peer has had its rounds."""
        if not answers:
            return False
        enough = 1 if median(answers) > 5 * self.slow else self.few
        return len(answers) >= enough and median(answers) > self.slow


def median(answers):
    """The median over rounds of a call's seconds."""
    return statistics.median(answer["seconds"] for answer in answers)


def spread(answers):
    """How far rounds lie apart: (largest - least) / median."""
    times = [answer["seconds"] for answer in answers]
    return (max(times) - min(times)) / statistics.median(times)


def best_of(times, ours):
    """(name, seconds) of the fastest but `ours`; None if there is no other.
    Names that begin as ours does are ours as well."""
    others = [(seconds, name) for name, seconds in times.items()
              if name.split()[0] != ours]
    return min(others)[::-1] if others else None


def verdict(ratios, least=0.97):
    """(median of the rows' ratios, names of those below `least`)."""
    slower = sorted(name for name, ratio in ratios.items() if ratio < least)
    return statistics.median(ratios.values()), slower
