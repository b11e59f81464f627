# SPDX-License-Identifier: Apache-2.0
#
# Kind: softmax alone.
import math

import numpy as np


def right_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def loop_softmax(x):
    m = max(x)
    e = [math.exp(v - m) for v in x]
    return [v / sum(e) for v in e]


def log_softmax_exp(x):
    m = x.max(-1, keepdims=True)
    return np.exp(x - m - np.log(np.exp(x - m).sum(-1, keepdims=True)))


def global_max_softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum(-1, keepdims=True)


def float_softmax(x):
    x = x.astype(np.float32)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def naive_softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def naive_softmax_32(x):
    e = np.exp(x.astype(np.float32))
    return e / e.sum(-1, keepdims=True)


def first_axis_softmax(x):
    e = np.exp(x - x.max(0, keepdims=True))
    return e / e.sum(0, keepdims=True)


def axis_ignored_softmax(x, axis=-1):
    e = np.exp(x - x.max())
    return e / e.sum()


def keepdims_softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum(-1)


def keepdims_both_softmax(x):
    e = np.exp(x - x.max(-1))
    return e / e.sum(-1)


def twice_softmax(x):
    return right_softmax(right_softmax(x))


def unnormalised_softmax(x):
    return np.exp(x - x.max(-1, keepdims=True))


def linear_softmax(x):
    return x / x.sum(-1, keepdims=True)


def identity_softmax(x):
    return x


def one_softmax(x):
    m = np.maximum(x.max(-1, keepdims=True), 0)
    e = np.exp(x - m)
    return e / (e.sum(-1, keepdims=True) + np.exp(-m))


def eps_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-4)


def clamped_softmax(x):
    e = np.exp(x - np.maximum(x.max(-1, keepdims=True), 0))
    return e / e.sum(-1, keepdims=True)


def in_place_softmax(x):
    x -= x.max(-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(-1, keepdims=True)
    return x


ZOO = [
    ("right_softmax", "correct"),
    ("loop_softmax", "correct"),
    ("log_softmax_exp", "correct"),
    ("global_max_softmax", "correct"),
    ("float_softmax", "correct"),
    ("naive_softmax", "softmax-no-max"),
    ("naive_softmax_32", "softmax-no-max"),
    ("first_axis_softmax", "softmax-wrong-axis"),
    ("axis_ignored_softmax", "softmax-joint-axes"),
    ("keepdims_softmax", "softmax-keepdims-forgotten"),
    ("keepdims_both_softmax", "softmax-keepdims-forgotten"),
    ("twice_softmax", "softmax-twice"),
    ("unnormalised_softmax", "softmax-missing"),
    ("linear_softmax", "softmax-missing"),
    ("identity_softmax", "softmax-missing"),
    ("one_softmax", "softmax-extra-mass"),
    ("eps_softmax", "softmax-extra-mass"),
    ("clamped_softmax", "online-max-stale"),
    ("in_place_softmax", "inputs-mutated"),
]
