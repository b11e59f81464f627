# SPDX-License-Identifier: Apache-2.0
"""What the tests compare with: the formula of attn.attention, written out in
extended precision, and how far off a computation in a given precision may be.

Nothing here is taken from the package. The bounds are those of
docs/numerics.md in their worst case, counted operation by operation; with
u = the unit roundoff, d = D, n = Lk and per row S = the largest of
|scale| sum |q||k| + |bias| + |alibi| (or |sink|):

    p      E p, E = (4 (d + 4) S + 2 n + 16) u
    lse    ((d + 5) S + n + 8 + 2 |lse|) u
    o      (E + (n + 4) u) sum p f |v|
    ds     C p (2 R + |dlse|), C = 3 E + (2 dv + n + 16) u + softcap's
    sums   of N such terms add (N + 4) u

A weight below the smallest normal number is 0 (least), so each pair may lose
that much of a weight: least |v| of o, least |do| of dv, least (2 R + |dlse|) of
ds.
"""

from dataclasses import dataclass, field

import numpy as np

REAL = np.longdouble

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-24,
            "float16": 2.0**-24}
# What holding a weight in the type of the inputs costs, and half an ulp of
# the type that the result is rounded to.
HELD = {"float64": 0, "float32": 0, "bfloat16": 2.0**-9, "float16": 2.0**-12}
HALF_ULP = {"float64": 0, "float32": 0, "bfloat16": 2.0**-9,
            "float16": 2.0**-12}
# Below these, results are subnormal: rounded to, or flushed below, this much.
TINY = {"float64": 2.0**-1022, "float32": 2.0**-126, "bfloat16": 2.0**-126,
        "float16": 2.0**-25}
# The smallest weight that is not 0.
LEAST_WEIGHT = {"float64": 2.0**-1022, "float32": 2.0**-126,
                "bfloat16": 2.0**-126, "float16": 2.0**-126}


