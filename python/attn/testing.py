# SPDX-License-Identifier: Apache-2.0
"""For test suites: the diagnosis is the failure's message.

>>> import attn
>>> from attn.testing import assert_attention
>>> assert_attention(attn.attention, causal="bottom_right")
"""

from collections.abc import Callable
from typing import Any

from ._doctor import doctor

__all__ = ["assert_attention"]


def assert_attention(fn: Callable[..., Any], *, kind: str = "auto",
                     layout: str | None = None, dtype: Any = "float64",
                     seed: int = 0, seconds: float = 4.0,
                     **expect: Any) -> None:
    """Raise AssertionError with the doctor's diagnosis unless `fn` computes
    what `expect` says.

    Parameters
    ----------
    fn, kind, layout, dtype, seed, seconds
        As for `attn.doctor`.
    **expect
        What is meant: causal, window, scale, mask_true, empty_rows, ... What
        is not said is as `attn.attention` has it by default; so rows without
        a visible key must be 0, unless empty_rows="nan" or "any".
    """
    __tracebackhide__ = True
    report = doctor(fn, expect, kind=kind, layout=layout, dtype=dtype,
                    seed=seed, seconds=seconds)
    if report.verdict != "correct":
        raise AssertionError(report.text())
