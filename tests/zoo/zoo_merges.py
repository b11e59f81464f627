# SPDX-License-Identifier: Apache-2.0
#
# Kind: merging two partial results by their log-sum-exp.
import numpy as np


def right(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    m = np.where(np.isinf(m), 0, m)
    w1, w2 = np.exp(lse1 - m), np.exp(lse2 - m)
    t = w1 + w2
    s = np.where(t == 0, 1, t)
    o = (o1 * w1[..., None] + o2 * w2[..., None]) / s[..., None]
    with np.errstate(divide="ignore"):
        return o, m + np.log(t)


def right_sigmoid(o1, lse1, o2, lse2):
    w = 1 / (1 + np.exp(lse2 - lse1))[..., None]
    return o1 * w + o2 * (1 - w)


def right_logaddexp(o_a, lse_a, o_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return (o_a * np.exp(lse_a - lse)[..., None]
            + o_b * np.exp(lse_b - lse)[..., None]), lse


def right_columns(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    a, b = np.exp(lse1 - m), np.exp(lse2 - m)
    if a.shape[-1] != 1:
        raise ValueError("lse has shape (..., 1)")
    return (a * o1 + b * o2) / (a + b), m + np.log(a + b)


def base_two(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    w1, w2 = np.exp2(lse1 - m)[..., None], np.exp2(lse2 - m)[..., None]
    return (o1 * w1 + o2 * w2) / (w1 + w2)


def average(o1, lse1, o2, lse2):
    return (o1 + o2) / 2, np.logaddexp(lse1, lse2)


def swapped(o1, lse1, o2, lse2):
    w = 1 / (1 + np.exp(lse1 - lse2))[..., None]
    return o1 * w + o2 * (1 - w)


def linear(o1, lse1, o2, lse2):
    w = (lse1 / (lse1 + lse2))[..., None]
    return o1 * w + o2 * (1 - w)


def added(o1, lse1, o2, lse2):
    return o1 + o2


def overflow(o1, lse1, o2, lse2):
    w1, w2 = np.exp(lse1)[..., None], np.exp(lse2)[..., None]
    return (o1 * w1 + o2 * w2) / (w1 + w2)


def larger(o1, lse1, o2, lse2):
    o, _ = right(o1, lse1, o2, lse2)
    return o, np.maximum(lse1, lse2)


def log_two(o1, lse1, o2, lse2):
    o, _ = right(o1, lse1, o2, lse2)
    return o, np.logaddexp2(lse1, lse2)


def empty_nan(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    w1, w2 = np.exp(lse1 - m)[..., None], np.exp(lse2 - m)[..., None]
    return (o1 * w1 + o2 * w2) / (w1 + w2)


ZOO = [
    ("right", "correct"),
    ("right", "correct", ["--expect="]),
    ("right_sigmoid", "correct"),
    ("right_logaddexp", "correct"),
    ("right_columns", "correct"),
    ("base_two", "lse-base-or-empty"),
    ("average", "lse-base-or-empty"),
    ("swapped", "lse-base-or-empty"),
    ("linear", "lse-base-or-empty"),
    ("added", "lse-base-or-empty"),
    ("overflow", "softmax-no-max"),
    ("larger", "lse-base-or-empty"),
    ("log_two", "lse-base-or-empty"),
    ("empty_nan", "lse-base-or-empty", ["--expect="]),
]