@dataclass
class Problem:
    """One attention, 4-D arrays as attn.attention takes them."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    keywords: dict = field(default_factory=dict)

    def __post_init__(self):
        self.batch, self.heads, self.len_q, self.dim = self.q.shape
        self.heads_kv, self.len_k = self.k.shape[1:3]
        self.dim_v = self.v.shape[3]
        self.group = self.heads // max(self.heads_kv, 1)
        self.u = ROUNDOFF[self.q.dtype.name]
        self.held = HELD[self.q.dtype.name]
        self.half_ulp = HALF_ULP[self.q.dtype.name]

    def get(self, name, default=None):
        return self.keywords.get(name, default)

    @property
    def scale(self):
        if self.get("scale") is not None:
            return REAL(self.get("scale"))
        return 1 / np.sqrt(REAL(self.dim)) if self.dim else REAL(1)

    def wide(self, array, shape=None):
        """As longdouble, broadcast from the right."""
        array = np.asarray(array, dtype=REAL)
        return array if shape is None else np.broadcast_to(array, shape)

    def heads_of(self, array):
        """KV heads repeated for the query heads that share them."""
        return np.repeat(self.wide(array), self.group, axis=1)

    def offsets(self):
        """(B,): the position of query 0 on the key axis."""
        given = self.get("q_offset")
        if given is not None:
            return np.broadcast_to(np.asarray(given), (self.batch,))
        causal = self.get("causal", False)
        if causal in ("top_left", True):
            return np.zeros(self.batch, int)
        if causal is False and self.len_q == self.len_k:
            return np.zeros(self.batch, int)
        return self.lengths() - self.len_q

    def lengths(self):
        given = self.get("k_lengths")
        return np.broadcast_to(
            np.asarray(self.len_k if given is None else given), (self.batch,))

    def slopes(self):
        given = self.get("alibi_slopes")
        if given is None:
            return np.zeros((1, 1, 1, 1), REAL)
        given = self.wide(given)
        return given.reshape((-1, self.heads, 1, 1))


def positions(p):
    i = np.arange(p.len_q)[None, None, :, None]
    j = np.arange(p.len_k)[None, None, None, :]
    return p.offsets()[:, None, None, None] + i, j


def visible(p):
    """(B, H, Lq, Lk) bool: which pairs attend."""
    at, j = positions(p)
    shape = (p.batch, p.heads, p.len_q, p.len_k)
    seen = np.ones(shape, bool)
    if p.get("attn_mask") is not None:
        seen &= np.broadcast_to(p.get("attn_mask"), shape)
    if p.get("attn_bias") is not None:
        seen &= np.broadcast_to(p.wide(p.get("attn_bias")) > -np.inf, shape)
    if p.get("causal", False) is not False:
        seen &= j <= at
    left, right = p.get("window") or (-1, -1)
    if left >= 0:
        seen &= j >= at - left
    if right >= 0:
        seen &= j <= at + right
    return seen & (j < p.lengths()[:, None, None, None])


def scores(p):
    """(raw, softcapped, biased) scores; the last -inf where hidden."""
    shape = (p.batch, p.heads, p.len_q, p.len_k)
    raw = p.scale * np.einsum("bhid,bhjd->bhij", p.wide(p.q), p.heads_of(p.k))
    cap = p.get("softcap") or 0.0
    capped = cap * np.tanh(raw / REAL(cap)) if cap else raw
    at, j = positions(p)
    biased = capped - p.slopes() * abs(at - j)
    if p.get("attn_bias") is not None:
        biased = biased + p.wide(p.get("attn_bias"), shape)
    return raw, capped, np.where(visible(p), biased, -np.inf)


def score_size(p):
    """The sum of the sizes that make each score, (B, H, Lq, Lk)."""
    at, j = positions(p)
    size = abs(p.scale) * np.einsum("bhid,bhjd->bhij", abs(p.wide(p.q)),
                                    abs(p.heads_of(p.k)))
    size = size + abs(p.slopes()) * abs(at - j)
    if p.get("attn_bias") is not None:
        bias = abs(p.wide(p.get("attn_bias")))
        size = size + np.where(np.isfinite(bias), bias, 0)
    return size


def row_size(p):
    """S of each row, (B, H, Lq, 1)."""
    size = np.where(visible(p), score_size(p), 0)
    size = size.max(axis=-1, keepdims=True, initial=0)
    if p.get("sinks") is not None:
        size = np.maximum(size, abs(p.wide(p.get("sinks")))[None, :, None,
                                                            None])
    return size


def softmax(p, biased):
    """weights, lse (B, H, Lq), and the weight that the sink took."""
    most = biased.max(axis=-1, keepdims=True, initial=-np.inf)
    sink = np.full((1, p.heads, 1, 1), -np.inf, REAL)
    if p.get("sinks") is not None:
        sink = p.wide(p.get("sinks"))[None, :, None, None]
    most = np.maximum(most, sink)
    safe = np.where(most > -np.inf, most, 0)
    e = np.exp(biased - safe)
    to_sink = np.exp(sink - safe)
    total = e.sum(axis=-1, keepdims=True) + to_sink
    some = np.where(total > 0, total, 1)
    lse = np.where(total > 0, safe + np.log(some), -np.inf)
    return e / some, lse[..., 0], to_sink / some


@dataclass
class Bounded:
    """A result and its bound, element by element."""

    value: np.ndarray
    bound: np.ndarray


def dropout_factor(p, mask):
    """What a weight is multiplied with: 0 or 1 / (1 - dropout_p)."""
    if mask is None:
        return REAL(1)
    keep = 1 - REAL(p.get("dropout_p"))
    return np.where(mask, 1 / keep if keep else 0, 0)


def forward(p, mask=None):
    """o, lse, weights, entropy, each with its bound; `mask`: of dropout."""
    _, _, biased = scores(p)
    w, lse, _ = softmax(p, biased)
    f = dropout_factor(p, mask)
    v = p.heads_of(p.v)
    n, size = p.len_k, row_size(p)
    error = (4 * (p.dim + 4) * size + 2 * n + 16) * p.u
    o = np.einsum("bhij,bhjd->bhid", w * f, v)
    mass = np.einsum("bhij,bhjd->bhid", w * f, abs(v))
    lost = np.einsum("bhij,bhjd->bhid", least_weights(p, w) * f, abs(v))
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(w > 0, np.log(np.where(w > 0, w, 1)), 0)
    known = np.where(np.isfinite(lse), abs(lse), 0)
    return {
        "o": Bounded(o, (error + (n + 4) * p.u + p.held) * mass
                     + lost + p.half_ulp * abs(o) + tiny(p)),
        "lse": Bounded(lse, ((p.dim + 5) * size[..., 0] + n + 8 + 2 * known)
                       * p.u),
        "weights": Bounded(w, error * w + min(tiny(p), TINY["float32"])),
        "entropy": Bounded(-(w * log).sum(axis=-1),
                           ((error + (n + 4) * p.u) * w
                            * (1 + 2 * abs(log))).sum(axis=-1)),
    }


def tiny(p):
    return TINY[p.q.dtype.name]


def least_weights(p, w):
    """What a weight may lose by being 0, for each that is not 0 anyway."""
    return np.where(w > 0, LEAST_WEIGHT[p.q.dtype.name], 0)


def backward(p, do, dlse=None, mask=None):
    """dq, dk, dv, dbias, dsinks, dslopes with their bounds."""
    raw, capped, biased = scores(p)
    w, lse, to_sink = softmax(p, biased)
    f = dropout_factor(p, mask)
    q, k, v = p.wide(p.q), p.heads_of(p.k), p.heads_of(p.v)
    do = p.wide(do)
    by_lse = np.zeros(lse.shape, REAL) if dlse is None else p.wide(dlse)
    o = np.einsum("bhij,bhjd->bhid", w * f, v)
    dp = f * np.einsum("bhid,bhjd->bhij", do, v)
    delta = (do * o).sum(axis=-1, keepdims=True) - by_lse[..., None]
    ds = w * (dp - delta)

    reach = np.where(w > 0, abs(f * np.einsum("bhid,bhjd->bhij", abs(do),
                                              abs(v))), 0)
    gain = 2 * reach.max(axis=-1, keepdims=True, initial=0) \
        + abs(by_lse[..., None])
    size, n = row_size(p), p.len_k
    error = (4 * (p.dim + 4) * size + 2 * n + 16) * p.u
    per_pair = 3 * error + (2 * p.dim_v + n + 16) * p.u + 2 * p.held
    cap = p.get("softcap") or 0.0
    through = ds
    if cap:
        per_pair = per_pair + (4 + 2 * (p.dim + 4) * size / cap) * p.u
        through = ds * (1 - (capped / cap) ** 2)
    # Sums are over at most this many terms.
    most = max(p.len_q, p.len_k) * max(p.group, p.batch) * p.heads
    pair = ((per_pair + (most + 4) * p.u) * w + least_weights(p, w)) * gain
    at, j = positions(p)
    distance = abs(at - j)
    c = abs(p.scale)

    def rounded(value, bound, like=p.q):
        half_ulp = HALF_ULP[np.asarray(like).dtype.name] or ROUNDOFF[
            np.asarray(like).dtype.name]
        return Bounded(value, bound + half_ulp * abs(value) + tiny(p))

    def shared(x):  # summed over the query heads that share a KV head
        return x.reshape((p.batch, p.heads_kv, p.group) + x.shape[2:]).sum(2)

    mass_v = np.einsum("bhij,bhid->bhjd",
                       ((error + (most + 4) * p.u + p.held) * w
                        + least_weights(p, w)) * f, abs(do))
    out = {
        "dq": rounded(p.scale * np.einsum("bhij,bhjd->bhid", through, k),
                      c * np.einsum("bhij,bhjd->bhid", pair, abs(k))),
        "dk": rounded(
            shared(p.scale * np.einsum("bhij,bhid->bhjd", through, q)),
            shared(c * np.einsum("bhij,bhid->bhjd", pair, abs(q)))),
        "dv": rounded(shared(np.einsum("bhij,bhid->bhjd", w * f, do)),
                      shared(mass_v)),
    }
    if p.get("attn_bias") is not None:
        shape = np.shape(p.get("attn_bias"))
        out["dbias"] = rounded(fold(ds, shape), fold(pair, shape),
                               p.get("attn_bias"))
    if p.get("sinks") is not None:
        lse_error = ((p.dim + 5) * size + n + 8 + 2 * abs(lse[..., None])) \
            * p.u
        value = to_sink * -delta
        bound = (per_pair + lse_error + (most + 4) * p.u) * to_sink * gain
        out["dsinks"] = rounded(value.sum(axis=(0, 2, 3)),
                                bound.sum(axis=(0, 2, 3)), p.get("sinks"))
    if p.get("alibi_slopes") is not None:
        axes = (2, 3) if np.ndim(p.get("alibi_slopes")) == 2 else (0, 2, 3)
        out["dslopes"] = rounded(-(ds * distance).sum(axis=axes),
                                 (pair * distance).sum(axis=axes),
                                 p.get("alibi_slopes"))
    return out


def fold(x, shape):
    """Summed over the axes that an array of `shape` broadcast along."""
    x = x.sum(axis=tuple(range(4 - len(shape))))
    axes = tuple(a for a, n in enumerate(shape) if n == 1)
    return x.sum(axis=axes, keepdims=True)


def check(name, got, want):
    """Fail unless `got` lies within the bound everywhere."""
    got = np.asarray(got, dtype=REAL)
    assert got.shape == want.value.shape, (name, got.shape, want.value.shape)
    both_infinite = (got == want.value) & ~np.isfinite(want.value)
    with np.errstate(invalid="ignore"):
        off = np.where(both_infinite, 0, abs(got - want.value))
    wrong = ~(off <= want.bound)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{name}{list(map(int, at))}: {got[at]} is not within "
            f"{want.bound[at]:.3g} of {want.value[at]}; {wrong.sum()} of "
            f"{wrong.size} are off")
