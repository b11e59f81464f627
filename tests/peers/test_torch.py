# SPDX-License-Identifier: Apache-2.0
"""attn.torch against torch: semantics, gradients, operators, graphs."""

import contextlib
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn
import attn.torch
from attn.torch import attention, scaled_dot_product_attention

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from reference import Problem, backward, check, forward

F64 = dict(dtype=torch.float64)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def numpy_of(x):
    """The tensor in NumPy, bfloat16 too."""
    x = x.detach()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def both(*arguments, **keywords):
    """Ours and torch's, whose every path is its math path in float64."""
    ours = scaled_dot_product_attention(*arguments, **keywords)
    with sdpa_kernel(SDPBackend.MATH):
        theirs = F.scaled_dot_product_attention(*arguments, **keywords)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    return ours, theirs


def close(a, b, rtol=1e-12):
    torch.testing.assert_close(a, b, rtol=rtol, atol=rtol, equal_nan=False)


SHAPES = [((5, 8), (7, 8), (7, 6)),
          ((3, 5, 8), (3, 7, 8), (3, 7, 6)),
          ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)),
          ((2, 2, 3, 5, 8), (2, 2, 3, 7, 8), (2, 2, 3, 7, 6)),
          ((2, 3, 5, 8), (1, 3, 7, 8), (2, 1, 7, 6)),
          ((4, 1, 5, 8), (1, 3, 7, 8), (7, 6))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("is_causal", [False, True])
def test_shapes(shapes, is_causal):
    q, k, v = (torch.randn(s, **F64, requires_grad=True) for s in shapes)
    ours, theirs = both(q, k, v, is_causal=is_causal)
    close(ours, theirs)
    do = torch.randn_like(ours)
    for a, b in zip(torch.autograd.grad(ours, (q, k, v), do),
                    torch.autograd.grad(theirs, (q, k, v), do)):
        close(a, b, 1e-11)


