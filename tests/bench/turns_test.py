#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# turns_test.py: the bench's turns, medians and report, with peers that are
# fakes. No library, no NumPy, no timing. Ends with `N passed, N failed`.

import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import report
from rows import ROWS, ROTATION, Row
from turns import Missing, Peer, Turns, best_of, median, spread, verdict


class WithPeers(unittest.TestCase):
    """Fakes that note in one diary when they are asked."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.diary = os.path.join(folder.name, "diary")
        self.pauses = []

    def peer(self, kind, *numbers, patience=20.0):
        peer = Peer(kind, [sys.executable, str(HERE / "fake_peer.py"),
                           self.diary, kind, *map(str, numbers)], patience)
        self.addCleanup(peer.stop)
        return peer

    def turns(self, **words):
        return Turns(pause=0.25, sleep=self.pauses.append, **words)

    def entries(self):
        return pathlib.Path(self.diary).read_text().split("\n")[:-1]


class TakingTurns(WithPeers):
    def test_one_after_another_with_a_pause_before_each(self):
        peers = [self.peer("a", 1.0), self.peer("b", 0.5)]
        answers, reasons = self.turns(rounds=3).take(peers)
        self.assertEqual(self.entries(), ["a burst", "b burst"] * 3)
        self.assertEqual(self.pauses, [0.25] * 6)
        self.assertEqual(reasons, {})
        self.assertEqual([len(answers[name]) for name in "ab"], [3, 3])

    def test_a_slow_peer_has_fewer_rounds(self):
        peers = [self.peer("slow", 2.5), self.peer("fast", 0.5),
                 self.peer("slower", 5.5)]
        answers, _ = self.turns(rounds=5, few=3, slow=1.0).take(peers)
        self.assertEqual(len(answers["slow"]), 3)
        self.assertEqual(len(answers["slower"]), 1)
        self.assertEqual(len(answers["fast"]), 5)

    def test_who_fails_later_leaves_and_the_others_go_on(self):
        peers = [self.peer("dies", 1.0), self.peer("b", 0.5)]
        answers, reasons = self.turns(rounds=4).take(peers)
        self.assertEqual(list(answers), ["b"])
        self.assertEqual(len(answers["b"]), 4)
        self.assertEqual(reasons, {"dies": "died of signal 6"})
        self.assertEqual(self.entries().count("dies burst"), 3)

    def test_the_next_row_starts_it_again(self):
        peer = self.peer("dies", 1.0)
        self.turns(rounds=4).take([peer])
        answers, reasons = self.turns(rounds=2).take([peer])
        self.assertEqual(len(answers["dies"]), 2)
        self.assertEqual(reasons, {})

    def test_progress_is_told(self):
        told = []
        turns = self.turns(rounds=2)
        turns.told = lambda *words: told.append(words)
        turns.take([self.peer("a", 1.0)])
        self.assertEqual(told, [("a", 0, 2), ("a", 1, 2)])


class Failing(WithPeers):
    def reason(self, peer):
        with self.assertRaises(Missing) as caught:
            peer.ask(do="burst", seconds=0.1)
        return str(caught.exception)

    def test_not_there(self):
        peer = Peer("x", ["./no-such-program"])
        self.assertEqual(self.reason(peer),
                         "does not start: No such file or directory")

    def test_ends(self):
        self.assertEqual(self.reason(self.peer("exits")),
                         "ended with exit code 3")

    def test_falls_silent(self):
        self.assertEqual(self.reason(self.peer("silent", patience=0.5)),
                         "no answer in 0 s")

    def test_talks_nonsense(self):
        self.assertEqual(self.reason(self.peer("nonsense")),
                         "its answer is not JSON")

    def test_refuses_and_stays(self):
        peer = self.peer("refuses")
        self.assertEqual(self.reason(peer), "no such feature")
        self.assertIsNotNone(peer.process)

    def test_an_answer_in_pieces_is_one(self):
        self.assertEqual(self.peer("pieces").ask(do="burst")["seconds"], 2.0)

    def test_the_real_loop_without_its_library(self):
        loop = str(HERE.parents[1] / "bench" / "peer.py")
        peer = Peer("x", [sys.executable, loop, "that_does_not_exist"])
        self.addCleanup(peer.stop)
        self.assertIn("not installed", self.reason(peer))


def answers(*seconds):
    return [{"seconds": s, "calls": 2} for s in seconds]


class Statistics(unittest.TestCase):
    def test_a_round_that_was_disturbed_does_not_show(self):
        self.assertEqual(median(answers(1.0, 1.1, 9.0, 1.2, 0.9)), 1.1)
        self.assertAlmostEqual(spread(answers(1.0, 2.0, 1.5)), 1 / 1.5)

    def test_the_best_peer_is_not_us(self):
        times = {"attn": 1.0, "attn in C": 0.5, "torch": 3.0, "jax": 2.0}
        self.assertEqual(best_of(times, "attn"), ("jax", 2.0))
        self.assertIsNone(best_of({"attn": 1.0}, "attn"))

    def test_verdict(self):
        self.assertEqual(verdict({"a": 2.0, "b": 0.96, "c": 0.97}),
                         (0.97, ["b"]))


def outcome(row, **seconds):
    errors = {name: dict.fromkeys(row.results,
                                  report.Error(1e-7 * (1 + i), 1e-8))
              for i, name in enumerate(
                  name for name in seconds if name != "limits")}
    return report.Outcome(row, {name: answers(s, s, s) for name, s in
                                seconds.items()}, {"jax": "not installed"},
                          errors)


class Reports(unittest.TestCase):
    row = Row("two", 1, 2, 1, 4, 8, 16, causal=True)

    def test_fractions_and_ratios(self):
        o = outcome(self.row, limits=1e-9, attn=2e-6, torch=3e-6)
        # Query i sees i + 5 keys: 26 pairs, 2 heads, 16 * 4 operations.
        self.assertEqual(self.row.work, 26 * 2 * 64)
        self.assertAlmostEqual(o.fraction("attn"), 26 * 128 / 2e-6 / 1e9)
        self.assertEqual(o.best, ("torch", 3e-6))
        self.assertAlmostEqual(o.ratio, 1.5)

    def test_a_block_has_times_errors_and_reasons(self):
        text = report.block(outcome(self.row, limits=1e-9, attn=2e-6,
                                    torch=3e-3))
        self.assertIn("attn            2.00 us   1.664 of fma f32  "
                      "error o 1.0e-07", text)
        self.assertIn("torch           3.00 ms", text)
        self.assertIn("         -  jax: not installed", text)

    def test_without_limit_or_ours_there_are_dashes(self):
        o = outcome(self.row, torch=3e-3)
        self.assertIsNone(o.ratio)
        self.assertIn(" - of fma f32", report.block(o))
        self.assertEqual(report.summary([o]), "")

    def test_who_is_slower_is_named(self):
        rows = [outcome(self.row, attn=2.0, torch=1.0)]
        self.assertIn("median 0.50 x the best of them; slower: two",
                      report.summary(rows))

    def test_gradients_ours_over_torch(self):
        row = Row("g", 1, 1, 1, 4, 4, 8, kind="backward")
        text = report.gradients([outcome(row, attn=1.0, torch=1.0)])
        self.assertIn("dq 1.0e-07 1.0e-08 (0.50 1.00)", text)

    def test_curves_have_a_point_for_each_row(self):
        rows = [outcome(Row("n", 1, 1, 1, n, n, 8, curve=True), limits=1e-9,
                        attn=n * 1e-6, **({"torch": 1e-3} if n == 4 else {}))
                for n in (4, 8)]
        lines = report.curves(rows, "t").splitlines()
        self.assertEqual(lines[2], "points\t4\t8")
        self.assertEqual(lines[3], "curve\tmultiply-add limit\t1\t1")
        self.assertEqual(lines[5], "curve\ttorch\t0.000512\tnan")

    def test_a_page_has_others_as_multiples_of_ours(self):
        lines = report.markdown([
            outcome(self.row, limits=1e-9, attn=2e-6, torch=3e-6)]).split("\n")
        self.assertEqual(lines[0], "| row | attn | of limit | torch | jax "
                         "| error | best peer's |")
        self.assertEqual(lines[2], "| two | 2.00 us | 1.66 | 1.50 | - "
                         "| 1.0e-07 | 2.0e-07 |")

    def test_json_has_what_was_measured(self):
        told = outcome(self.row, limits=1e-9, attn=2.0, torch=4.0).json()
        self.assertEqual(told["best"], "torch")
        self.assertEqual(told["peers"]["attn"]["rounds"], [2.0] * 3)
        self.assertEqual(told["peers"]["attn"]["calls"], 6)
        self.assertEqual(told["peers"]["jax"], {"missing": "not installed"})


class Rows(unittest.TestCase):
    def test_names_are_one_each(self):
        names = [row.name for row in ROWS]
        self.assertEqual(len(names), len(set(names)))

    def test_work(self):
        full = Row("x", 2, 3, 3, 5, 7, 4)
        self.assertEqual(full.work, 2 * 3 * 5 * 7 * 4 * 4)
        window = Row("x", 1, 1, 1, 8, 8, 1, causal=True, window=2)
        self.assertEqual(window.work, (1 + 2 + 6 * 3) * 4)
        both = Row("x", 1, 1, 1, 4, 4, 1, kind="both")
        self.assertEqual(both.work, 16 * 14)

    def test_decodes_go_round_more_than_a_cache(self):
        for row in ROWS:
            size = row.copies * row.kv_bytes
            self.assertTrue(not row.decode or size >= ROTATION, row.name)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bool(bad))
