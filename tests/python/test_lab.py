# SPDX-License-Identifier: Apache-2.0
"""attn.lab: every experiment runs, on random data and on given data."""

import numpy as np
import pytest

import attn

RNG = np.random.default_rng(90)


def test_list():
    found = attn.lab()
    assert "sharpen" in found and len(found) >= 8
    assert all(name in str(found) for name in found)


@pytest.mark.parametrize("name", attn.lab())
def test_every_experiment(name):
    table = attn.lab(name, seed=3)
    assert table.rows and table.conclusion and table.title
    assert all(len(row) == len(table.columns) for row in table.rows)
    text = str(table)
    assert table.conclusion in text and all(c in text for c in table.columns)
    for values in table.matrices.values():
        assert values.ndim == 2 and values.dtype == np.float64
    again = attn.lab(name, seed=3)
    assert repr(again.rows) == repr(table.rows)


def test_given_data():
    x = RNG.normal(size=(5, 8))
    table = attn.lab("sharpen", x=x, w_q=np.eye(8), w_k=np.eye(8),
                     w_v=np.eye(8))
    same = attn.lab("sharpen", q=x, k=x, v=x)
    assert repr(table.rows) == repr(same.rows)
    q = RNG.normal(size=(5, 16))[:, ::2]
    assert attn.lab("sharpen", q=q, k=x, v=x).rows


def test_errors():
    with pytest.raises(ValueError, match="no such|experiment"):
        attn.lab("nothing")
    with pytest.raises(ValueError, match="^[a-z_]+: "):
        attn.lab("sharpen", q=RNG.normal(size=(5, 8)),
                 x=RNG.normal(size=(5, 8)))
    with pytest.raises((TypeError, ValueError), match="^q: "):
        q = RNG.normal(size=(5, 8)).astype(int)
        attn.lab("sharpen", q=q, k=q, v=q)
    with pytest.raises(TypeError):
        attn.lab("sharpen", unknown=1)