@pytest.mark.parametrize("shape", [(5, 7), (3, 5, 7), (1, 1, 5, 7),
                                   (2, 1, 1, 7), (2, 3, 5, 7), (2, 1, 5, 1)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks(shape, kind):
    q, k, v = (torch.randn(s, **F64, requires_grad=True) for s in SHAPES[2])
    if kind == "bool":
        mask = torch.rand(shape) < 0.8
        mask[..., 0] = True
        wanted = (q, k, v)
    else:
        mask = torch.randn(shape, **F64, requires_grad=True)
        wanted = (q, k, v, mask)
    ours, theirs = both(q, k, v, mask)
    close(ours, theirs)
    do = torch.randn_like(ours)
    for a, b in zip(torch.autograd.grad(ours, wanted, do),
                    torch.autograd.grad(theirs, wanted, do)):
        close(a, b, 1e-11)


def test_masks_of_more_axes():
    q, k, v = (torch.randn(s, **F64) for s in SHAPES[3])
    for shape in [(5, 7), (2, 2, 3, 5, 7), (2, 1, 1, 5, 7), (1, 1, 3, 1, 7)]:
        mask = torch.rand(shape) < 0.8
        mask[..., 0] = True
        close(*both(q, k, v, mask))


def test_mask_and_causal_both_apply():
    q = torch.randn(2, 3, 6, 8, **F64)
    mask = torch.rand(6, 6) < 0.7
    ours = scaled_dot_product_attention(q, q, q, mask, is_causal=True)
    want = scaled_dot_product_attention(
        q, q, q, mask & torch.ones(6, 6, dtype=torch.bool).tril())
    assert torch.equal(ours, want)


def test_rows_that_see_nothing_are_zero():
    q = torch.randn(1, 2, 4, 8, **F64, requires_grad=True)
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    ours, theirs = both(q, q, q, mask)
    assert (ours[:, :, 2] == 0).all()
    close(ours, theirs)
    ours.sum().backward()
    assert torch.isfinite(q.grad).all()
    inf = torch.zeros(4, 4, **F64).masked_fill(~mask, -torch.inf)
    close(*both(q, q, q, inf))


@pytest.mark.parametrize("scale", [None, 0.3, 0.0, -1.0])
def test_scale(scale):
    q = torch.randn(1, 2, 4, 8, **F64)
    close(*both(q, q, q, scale=scale))


@pytest.mark.parametrize("heads", [(6, 6, 6), (6, 2, 2), (6, 1, 1), (6, 3, 2)])
def test_grouped_heads(heads):
    q, k, v = (torch.randn(2, h, 5, 8, **F64, requires_grad=True)
               for h in heads)
    ours, theirs = both(q, k, v, enable_gqa=True)
    close(ours, theirs)
    for a, b in zip(torch.autograd.grad(ours.sum(), (q, k, v)),
                    torch.autograd.grad(theirs.sum(), (q, k, v))):
        close(a, b, 1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16,
                                   torch.float16])
def test_types(dtype):
    q, k, v = (torch.randn(2, 3, 40, 16, dtype=dtype, requires_grad=True)
               for _ in range(3))
    ours, theirs = both(q, k, v)
    do = torch.randn_like(ours)
    p = Problem(*(numpy_of(x) for x in (q, k, v)))
    check("o", numpy_of(ours), forward(p)["o"])
    exact = backward(p, numpy_of(do))
    for name, gradient in zip(("dq", "dk", "dv"),
                              torch.autograd.grad(ours, (q, k, v), do)):
        assert gradient.dtype == theirs.dtype == dtype
        check(name, numpy_of(gradient), exact[name])


def test_dropout_is_torch_s_generator():
    q = torch.randn(1, 2, 30, 8, **F64, requires_grad=True)

    def run(seed):
        torch.manual_seed(seed)
        return scaled_dot_product_attention(q, q, q, dropout_p=0.5)

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert (scaled_dot_product_attention(q, q, q, dropout_p=1.0) == 0).all()
    # Unbiased: the mean over masks is the output without dropout.
    many = torch.stack([run(i).detach() for i in range(400)])
    exact = scaled_dot_product_attention(q, q, q)
    error = (many.mean(0) - exact).abs() / (many.std(0) / 20 + 1e-9)
    assert error.max() < 5.5 and error.mean() < 1.2


def test_dropout_backward_uses_the_forward_mask():
    q = torch.randn(1, 2, 5, 8, **F64, requires_grad=True)
    seed = torch.tensor(7)
    assert torch.autograd.gradcheck(
        lambda x: attention(x, x, x, dropout_p=0.4, seed=seed), (q,))


def test_autocast():
    q = torch.randn(2, 3, 5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = scaled_dot_product_attention(q, q, q)
        theirs = F.scaled_dot_product_attention(q, q, q)
    assert ours.dtype == theirs.dtype == torch.bfloat16


def test_errors():
    q = torch.randn(2, 3, 5, 8)
    for error, words, arguments in [
            (ValueError, "axes", (q[0, 0, 0], q, q)),
            (TypeError, "^k: ", (q, q.double(), q)),
            (ValueError, "^k: ", (q, q[..., :4], q)),
            (ValueError, "^attn_mask: ", (q, q, q, torch.ones(4, 4).bool())),
            (TypeError, "^attn_mask: ", (q, q, q, torch.ones(5, 5).int())),
            (ValueError, "enable_gqa", (q, q[:, :2], q[:, :2])),
            (ValueError, "leading axes", (q, q.repeat(2, 1, 1, 1), q)),
            (TypeError, "i32|int32", (q.int(), q.int(), q.int()))]:
        with pytest.raises(error, match=words):
            scaled_dot_product_attention(*arguments)
    for window in [(1,), 3, (1, 2, 3)]:
        with pytest.raises(ValueError, match="^window: "):
            attention(q, q, q, window=window)
    with pytest.raises(ValueError, match="^window_left: "):
        attention(q, q, q, window=(-2, 0))


@pytest.mark.parametrize("sizes", [(0, 2, 3, 3), (2, 0, 3, 3), (2, 2, 0, 3),
                                   (2, 2, 3, 0), (2, 2, 0, 0)])
def test_zero_sizes(sizes):
    batch, heads, len_q, len_k = sizes
    q = torch.randn(batch, heads, len_q, 4, **F64, requires_grad=True)
    k = torch.randn(batch, heads, len_k, 4, **F64, requires_grad=True)
    o = scaled_dot_product_attention(q, k, k)
    assert o.shape == q.shape and (o == 0).all()
    grads = torch.autograd.grad(o.sum(), (q, k))
    assert [g.shape for g in grads] == [q.shape, k.shape]


def test_second_derivatives_are_refused():
    """A gradient penalty must not lose its gradient in silence."""
    q = torch.randn(1, 2, 4, 8, **F64, requires_grad=True)
    o = scaled_dot_product_attention(q, q, q)
    g, = torch.autograd.grad(o.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="second"):
        (g.square().sum() + q.sum()).backward()


# ------------------------------------------------- gradients and operators


def draw(seed):
    """Arguments of attn.torch.attention: tensors and keywords."""
    rng = np.random.default_rng(seed)
    flip = lambda: bool(rng.integers(2))  # noqa: E731
    batch, kv, group = 1 + rng.integers(2), 1 + rng.integers(2), \
        1 + rng.integers(2)
    len_q, len_k = rng.choice([1, 3, 4], 2)
    dim, dim_v = rng.choice([1, 2, 3], 2)
    heads = kv * group

    def leaf(*shape):
        return torch.tensor(rng.normal(size=shape), requires_grad=True)

    tensors = {"q": leaf(batch, heads, len_q, dim),
               "k": leaf(batch, kv, len_k, dim),
               "v": leaf(batch, kv, len_k, dim_v)}
    words = dict(causal=["top_left", "bottom_right", False][rng.integers(3)],
                 softcap=float(rng.choice([0.0, 2.0])))
    if flip():
        shape = [n if flip() else 1 for n in (batch, heads, len_q, len_k)]
        tensors["attn_bias"] = leaf(*shape[rng.integers(3):])
    if flip():
        tensors["sinks"] = leaf(heads)
    if flip():
        tensors["alibi_slopes"] = leaf(*((batch, heads) if flip()
                                         else (heads,)))
    if flip():
        words["attn_mask"] = torch.tensor(rng.random((len_q, len_k)) < 0.7)
    if flip():
        words["window"] = (int(rng.integers(3)), int(rng.integers(3)))
    if flip():
        words["k_lengths"] = torch.tensor(rng.integers(len_k + 1, size=batch))
    if flip():
        words |= dict(dropout_p=0.3, seed=torch.tensor(int(seed)))
    if flip():
        words["q_offset"] = torch.tensor(rng.integers(-2, 4, size=batch))
    return tensors, words


@pytest.mark.parametrize("seed", range(30))
def test_gradcheck(seed):
    tensors, words = draw(seed)

    def function(*values):
        return attention(**dict(zip(tensors, values)), **words,
                         return_lse=False)

    assert torch.autograd.gradcheck(function, tuple(tensors.values()))
    if "sinks" in tensors:  # lse is finite in every row then
        assert torch.autograd.gradcheck(
            lambda *values: attention(**dict(zip(tensors, values)), **words,
                                      return_lse=True),
            tuple(tensors.values()))


def operands(tensors, words):
    """The positional arguments of the operator."""
    given = {**words, **tensors}
    left, right = given.get("window", (-1, -1))
    return (given["q"], given["k"], given["v"], given.get("attn_mask"),
            given.get("attn_bias"), given.get("alibi_slopes"),
            given.get("sinks"), given.get("k_lengths"), given.get("q_offset"),
            None, None, given.get("seed"), given["causal"] or "none", left,
            right, None, given["softcap"], given.get("dropout_p", 0.0), 0,
            "standard", "bhsd", 0)


@pytest.mark.parametrize("seed", range(30))
def test_opcheck(seed):
    torch.library.opcheck(torch.ops.attn.attention.default,
                          operands(*draw(seed)))


@pytest.mark.parametrize("layout,rank", [("bshd", 4), ("bshd", 3),
                                         ("bhsd", 3), ("bhsd", 2)])
def test_opcheck_layouts(layout, rank):
    q = torch.randn(2, 3, 4, 5, **F64)[(0,) * (4 - rank)].requires_grad_()
    arguments = (q, q, q) + (None,) * 9 + (
        "none", -1, -1, None, 0.0, 0.0, 0, "standard", layout, 1)
    torch.library.opcheck(torch.ops.attn.attention.default, arguments)


def test_packed_sequences():
    q = torch.randn(7, 2, 4, **F64, requires_grad=True)
    cu = torch.tensor([0, 3, 7])
    packed = dict(cu_seqlens_q=cu, cu_seqlens_k=cu, causal=True)
    arguments = (q, q, q) + (None,) * 6 + (cu, cu, None, "plain", -1, -1, None,
                                           0.0, 0.0, 0, "standard", "bhsd", 0)
    torch.library.opcheck(torch.ops.attn.attention.default, arguments)
    assert torch.autograd.gradcheck(
        lambda x: attention(x, x, x, **packed, return_lse=True), (q,))


def test_only_what_is_needed_has_a_gradient():
    q, k, v = (torch.randn(1, 2, 5, 4, **F64) for _ in range(3))
    k.requires_grad_()
    attention(q, k, v).sum().backward()
    assert k.grad is not None and q.grad is None
    with torch.no_grad():
        assert not attention(q, k, v).requires_grad


# ------------------------------------------------------------------ graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compile_without_breaks(backend):
    def layer(x, w):
        q, k, v = ((x @ m).unflatten(-1, (2, 4)).transpose(1, 2) for m in w)
        o = scaled_dot_product_attention(q, k, v, is_causal=True)
        return o.transpose(1, 2).flatten(2)

    x = torch.randn(2, 5, 8, **F64, requires_grad=True)
    w = torch.randn(3, 8, 8, **F64, requires_grad=True)
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    close(compiled(x, w), layer(x, w))
    for a, b in zip(torch.autograd.grad(compiled(x, w).sum(), (x, w)),
                    torch.autograd.grad(layer(x, w).sum(), (x, w))):
        close(a, b)
    longer = torch.randn(2, 9, 8, **F64)
    close(compiled(longer, w), layer(longer, w))


def test_the_operator_is_in_the_graph():
    seen = []

    def backend(graph, inputs):
        seen.append(graph.print_readable(print_output=False))
        return graph

    q = torch.randn(1, 2, 5, 4)
    torch.compile(scaled_dot_product_attention, fullgraph=True,
                  backend=backend)(q, q, q, dropout_p=0.1)
    assert len(seen) == 1 and "torch.ops.attn.attention" in seen[0]


def test_import_of_torch_part_brings_no_transformers():
    import subprocess
    import sys
    code = ("import sys, attn.torch; "
            "print('transformers' in sys.modules, 'torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], text=True, check=True,
                          capture_output=True)
    assert done.stdout.split() == ["False", "True"]


def test_saved_tensors_are_versioned():
    """Changing an input in place before backward is an error, as in torch."""
    q = torch.randn(1, 2, 5, 4, **F64, requires_grad=True)
    x = q * 1
    o = attention(x, x, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        o.sum().backward()


def test_threads_of_torch_and_ours():
    """Backward runs on autograd's threads; nothing hangs, bits agree."""
    q = torch.randn(2, 4, 200, 16, requires_grad=True)
    grads = []
    for _ in range(5):
        with contextlib.suppress(AttributeError):
            q.grad = None
        scaled_dot_product_attention(q, q, q).square().sum().backward()
        grads.append(q.grad.clone())
    assert all(torch.equal(g, grads[0]) for g in grads)


def test_the_training_example_learns(tmp_path):
    example = pathlib.Path(__file__).parents[2] / "examples/training_torch.py"
    picture = tmp_path / "backwards.svg"
    subprocess.run([sys.executable, example, picture], check=True)
    assert picture.read_text().startswith("<svg")
