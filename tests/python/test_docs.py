# SPDX-License-Identifier: Apache-2.0
"""Every example in the docstrings and in docs/python.md runs as written."""

import ast
import doctest
import importlib
import inspect
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


@pytest.mark.parametrize("name", ["attn", "attn.lessons", "attn.testing"])
def test_every_function_has_its_types(name):
    module = importlib.import_module(name)
    for word in module.__all__:
        function = getattr(module, word)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, word
        for parameter in signature.parameters.values():
            assert parameter.annotation is not parameter.empty, \
                f"{word}({parameter.name})"


def parameters(signature):
    """The names of the parameters of a `def`."""
    given = signature.args
    return [x.arg for x in given.posonlyargs + given.args]


def test_the_stub_has_what_the_extension_has():
    stub = pathlib.Path(attn._core.__file__).with_name("_core.pyi")
    said = {node.name: parameters(node) for node
            in ast.parse(stub.read_text()).body
            if isinstance(node, ast.FunctionDef)}
    found = {}
    for name, function in vars(attn._core).items():
        if hasattr(function, "__nb_signature__"):
            (text, _, _), = function.__nb_signature__
            found[name] = parameters(ast.parse(text + ": ...").body[0])
    assert said.keys() == found.keys() and found
    for name, names in found.items():
        assert len(names) == len(said[name]), name
        for ours, theirs in zip(said[name], names):
            assert theirs in (ours, f"arg{names.index(theirs)}"), name


def test_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.failed == 0 and result.attempted > 20
