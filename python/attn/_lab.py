# SPDX-License-Identifier: Apache-2.0
"""The classic experiments of `attn lab`."""

from collections.abc import Sequence
from typing import Any, overload

from . import _core
from ._keywords import Array, whole


class LabTable:
    """What an experiment found; as text, its table and its conclusion.

    Attributes
    ----------
    title, conclusion
        Text.
    columns, rows
        Names, and tuples of numbers and texts.
    matrices, curves
        What there is to draw: {title: array}.
    """

    def __init__(self, found: dict[str, Any]):
        self.title: str = found["title"]
        self.conclusion: str = found["conclusion"]
        self.columns: tuple[str, ...] = found["columns"]
        self.rows: list[tuple[Any, ...]] = found["rows"]
        self.matrices = {title: values for title, values, _
                         in found["matrices"]}
        self.curves = dict(found["curves"])

    def __str__(self) -> str:
        cells = [self.columns] + [
            tuple(x if isinstance(x, str) else f"{x:.6g}" for x in row)
            for row in self.rows]
        widths = [max(len(row[i]) for row in cells)
                  for i in range(len(self.columns))]
        lines = ["  ".join(x.rjust(n) for x, n in zip(row, widths)).rstrip()
                 for row in cells]
        return "\n".join([self.title, "", *lines, "", self.conclusion])

    def __repr__(self) -> str:
        return f"<LabTable: {self.title}, {len(self.rows)} rows>"


class Experiments(dict[str, str]):
    """{name: what it does}; as text, a list."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {about}"
                         for name, about in self.items())


@overload
def lab(name: None = None) -> Experiments: ...
@overload
def lab(name: str, *, q: Array | None = None, k: Array | None = None,
        v: Array | None = None, x: Array | None = None,
        w_q: Array | None = None, w_k: Array | None = None,
        w_v: Array | None = None, tokens: Sequence[str] | None = None,
        seed: int = 0, length: int = 0, dim: int = 0,
        heads: int = 0) -> LabTable: ...
def lab(name: str | None = None, *, q: Array | None = None,
        k: Array | None = None, v: Array | None = None,
        x: Array | None = None, w_q: Array | None = None,
        w_k: Array | None = None, w_v: Array | None = None,
        tokens: Sequence[str] | None = None, seed: int = 0, length: int = 0,
        dim: int = 0, heads: int = 0) -> LabTable | Experiments:
    """Run one of the classic experiments: change one thing, measure what that
    does, say what it teaches.

    Parameters
    ----------
    name
        None: the list of experiments.
    q, k, v
        (L, D), float64 or float32; or x (L, width) with any of w_q, w_k, w_v
        (width, D). What is absent is drawn from a normal distribution.
    tokens
        Names of the rows.
    seed, length, dim, heads
        Of random arrays; 0 = what suits the experiment.

    Returns
    -------
    LabTable

    Examples
    --------
    >>> import attn
    >>> print(str(attn.lab()).splitlines()[0].split()[0] in attn.lab())
    True
    >>> table = attn.lab("sharpen")
    >>> len(table.columns) == len(table.rows[0])
    True
    """
    if name is None:
        return Experiments(_core.lab_list())
    if name not in _core.lab_list():
        raise ValueError(f"name: {name!r} is no experiment; they are "
                         f"{', '.join(_core.lab_list())}")
    arrays = {key: value for key, value in
              dict(q=q, k=k, v=v, x=x, w_q=w_q, w_k=w_k, w_v=w_v).items()
              if value is not None}
    if not 0 <= whole("seed", seed) < 2**64:
        raise ValueError(f"seed: must be 0 to 2^64 - 1, got {seed}")
    numbers = dict(seed=seed, length=length, dim=dim, heads=heads)
    return LabTable(_core.lab(name, arrays, [str(t) for t in tokens or []],
                              *(whole(*pair) for pair in numbers.items())))
