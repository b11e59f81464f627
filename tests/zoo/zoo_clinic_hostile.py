# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: no attention at all.
import os
import sys
import time
import numpy as np


def raises(q, k, v):
    raise ValueError("heads do not divide the width")


def sleeps(q, k, v):
    while True:
        time.sleep(0.05)


def five_axes(q, k, v):
    return np.zeros((3, 1, 4, 1, 5)) + q.sum()


def chatters(q, k, v):
    for n in range(20000):
        print("step", n, "attention is all you need", flush=False)
    return None


def quits(q, k, v):
    sys.stderr.write("fatal\n")
    os._exit(0)


def words(q, k, v):
    return "softmax(qk)v"


def undefined(q, k, v):
    s = q @ k.swapaxes(-1, -2)
    return softmax(s) @ v


ZOO = [
    ("raises", "unusable"),
    ("five_axes", "unusable"),
    ("chatters", "unusable"),
    ("quits", "unusable"),
    ("words", "unusable"),
    ("undefined", "unusable"),
    ("sleeps", "unusable", ["--timeout=2"]),
]
