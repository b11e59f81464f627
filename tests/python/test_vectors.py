# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/vectors/core, made by others, through the package."""

import json
import pathlib

import numpy as np
import pytest

import attn

FOLDER = pathlib.Path(__file__).parent.parent / "vectors" / "core"
SCALING = {"original_max_position": "original_max_position_embeddings",
           "max_position": "max_position_embeddings", "type": "rope_type"}


def sidecar(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def load(name):
    return sidecar(name), dict(np.load(FOLDER / f"{name}.npz"))


def cases(kind):
    """Without those whose dropout mask is an array: it is no input here."""
    index = json.loads((FOLDER / "index.json").read_text())
    names = [case["name"] for case in index["cases"] if case["kind"] == kind]
    return [name for name in names if "dropout_mask" not in
            [one["name"] for one in sidecar(name)["inputs"]]]


def compare(name, got, data, atol):
    want = data["expected_" + name]
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        assert (same | (abs(got - want) <= atol[name])).all(), name


def keywords(side, data):
    """The sidecar's options as keywords; every offset is given there."""
    options = side["options"]
    words = dict(scale=options["scale"], softcap=options["softcap"],
                 window=options["window"], empty_rows=options["policy"],
                 q_offset=options["q_offset"])
    if options["causal"] != "none":
        words["causal"] = options["causal"]
    for theirs, ours in [("mask", "attn_mask"), ("bias", "attn_bias"),
                         ("alibi_slopes",) * 2, ("sinks",) * 2,
                         ("k_lengths",) * 2, ("cu_seqlens_q",) * 2,
                         ("cu_seqlens_k",) * 2]:
        if theirs in data:
            words[ours] = data[theirs]
            if theirs in ("bias", "alibi_slopes", "sinks"):
                words[ours] = words[ours].astype(np.float64)
    return words


@pytest.mark.parametrize("name", cases("attention"))
def test_attention(name):
    side, data = load(name)
    packed = "cu_seqlens_q" in data
    main = {n: data[n].astype(np.float64)
            for n in ("q", "k", "v", "do", "dlse") if n in data}
    if packed:  # (1, H, T, D) there, (T, H, D) here
        main = {n: x[0] if n == "dlse" else x[0].swapaxes(0, 1)
                for n, x in main.items()}

    def ours(x):
        return x.swapaxes(0, 1)[None] if packed else x

    atol = side["atol"]["f64"]
    words = keywords(side, data)
    want_weights = "expected_weights" in data and not packed
    results = attn.attention(main["q"], main["k"], main["v"],
                             return_lse=True, return_entropy=True,
                             return_weights=want_weights, **words)
    o, lse, entropy = results[0], results[1], results[-1]
    compare("o", ours(o), data, atol)
    compare("lse", lse[None] if packed else lse, data, atol)
    if "expected_entropy" in data:
        compare("entropy", entropy[None] if packed else entropy, data, atol)
    if want_weights:
        compare("weights", results[2], data, atol)
    if "do" not in data:
        return
    g = attn.attention_backward(main["do"], main["q"], main["k"], main["v"],
                                o, lse, dlse=main.get("dlse"), **words)
    for key in ("dq", "dk", "dv", "dbias", "dsinks", "dslopes"):
        if "expected_" + key in data:
            got = getattr(g, key)
            compare(key, ours(got) if key in ("dq", "dk", "dv") else got,
                    data, atol)


@pytest.mark.parametrize("name", cases("rope"))
def test_rope(name):
    side, data = load(name)
    options = side["options"]
    scaling = {SCALING.get(key, key): value
               for key, value in options["scaling"].items()}
    if scaling["rope_type"] == "none":
        scaling["rope_type"] = "default"
    if options["seq_len"] is not None:
        scaling["seq_len"] = options["seq_len"]
    words = dict(base=options["base"], rotary_dim=options["rotary_dim"],
                 scaling=scaling)
    atol = side["atol"]["f64"]
    for function, x, key in ((attn.rope, "x", "y"),
                             (attn.rope_backward, "dy", "dx")):
        got = function(data[x].astype(np.float64), data["positions"],
                       interleaved=options["interleaved"], **words)
        compare(key, got, data, atol)
    reach = options["seq_len"] or int(data["positions"].max()) + 1
    inverse, factor = attn.rope_frequencies(data["x"].shape[-1], reach,
                                            **words)
    compare("inv_freq", np.array(inverse), data, atol)
    assert abs(factor - options["attention_factor"]) < 1e-12
