# SPDX-License-Identifier: Apache-2.0
"""attn.attention_backward and attn.attention_vjp against the formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attn
from reference import Problem, backward, check, forward
from strategies import FLOATS, problems

NAMES = ("dq", "dk", "dv", "dbias", "dsinks", "dslopes")


def check_gradients(g, want):
    for name in NAMES:
        if name in want:
            check(name, getattr(g, name), want[name])
        else:
            assert getattr(g, name) is None, name


@settings(max_examples=100)
@given(problems(backward=True))
def test_every_gradient_is_within_its_bound(case):
    p, do, dlse = case
    o, lse = attn.attention(p.q, p.k, p.v, return_lse=True, **p.keywords)
    g = attn.attention_backward(do, p.q, p.k, p.v, o, lse, dlse=dlse,
                                **p.keywords)
    check_gradients(g, backward(p, do, dlse))
    dq, dk, dv = g
    assert dq is g.dq and dk is g.dk and dv is g.dv
    assert (dq.dtype, dk.dtype, dv.dtype) == (p.q.dtype,) * 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_weight_that_is_dropped_costs_no_more_than_it_was(dtype):
    """e^s just below the smallest normal number: its share of o and dv is
    lost, which shows where v and do are large and nothing else is there."""
    s = -87.5 if dtype == "float32" else -708.5
    q = np.array([[[[1]]]], dtype)
    k = np.array([[[[0], [s]]]], dtype)
    v = np.array([[[[0], [40]]]], dtype)
    do = np.array([[[[30]]]], dtype)
    p = Problem(q, k, v, {"scale": 1.0})
    o, lse = attn.attention(q, k, v, return_lse=True, scale=1.0)
    g = attn.attention_backward(do, q, k, v, o, lse, scale=1.0)
    assert o.item() == 0 and g.dv[0, 0, 1, 0] == 0
    check("o", o, forward(p)["o"])
    check_gradients(g, backward(p, do))


@given(problems(backward=True))
def test_vjp_repeats_everything(case):
    p, do, dlse = case
    o, lse = attn.attention(p.q, p.k, p.v, return_lse=True, **p.keywords)
    want = attn.attention_backward(do, p.q, p.k, p.v, o, lse, dlse=dlse,
                                   **p.keywords)
    (o2, lse2), vjp = attn.attention_vjp(p.q, p.k, p.v, return_lse=True,
                                         **p.keywords)
    got = vjp(do, dlse)
    assert o2.tobytes() == o.tobytes() and lse2.tobytes() == lse.tobytes()
    for name in NAMES:
        a, b = getattr(got, name), getattr(want, name)
        assert (a is None and b is None) or a.tobytes() == b.tobytes()


@settings(max_examples=30)
@given(problems(backward=True), st.floats(0, 1), st.integers(0, 2**64 - 1))
def test_dropout_in_backward(case, drop, seed):
    p, do, dlse = case
    p.keywords["dropout_p"] = drop
    mask = attn.dropout_mask((p.batch, p.heads, p.len_q, p.len_k), drop, seed)
    _, vjp = attn.attention_vjp(p.q, p.k, p.v, seed=seed, **p.keywords)
    check_gradients(vjp(do, dlse), backward(p, do, dlse, mask))


@pytest.mark.parametrize("dtype", FLOATS)
def test_types_of_gradients(dtype):
    rng = np.random.default_rng(2)
    q, k, v = rng.normal(size=(3, 2, 2, 5, 4)).astype(dtype)
    sinks = rng.normal(size=2).astype(dtype)
    bias = rng.normal(size=(5, 5)).astype(dtype)
    o, vjp = attn.attention_vjp(q, k, v, sinks=sinks, attn_bias=bias,
                                alibi_slopes=sinks)
    g = vjp(np.ones_like(o))
    small = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    assert g.dq.dtype == g.dk.dtype == g.dv.dtype == g.dbias.dtype == dtype
    assert g.dsinks.dtype == g.dslopes.dtype == small


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_ranks_and_layouts(rank, layout):
    rng = np.random.default_rng(3)
    q, k, v, do = rng.normal(size=(4, 2, 3, 5, 4))
    _, vjp = attn.attention_vjp(q, k, v, causal=True)
    whole = vjp(do)

    def part(x):
        x = {4: x, 3: x[1], 2: x[1, 2]}[rank]
        return x.swapaxes(-3, -2) if layout == "bshd" and rank > 2 else x

    o, vjp = attn.attention_vjp(part(q), part(k), part(v), causal=True,
                                layout=layout)
    g = vjp(part(do))
    for name in ("dq", "dk", "dv"):
        got, want = getattr(g, name), part(getattr(whole, name))
        assert np.array_equal(got, want), name


def test_packed_gradients():
    rng = np.random.default_rng(4)
    cu = [0, 3, 3, 10]
    q, k, v, do = rng.normal(size=(4, 10, 2, 4))
    _, vjp = attn.attention_vjp(q, k, v, cu_seqlens_q=cu, cu_seqlens_k=cu,
                                causal=True)
    g = vjp(do)
    for a, b in zip(cu, cu[1:]):
        _, alone = attn.attention_vjp(q[a:b], k[a:b], v[a:b], layout="bshd",
                                      causal=True)
        for name in ("dq", "dk", "dv"):
            np.testing.assert_allclose(getattr(g, name)[a:b],
                                       getattr(alone(do[a:b]), name),
                                       rtol=1e-12, atol=1e-13)


def test_gradients_by_finite_differences():
    """The derivative that the formula's own implementation can't fake."""
    rng = np.random.default_rng(5)
    q, k, v, do = rng.normal(size=(4, 2, 6, 4))
    words = dict(softcap=3.0, causal=True, sinks=[0.3, -0.2])
    _, vjp = attn.attention_vjp(q, k, v, **words)
    arrays, step = {"dq": q, "dk": k, "dv": v}, 2.0**-17
    for name, x in arrays.items():
        at = tuple(rng.integers(n) for n in x.shape)
        gradient = getattr(vjp(do), name)[at]
        kept, losses = x[at], []
        for h in (step, -step):
            x[at] = kept + h
            losses.append((attn.attention(q, k, v, **words) * do).sum())
        x[at] = kept
        numeric = (losses[0] - losses[1]) / (2 * step)
        # error of the difference: step^2 f''' / 6 + u |loss| / step
        assert abs(gradient - numeric) < 1e-8 * (1 + abs(numeric)), name
