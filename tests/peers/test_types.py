# SPDX-License-Identifier: Apache-2.0
"""The annotations of the package, checked by mypy as users' code is."""

import pathlib
import subprocess
import sys
import textwrap


# PyTorch's own annotations take half a minute to read: kept between runs.
CACHE = pathlib.Path(__file__).parents[2] / "build-peers" / "mypy"


def mypy(*words):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(CACHE), *words],
        text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_package_is_consistent():
    code, said = mypy("-p", "attn")
    assert code == 0, said


USE = """
    import numpy as np
    import attn
    from attn.lessons import attention
    from attn.torch import scaled_dot_product_attention

    q = np.zeros((2, 4, 3, 8))
    o = attn.attention(q, q, q, causal="top_left", window=(2, 0))
    g = attn.attention_vjp(q, q, q, sinks=[0.0] * 4)[1](o)
    print(g.dsinks, attn.lab("sharpen").rows, attention(q, q, q)[1])
    cache = attn.KVCache(2, 4, 16, 8, page_size=4)
    o = attn.decode(q, cache, softcap=2.0)
    print(scaled_dot_product_attention)
"""
WRONG = ["attn.attention(q, q, q, causal='topleft')",
         "attn.attention(q, q, q, window=3)",
         "attn.weights(q, q, mode='prob')",
         "attn.attention_vjp(q, q, q, is_causal=True)",
         "attn.decode(q, q)",
         "attn.lab('sharpen').column"]


def test_users_code(tmp_path):
    """Right use passes; each wrong use is found, on its line."""
    source = textwrap.dedent(USE) + "\n".join(WRONG) + "\n"
    path = tmp_path / "use.py"
    path.write_text(source)
    code, said = mypy(str(path))
    first = source.count("\n") - len(WRONG) + 1
    found = {int(line.split(":")[1]) for line in said.splitlines()
             if ": error:" in line}
    assert code == 1 and found == set(range(first, first + len(WRONG))), said
