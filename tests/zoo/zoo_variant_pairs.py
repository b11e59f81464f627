# SPDX-License-Identifier: Apache-2.0
#
# Two bugs of zoo_variants at once, drawn at random but for those that touch
# one line or hide each other.
import itertools
import random

from zoo_variants import BUGS, broken

ALONE = {"values reversed", "nan rows", "mean rows", "offset forgotten",
         "offset plus one", "scale cubed", "causal from top"}
SAME = [{"scale by v"}, {"bias"}, {"cap"}, {"alibi", "no alibi"},
        {"two", "one", "causal", "never", "mask instead"},
        {"window", "no left", "no right", "left", "right"},
        {"kv"}, {"mask", "fill", "no mask"}, {"length", "no lengths"},
        {"plus"}, {"sink", "no sink"}]


def kind(name):
    return next((n for n, words in enumerate(SAME)
                 if any(name.startswith(w) for w in words)), -1)


names = [n for n in BUGS if n not in ALONE]
pairs = [(a, b) for a, b in itertools.combinations(names, 2)
         if kind(a) != kind(b)]
random.Random(7).shuffle(pairs)
ZOO = []
for a, b in pairs[:40]:
    title = (a + "_and_" + b).replace(" ", "_").replace("-", "minus_")
    globals()[title] = broken(a, b)
    ZOO.append((title, BUGS[a] + " + " + BUGS[b], ["--expect="]))
