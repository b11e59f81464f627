# SPDX-License-Identifier: Apache-2.0
"""The doctor: names the bug in anybody's attention."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, _subject

KINDS = ("auto", "attention", "multi_head", "rope", "softmax", "backward",
         "decode", "merge")
DTYPES = {"float64": 1, "float32": 2, "float16": 4}


@dataclass(frozen=True)
class Finding:
    """A fault, or a limit of right code."""

    id: str
    """One of the names of `attn doctor --list`, such as "scale-missing"."""
    says: str
    """The diagnosis, one or two sentences."""
    fix: str
    """One line."""
    where: str
    """"forward", "backward", or which calls."""
    evidence: str
    """Numbers."""
    repro: str
    """The smallest question that shows it."""
    also: str
    """Other ids that fit as well, or ""."""


class Report:
    """What the doctor found.

    Attributes
    ----------
    verdict
        "correct", "fault", "undecided" or "unusable".
    reason
        Of the last two; else "".
    faults, limits
        Lists of Finding, the likeliest first. A limit is where right code
        stops being right; it does not change the verdict.
    spec
        What was found out: {"scale": "1/sqrt(head_dim)", ...}.
    subject, kind
        What was examined, and as what.
    """

    def __init__(self, text: str, found: str):
        self._text = text
        self._json = found
        data = json.loads(found)
        self.verdict: str = data["verdict"]
        self.reason: str = data["reason"]
        self.faults = [Finding(**f) for f in data["faults"]]
        self.limits = [Finding(**f) for f in data["limits"]]
        self.spec: dict[str, str] = data["spec"]
        self.subject: str = data["subject"]
        self.kind: str = data["kind"]

    def text(self) -> str:
        """As a good colleague would say it."""
        return self._text

    def json(self) -> str:
        """One JSON object, whose schema docs/doctor.md describes."""
        return self._json

    def __str__(self):
        return self._text

    def __repr__(self):
        ids = ", ".join(f.id for f in self.faults)
        return f"<Report: {self.verdict}{': ' if ids else ''}{ids}>"


# -------------------------------------------------------------- expectation

def word_of(value: Any) -> str:
    """A value as the words of `attn doctor --expect` have it."""
    if isinstance(value, (tuple, list, np.ndarray)) or \
            hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        return ":".join(repr(x) for x in np.asarray(value).ravel().tolist())
    return str(value)


def words_of(expect: Mapping[str, Any] | None) -> str | None:
    if expect is None:
        return None
    return ",".join(f"{name}={word_of(value)}"
                    for name, value in expect.items() if value is not None)


# --------------------------------------------------------------------- call

def name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def answering(fn: Callable[..., Any]) -> tuple[bytes, Callable[..., bytes]]:
    """The first message of a function, and what answers all others."""
    callee = _subject.Callee(fn)

    def answer(data: bytes) -> bytes:
        with np.errstate(all="ignore"):
            try:
                return callee.answer(data)
            except Exception as error:  # a refusal; not Ctrl-C
                return _subject.refusal(error)

    return _subject.hello(fn), answer


def doctor(fn: Callable[..., Any], expect: Mapping[str, Any] | None = None, *,
           kind: str = "auto", layout: str | None = None,
           dtype: Any = "float64", seed: int = 0,
           seconds: float = 4.0) -> Report:
    """Examine somebody's attention: say which attention it is and, if it is
    wrong, name the bug.

    Parameters
    ----------
    fn
        A function (q, k, v, ...) of NumPy arrays, PyTorch tensors or JAX
        arrays; further parameters are recognised by their names (mask, bias,
        scale, causal, window, softcap, alibi_slopes, sinks, k_lengths and
        their usual synonyms). It returns o, (o, weights) or (o, lse).
    expect
        What it is meant to compute, in the words of `attn.attention`, with
        mask_true ("keep", "drop", "add") and empty_rows ("zero", "nan",
        "any"). {} means the defaults. None: find out, and call a fault only
        what no sane attention does.
    kind
        "attention"; "multi_head" fn(x, w_q, w_k, w_v, w_o, n_heads); "rope"
        fn(x, positions); "softmax" fn(x); "backward" fn(do, q, k, v) -> (dq,
        dk, dv); "decode" fn(q, k_cache, v_cache, cache_len); "merge" fn(o1,
        lse1, o2, lse2). "auto" guesses from the names.
    layout
        "bhsd", "bshd", "hsd", "shd", "sd", "bsd", "bse", "se", "bhds",
        "hds", "bds", "ds", "sbhd", "sbd" or "sbe"; else found by trying.
    dtype
        Of the arrays that it gets: float64, float32 or float16.
    seed
        Of the numbers in them.
    seconds
        About what its calls may take together.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np, attn
    >>> def mine(q, k, v):
    ...     s = q @ np.swapaxes(k, -1, -2)
    ...     e = np.exp(s - s.max(-1, keepdims=True))
    ...     return e / e.sum(-1, keepdims=True) @ v
    >>> report = attn.doctor(mine)
    >>> report.verdict, report.faults[0].id
    ('fault', 'scale-missing')
    """
    if kind not in KINDS:
        raise ValueError(f"kind: '{kind}' is none of {', '.join(KINDS)}")
    wanted = str(dtype).removeprefix("torch.") \
        if not isinstance(dtype, (type, np.dtype)) else np.dtype(dtype).name
    if wanted not in DTYPES:
        raise TypeError(f"dtype: '{wanted}' is none of {', '.join(DTYPES)}")
    hello, answer = answering(fn)
    return Report(*_core.doctor(name_of(fn), hello, answer, KINDS.index(kind),
                                layout, DTYPES[wanted], seed,
                                words_of(expect), seconds))
