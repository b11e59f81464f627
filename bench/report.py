# SPDX-License-Identifier: Apache-2.0
"""What the bench prints and keeps: a block for each row as it is done, then
the table, the gradients' errors, the verdict; JSON; the picture's numbers."""

import collections
import dataclasses
import statistics

from turns import best_of, median, spread, verdict

OURS = "attn"
LIMITS = "limits"


# Against fp64: the largest, and the root of the mean square.
Error = collections.namedtuple("Error", "largest rms")


class Outcome:
    """One row's answers, errors and reasons, by peer."""

    def __init__(self, row, answers, reasons, errors):
        self.row = row
        limit = answers.pop(LIMITS, None)
        self.rate = limit and 1 / median(limit)
        self.answers = answers
        self.reasons = {name: why for name, why in reasons.items()
                        if name != LIMITS}
        self.errors = errors
        self.times = {name: median(told) for name, told in answers.items()}

    def fraction(self, name):
        """Of the machine's limit; None where that is not known."""
        return self.rate and self.row.work / self.times[name] / self.rate

    @property
    def best(self):
        return best_of(self.times, OURS)

    @property
    def ratio(self):
        """Our speed as a multiple of the best peer's; None if one lacks."""
        if OURS not in self.times or not self.best:
            return None
        return self.best[1] / self.times[OURS]

    def error(self, name):
        """The largest of a peer's errors; None if not measured."""
        return max((e.largest for e in self.errors.get(name, {}).values()),
                   default=None)

    def json(self):
        peers = {name: {"seconds": seconds,
                        "rounds": [a["seconds"] for a in self.answers[name]],
                        "calls": sum(a["calls"] for a in self.answers[name]),
                        "spread": spread(self.answers[name]),
                        "fraction": self.fraction(name),
                        "errors": {key: e._asdict() for key, e in
                                   self.errors.get(name, {}).items()}}
                 for name, seconds in self.times.items()}
        peers |= {name: {"missing": why} for name, why in self.reasons.items()}
        return {"row": dataclasses.asdict(self.row), "work": self.row.work,
                "limit": self.row.limit, "rate": self.rate, "peers": peers,
                "best": self.best and self.best[0], "ratio": self.ratio}


def duration(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            break
    return f"{seconds / size:.{2 if seconds / size < 100 else 1}f} {unit}"


def number(value, form):
    return "-" if value is None else format(value, form)


def describe(row):
    words = [row.dtype, f"{row.batch} x {row.heads} heads"]
    if row.group > 1:
        words[-1] += f" on {row.heads_kv}"
    words += [f"{row.len_q} x {row.len_k}", f"d = {row.dim}"]
    words += ["causal"] if row.causal else []
    if row.decode:
        words.append(f"{row.copies} copies of K and V")
    return ", ".join(words)


def block(outcome):
    """The lines of one row."""
    row = outcome.row
    lines = [f"{row.name}: {describe(row)}"]
    fastest = sorted(outcome.times.items(), key=lambda item: item[1])
    for name, seconds in fastest:
        line = f"    {name:12} {duration(seconds):>10}  " \
            f"{number(outcome.fraction(name), '6.3f')} of {row.limit}"
        errors = outcome.errors.get(name)
        if errors:
            line += "  error " + ", ".join(
                f"{key} {e.largest:.1e}" for key, e in errors.items())
        lines.append(line)
    for why in dict.fromkeys(outcome.reasons.values()):
        names = [name for name, told in outcome.reasons.items() if told == why]
        lines.append(f"    {'-':>10}  {', '.join(names)}: {why}")
    return "\n".join(lines)


def table(outcomes):
    lines = [f"{'row':26} {'attn':>10} {'of limit':>8}  {'best peer':11} "
             f"{'ratio':>6}  {'error':>8} {'its':>8}"]
    for o in outcomes:
        best = o.best[0] if o.best else None
        ours = o.times.get(OURS)
        lines.append(
            f"{o.row.name:26} {'-' if ours is None else duration(ours):>9} "
            f"{number(ours and o.fraction(OURS), '.3f'):>8}  {best or '-':11} "
            f"{number(o.ratio, '.2f'):>6}  "
            f"{number(o.error(OURS), '.1e'):>8} "
            f"{number(best and o.error(best), '.1e'):>8}")
    return "\n".join(lines)


def markdown(outcomes):
    """The table for a page: our time, and others' as multiples of it."""
    peers = list(dict.fromkeys(
        name for o in outcomes for name in [*o.times, *o.reasons]
        if name.split()[0] != OURS))
    lines = ["| row | attn | of limit | " + " | ".join(peers)
             + " | error | best peer's |",
             "|---|" + "---:|" * (4 + len(peers))]
    for o in outcomes:
        ours = o.times.get(OURS)
        cells = [o.row.name, "-" if ours is None else duration(ours),
                 number(ours and o.fraction(OURS), ".2f")]
        cells += ["-" if ours is None or name not in o.times
                  else f"{o.times[name] / ours:.2f}" for name in peers]
        cells += [number(o.error(OURS), ".1e"),
                  number(o.best and o.error(o.best[0]), ".1e")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def gradients(outcomes, peer="torch"):
    """Our errors over a peer's, largest and rms, of rows that have both."""
    lines = []
    for o in outcomes:
        ours, theirs = o.errors.get(OURS), o.errors.get(peer)
        if "dq" not in o.row.results or not ours or not theirs:
            continue
        lines.append(f"{o.row.name:26} " + "  ".join(
            f"{key} {ours[key].largest:.1e} {ours[key].rms:.1e} "
            f"({ours[key].largest / theirs[key].largest:.2f} "
            f"{ours[key].rms / theirs[key].rms:.2f})" for key in ours))
    if lines:
        lines.insert(0, "errors of gradients, largest and rms (both over "
                        f"{peer}'s)")
    return "\n".join(lines)


def summary(outcomes):
    """Who is slower than the best peer, and the medians."""
    lines = []
    for what, chosen in (("forward", [o for o in outcomes
                                      if o.row.kind == "forward"]),
                         ("gradients", [o for o in outcomes
                                        if o.row.kind != "forward"])):
        ratios = {o.row.name: o.ratio for o in chosen if o.ratio is not None}
        if not ratios:
            continue
        middle, slower = verdict(ratios)
        lines.append(f"{what}: {len(ratios)} rows with a peer, median "
                     f"{middle:.2f} x the best of them; slower: "
                     f"{', '.join(slower) or 'none'}")
    return "\n".join(lines)


def rates(outcomes):
    """{limit: median rate over the rows}."""
    found = {}
    for o in outcomes:
        if o.rate:
            found.setdefault(o.row.limit, []).append(o.rate)
    return {name: statistics.median(values) for name, values in found.items()}


def curves(outcomes, title):
    """The text that curves.c draws: speed against length."""
    drawn = [o for o in outcomes if o.row.curve and o.rate]
    names = [name for o in drawn for name in o.times]
    lines = [f"title\t{title}",
             "note\tGFLOP/s against length: " + describe(drawn[0].row).replace(
                 f"{drawn[0].row.len_q} x {drawn[0].row.len_k}", "N x N"),
             "points\t" + "\t".join(str(o.row.len_q) for o in drawn),
             "curve\tmultiply-add limit\t" + "\t".join(
                 f"{o.rate * 1e-9:.6g}" for o in drawn)]
    for name in dict.fromkeys(names):
        lines.append(f"curve\t{name}\t" + "\t".join(
            f"{o.row.work / o.times[name] * 1e-9:.6g}" if name in o.times
            else "nan" for o in drawn))
    return "\n".join(lines) + "\n"
