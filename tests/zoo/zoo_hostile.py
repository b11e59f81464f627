# SPDX-License-Identifier: Apache-2.0
#
# What must not bring the doctor down.
import os
import time

import numpy as np


def right(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def zeros(q, k, v):
    return np.zeros(q.shape[:-1] + v.shape[-1:])


def constant(q, k, v):
    return np.full(q.shape[:-1] + v.shape[-1:], 0.37)


def nans(q, k, v):
    return right(q, k, v) * np.nan


def infinities(q, k, v):
    return right(q, k, v) + np.inf


def random(q, k, v):
    return np.random.normal(size=q.shape[:-1] + v.shape[-1:])


LAST = []


def last_call(q, k, v):
    LAST.append(right(q, k, v))
    if len(LAST) > 1 and LAST[-2].shape == LAST[-1].shape:
        return LAST[-2]
    return LAST[-1]


def first_call(q, k, v, cache={}):
    return cache.setdefault(q.shape + v.shape, right(q, k, v))


def overwrites(q, k, v):
    o = right(q, k, v)
    q[...] = 0
    return o


def raises(q, k, v):
    raise RuntimeError("not today")


def raises_sometimes(q, k, v):
    if q.ndim == 4 and q.shape[-2] == 9:
        raise ValueError("nine")
    return right(q, k, v)


def nothing(q, k, v):
    pass


def text(q, k, v):
    return "attention"


def ragged(q, k, v):
    return [[1.0], [2.0, 3.0]]


def one_number(q, k, v):
    return 1.0


def wrong_shape(q, k, v):
    return right(q, k, v)[..., :1]


def too_large(q, k, v):
    return np.zeros((4096, 4096))


def complex_numbers(q, k, v):
    return right(q, k, v) + 0j


def no_arguments():
    return 1


def prints(q, k, v):
    print("hello" * 1000)
    os.write(1, b"raw bytes\n" * 100)
    return right(q, k, v)


def reads_stdin(q, k, v):
    try:
        input()
    except EOFError:
        pass
    return right(q, k, v)


def exits(q, k, v):
    os._exit(3)


def sys_exit(q, k, v):
    raise SystemExit(0)


def dies(q, k, v):
    os.kill(os.getpid(), 11)


def slow(q, k, v):
    time.sleep(0.05)
    return right(q, k, v)


def views(q, k, v):
    return np.broadcast_to(right(q, k, v), (1,) + right(q, k, v).shape)[0]


def huge_and_right(q, k, v):
    return [right(q, k, v), {"extra": object()}.get("none")]


ZOO = [
    ("right", "correct"),
    ("zeros", "output-constant"),
    ("constant", "output-constant"),
    ("nans", "output-nan"),
    ("infinities", "output-nan"),
    ("random", "dropout-not-off|state-kept"),
    ("last_call", "state-kept"),
    ("first_call", "state-kept"),
    ("overwrites", "inputs-mutated"),
    ("raises", "unusable"),
    ("raises_sometimes", "correct"),
    ("nothing", "unusable"),
    ("text", "unusable"),
    ("ragged", "unusable"),
    ("one_number", "unusable"),
    ("wrong_shape", "unusable"),
    ("too_large", "unusable"),
    ("complex_numbers", "unusable"),
    ("no_arguments", "unusable"),
    ("prints", "correct"),
    ("reads_stdin", "correct"),
    ("exits", "unusable"),
    ("sys_exit", "unusable"),
    ("dies", "unusable"),
    ("slow", "correct"),
    ("views", "correct"),
]
