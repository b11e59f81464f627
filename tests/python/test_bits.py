# SPDX-License-Identifier: Apache-2.0
"""The same bits for any threads, layout, strides, and for a part alone."""

import numpy as np
from hypothesis import given, settings

import attn
from strategies import FLOATS, problems

NAMES = ("dq", "dk", "dv", "dbias", "dsinks", "dslopes")


def everything(q, k, v, do, **keywords):
    """Every result and gradient of a call, as bytes."""
    results = attn.attention(q, k, v, return_lse=True, return_weights=True,
                             return_entropy=True, **keywords)
    g = attn.attention_backward(do, q, k, v, *results[:2], **keywords)
    gradients = [getattr(g, name) for name in NAMES]
    return [x.tobytes() for x in [*results, *gradients] if x is not None]


@settings(max_examples=30)
@given(problems(dtypes=FLOATS, backward=True))
def test_threads(case):
    p, do, _ = case
    want = everything(p.q, p.k, p.v, do, threads=1, **p.keywords)
    for threads in (2, 3, 7, None):
        assert everything(p.q, p.k, p.v, do, threads=threads,
                          **p.keywords) == want


def test_threads_with_work_for_all():
    rng = np.random.default_rng(30)
    q, k, v, do = rng.normal(size=(4, 2, 4, 300, 32)).astype(np.float32)
    want = everything(q, k, v, do, threads=1, causal=True)
    for threads in (2, 3, 7, None):
        assert everything(q, k, v, do, threads=threads, causal=True) == want


@settings(max_examples=30)
@given(problems(dtypes=FLOATS))
def test_layouts_and_transposed_views(p):
    want = attn.attention(p.q, p.k, p.v, **p.keywords)
    swapped = [x.swapaxes(1, 2) for x in (p.q, p.k, p.v)]
    for views in (swapped, [x.copy() for x in swapped]):
        o = attn.attention(*views, layout="bshd", **p.keywords)
        assert o.swapaxes(1, 2).tobytes() == want.tobytes()
    turned = [np.asfortranarray(x) for x in (p.q, p.k, p.v)]
    assert attn.attention(*turned, **p.keywords).tobytes() == want.tobytes()


def test_a_head_alone():
    rng = np.random.default_rng(31)
    q = rng.normal(size=(2, 6, 50, 16)).astype(np.float32)
    k, v = rng.normal(size=(2, 2, 2, 70, 16)).astype(np.float32)
    for words in (dict(), dict(causal="bottom_right", window=(20, 0)),
                  dict(softcap=2.0)):
        o, lse = attn.attention(q, k, v, return_lse=True, **words)
        for b in range(2):
            for h in range(6):
                alone = attn.attention(q[b, h], k[b, h // 3], v[b, h // 3],
                                       return_lse=True, **words)
                assert alone[0].tobytes() == o[b, h].tobytes()
                assert alone[1].tobytes() == lse[b, h].tobytes()


def test_gradients_of_a_head_alone():
    """dq of a query head; dk and dv of the heads that share a KV head."""
    rng = np.random.default_rng(35)
    q, do = rng.normal(size=(2, 2, 6, 50, 16)).astype(np.float32)
    k, v = rng.normal(size=(2, 2, 2, 70, 16)).astype(np.float32)
    words = dict(causal="bottom_right", softcap=3.0)
    whole = attn.attention_vjp(q, k, v, **words)[1](do)
    for b in range(2):
        for g in range(2):
            part = slice(3 * g, 3 * g + 3)
            alone = attn.attention_vjp(
                q[b, part], k[b, g:g + 1], v[b, g:g + 1], **words)[1](
                    do[b, part])
            assert alone.dq.tobytes() == whole.dq[b, part].tobytes()
            assert alone.dk.tobytes() == whole.dk[b, g:g + 1].tobytes()
            assert alone.dv.tobytes() == whole.dv[b, g:g + 1].tobytes()
            for h in range(3 * g, 3 * g + 3):
                one = attn.attention_vjp(q[b, h], k[b, g], v[b, g],
                                         **words)[1](do[b, h])
                assert one.dq.tobytes() == whole.dq[b, h].tobytes()


@settings(max_examples=30)
@given(problems(dtypes=FLOATS, backward=True))
def test_gradients_of_layouts_and_transposed_views(case):
    p, do, dlse = case
    want = attn.attention_vjp(p.q, p.k, p.v, **p.keywords)[1](do, dlse)
    swapped = [x.swapaxes(1, 2) for x in (p.q, p.k, p.v, do)]
    for q, k, v, d in (swapped, [x.copy() for x in swapped]):
        g = attn.attention_vjp(q, k, v, layout="bshd", **p.keywords)[1](
            d, dlse)
        for name in NAMES:
            x, y = getattr(g, name), getattr(want, name)
            if name in ("dq", "dk", "dv"):
                x = x.swapaxes(1, 2)
            assert (x is None) == (y is None)
            assert x is None or x.tobytes() == y.tobytes(), name


def test_a_batch_entry_alone():
    rng = np.random.default_rng(32)
    q, do = rng.normal(size=(2, 3, 4, 20, 8)).astype(np.float32)
    k, v = rng.normal(size=(2, 3, 2, 33, 8)).astype(np.float32)
    whole = attn.attention_vjp(q, k, v)[1](do)
    for b in range(3):
        alone = attn.attention_vjp(q[b], k[b], v[b])[1](do[b])
        for name in ("dq", "dk", "dv"):
            assert getattr(alone, name).tobytes() == \
                getattr(whole, name)[b].tobytes()


def test_what_hidden_keys_hold_changes_nothing():
    rng = np.random.default_rng(33)
    q, k, v = rng.normal(size=(3, 2, 3, 40, 8)).astype(np.float32)
    want = attn.attention(q, k, v, k_lengths=[20, 31])
    for garbage in (np.nan, np.inf, -1e30):
        k2, v2 = k.copy(), v.copy()
        for b, n in enumerate((20, 31)):
            k2[b, :, n:] = garbage
            v2[b, :, n:] = garbage
        got = attn.attention(q, k2, v2, k_lengths=[20, 31])
        assert got.tobytes() == want.tobytes()


def test_run_after_run():
    rng = np.random.default_rng(34)
    q, k, v, do = rng.normal(size=(4, 1, 2, 65, 16)).astype(np.float32)
    want = everything(q, k, v, do)
    for _ in range(20):
        assert everything(q, k, v, do) == want
