# SPDX-License-Identifier: Apache-2.0
"""attn.doctor: what it says of right and of wrong functions, and how."""

import json

import numpy as np
import pytest

import attn
from attn import lessons
from attn.testing import assert_attention


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def plain(q, k, v, causal=False):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return softmax(s) @ v


def unscaled(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2)) @ v


def over_queries(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -2) @ v


@pytest.mark.parametrize("expect", [
    None, {}, {"causal": "top_left"}, {"causal": "bottom_right"},
    {"causal": True}])
def test_attention_itself(expect):
    assert attn.doctor(attn.attention, expect).verdict == "correct"


@pytest.mark.parametrize("fn", [
    attn.attention_backward, attn.rope, attn.merge, attn.multi_head,
    lessons.attention, lessons.softmax, lessons.self_attention,
    lessons.single_head_attention, lessons.causal_mha])
def test_the_rest_of_the_package(fn):
    assert attn.doctor(fn).verdict == "correct"


def test_report():
    report = attn.doctor(over_queries)
    assert report.verdict == "fault" and report.kind == "attention"
    fault = report.faults[0]
    assert fault.id == "softmax-wrong-axis"
    assert fault.fix == "softmax over the keys: axis=-1"
    assert fault.where == "forward" and fault.evidence and fault.repro
    assert report.text() == str(report) and fault.says in report.text()
    assert "softmax-wrong-axis" in repr(report)
    data = json.loads(report.json())
    assert data["faults"][0]["id"] == fault.id
    assert report.spec["layout"] == "bhsd"


def test_what_is_expected_decides():
    assert attn.doctor(plain).verdict == "correct"
    assert attn.doctor(plain).spec["causal"].startswith("top_left")
    assert attn.doctor(plain, {"causal": "top_left"}).verdict == "correct"
    report = attn.doctor(plain, dict(causal="bottom_right"))
    assert [f.id for f in report.faults] == ["causal-corner"]
    assert attn.doctor(unscaled, {"scale": 1.0}).verdict == "correct"
    assert attn.doctor(unscaled, {}).faults[0].id == "scale-missing"


def test_arrays_and_tuples_in_what_is_expected():
    slopes = np.array([0.5, 0.25, 0.125])

    def with_slopes(q, k, v):
        return attn.attention(q, k, v, alibi_slopes=slopes, causal="top_left",
                              window=(2, 0))

    expect = {"alibi_slopes": slopes, "causal": "top_left", "window": (2, 0)}
    assert attn.doctor(with_slopes, expect).verdict == "correct"
    wrong = dict(expect, window=(3, 0))
    assert attn.doctor(with_slopes, wrong).faults[0].id == "window-off-by-one"


def test_callables_of_all_sorts():
    class Attention:
        def __init__(self, power):
            self.power = power

        def __call__(self, q, k, v):
            s = q @ np.swapaxes(k, -1, -2)
            return softmax(s * q.shape[-1] ** self.power) @ v

    from functools import partial
    assert attn.doctor(Attention(-0.5)).verdict == "correct"
    assert attn.doctor(Attention(-1.0)).faults[0].id == "scale-twice"
    assert attn.doctor(partial(attn.attention, causal="top_left"),
                       {"causal": "top_left"}).verdict == "correct"
    assert attn.doctor(lambda q, k, v: unscaled(q, k, v)).verdict == "fault"


def test_useless_functions():
    def raises(q, k, v):
        raise RuntimeError("not written yet")

    report = attn.doctor(raises)
    assert report.verdict == "unusable" and "not written yet" in report.reason
    assert attn.doctor(lambda q, k, v: 3.0).verdict == "unusable"
    assert attn.doctor(lambda q, k, v: None).verdict == "unusable"


def test_an_interrupt_ends_it():
    def stop(q, k, v):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attn.doctor(stop)


def test_inputs_stay_as_they_are():
    def scales_in_place(q, k, v):
        q *= q.shape[-1] ** -0.5
        return softmax(q @ np.swapaxes(k, -1, -2)) @ v

    report = attn.doctor(scales_in_place)
    assert [f.id for f in report.faults] == ["inputs-mutated"]


def test_assert_attention():
    assert_attention(attn.attention, causal="bottom_right")
    assert_attention(lessons.softmax, kind="softmax")
    with pytest.raises(AssertionError) as caught:
        assert_attention(unscaled)
    assert "scale-missing" in str(caught.value)
    assert "Fix: multiply q @ k.T by" in str(caught.value)


def test_same_seed_same_report():
    first, second = attn.doctor(unscaled, seed=7), attn.doctor(unscaled,
                                                               seed=7)
    assert first.faults == second.faults and first.spec == second.spec


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.float16,
                                   "float16"])
def test_types(dtype):
    assert attn.doctor(plain, dtype=dtype).verdict == "correct"
    assert attn.doctor(unscaled, dtype=dtype).verdict == "fault"


def test_refusals():
    with pytest.raises(ValueError, match="kind: 'nothing' is none of auto"):
        attn.doctor(plain, kind="nothing")
    with pytest.raises(TypeError, match="dtype: 'int8' is none of float64"):
        attn.doctor(plain, dtype="int8")
    with pytest.raises(ValueError, match="layout: 'xyz' is none of bhsd"):
        attn.doctor(plain, layout="xyz")
    with pytest.raises(ValueError, match="expect: 'colour' is no word"):
        attn.doctor(plain, {"colour": "red"})
    with pytest.raises(TypeError, match="3 is not callable"):
        attn.doctor(3)
