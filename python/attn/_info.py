# SPDX-License-Identifier: Apache-2.0
"""What this build and this machine are."""

from typing import Any

from . import _core


class Info(dict[str, Any]):
    """Facts by name; as text, a table."""

    def __str__(self) -> str:
        head = [f"attn {self['version']}, level {self['isa']}, "
                f"{self['threads']} threads, draws {self['draws']}",
                self["cpu"].rstrip(), ""]
        return "\n".join(head) + "\n" + self["kernels"].rstrip()


def info() -> Info:
    """The version, the processor, and every kernel with whether it runs here.

    Returns
    -------
    Info
        A dict of ``version``, ``isa`` (the level in use, which
        ``ATTN_ISA=scalar|avx2|avx512|amx`` in the environment lowers),
        ``threads`` (what threads=None means), ``draws`` (the formats of
        ``attn.lessons.show``), ``cpu`` and ``kernels`` (text).
        ``print`` shows it as a table.

    Examples
    --------
    >>> import attn
    >>> attn.info()["version"]
    '0.1.0'
    """
    return Info(_core.facts())
