# SPDX-License-Identifier: Apache-2.0
"""Every example in the docstrings and in docs/python.md runs as written."""

import doctest
import importlib
import pathlib

import pytest

import attn

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.parametrize("name", [
    "attn", "attn._attention", "attn._cache", "attn._doctor", "attn._info",
    "attn._lab", "attn._layer", "attn._rope", "attn.lessons",
    "attn.testing"])
def test_docstrings(name):
    import numpy as np
    result = doctest.testmod(importlib.import_module(name),
                             extraglobs={"np": np})
    assert result.failed == 0 and result.attempted > 0


def test_every_function_has_an_example_and_its_errors():
    for name in attn.__all__:
        text = getattr(attn, name).__doc__
        assert text, name
        assert ">>>" in text or name in ("Gradients", "LayerGradients",
                                         "Report", "decode"), name


def test_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.failed == 0 and result.attempted > 20
