# SPDX-License-Identifier: Apache-2.0
#
# Dropout that is on where nobody asks for it, and dropout that is not: by a
# default, a switch, a key, a mode of the module.
import numpy as np

rng = np.random.default_rng()


def weights(q, k):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def drop(p, rate, source=rng):
    if rate == 0:
        return p
    return np.where(source.random(p.shape) < rate, 0, p / (1 - rate))


def on_by_rate(query, key, value, attn_drop=0.1):
    return drop(weights(query, key), attn_drop) @ value


def on_rarely(q, k, v, drop_rate=0.01):
    return drop(weights(q, k), drop_rate) @ v


def on_by_flag(q, k, v, dropout=True):
    return drop(weights(q, k), 0.1 if dropout else 0) @ v


def on_with_a_seed(q, k, v, dropout_p=0.1):
    return drop(weights(q, k), dropout_p, np.random.RandomState(7)) @ v


def on_for_values(q, k, v, p_drop=0.25):
    return weights(q, k) @ drop(v, p_drop)


def on_by_row(q, k, v, p=0.5):
    out = np.zeros(q.shape[:-1] + v.shape[-1:])
    for at in np.ndindex(q.shape[:-1]):
        b = at[:-1]
        w = weights(q[at][None], k[b])[0]
        out[at] = drop(w, p) @ v[b]
    return out


def on_in_evaluation(q, k, v, dropout_rate=0.1, deterministic=True):
    return drop(weights(q, k), dropout_rate) @ v


def on_unless_asked(q, k, v, dropout_p=0.1, causal=False):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        n, m = s.shape[-2:]
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return drop(e / e.sum(axis=-1, keepdims=True), dropout_p) @ v


def on_in_a_layer(x, w_q, w_k, w_v, w_o, n_heads, dropout=0.1):
    b, n, _ = x.shape
    q, k, v = ((x @ w).reshape(b, n, n_heads, -1).swapaxes(1, 2)
               for w in (w_q, w_k, w_v))
    o = drop(weights(q, k), dropout) @ v
    return o.swapaxes(1, 2).reshape(b, n, -1) @ w_o


def on_and_unscaled(q, k, v, dropout_p=0.1):
    s = np.einsum("...id,...jd->...ij", q, k)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return drop(e / e.sum(axis=-1, keepdims=True), dropout_p) @ v


def off_by_switch(q, k, v, dropout_rate=0.1, deterministic=False):
    return drop(weights(q, k), 0 if deterministic else dropout_rate) @ v


def off_for_inference(q, k, v, drop_prob=0.3, inference=False):
    p = weights(q, k)
    return (p if inference else drop(p, drop_prob)) @ v


def off_without_a_key(query, key, value, dropout_rate=0.1, dropout_rng=None):
    p = weights(query, key)
    if dropout_rng is not None:
        p = drop(p, dropout_rate, dropout_rng)
    return p @ value


def off_by_default(q, k, v, dropout=0.0, training=True):
    return drop(weights(q, k), dropout if training else 0) @ v


def power_of_the_norm(q, k, v, p=2):
    s = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** (1 / p)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


class Module:
    def __init__(self, rate=0.1):
        self.rate = rate
        self.training = True

    def eval(self):
        self.training = False
        return self

    def forward(self, q, k, v):
        return drop(weights(q, k), self.rate if self.training else 0) @ v

    def __call__(self, q, k, v):
        return self.forward(q, k, v)


class Careless(Module):
    def forward(self, q, k, v):
        return drop(weights(q, k), self.rate) @ v


off_in_evaluation = Module()
off_in_its_method = Module().forward
on_all_the_time = Careless()

ZOO = [
    ("on_by_rate", "dropout-not-off"),
    ("on_rarely", "dropout-not-off"),
    ("on_by_flag", "dropout-not-off"),
    ("on_with_a_seed", "dropout-not-off"),
    ("on_for_values", "dropout-not-off"),
    ("on_by_row", "dropout-not-off"),
    ("on_in_evaluation", "dropout-not-off"),
    ("on_unless_asked", "dropout-not-off"),
    ("on_in_a_layer", "dropout-not-off"),
    ("on_all_the_time", "dropout-not-off"),
    ("on_and_unscaled", "dropout-not-off + scale-missing"),
    ("off_by_switch", "correct"),
    ("off_for_inference", "correct"),
    ("off_without_a_key", "correct"),
    ("off_by_default", "correct"),
    ("off_in_evaluation", "correct"),
    ("off_in_its_method", "correct"),
    ("power_of_the_norm", "correct"),
]
