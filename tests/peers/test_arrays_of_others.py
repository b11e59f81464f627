# SPDX-License-Identifier: Apache-2.0
"""torch and JAX arrays through the functions of attn: no copies, results of
the caller's kind, the bits of the NumPy call."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

import attn

RNG = np.random.default_rng(0)
Q, K, V = RNG.normal(size=(3, 2, 4, 9, 8)).astype(np.float32)
MASK = RNG.random((9, 9)) < 0.8
TYPES = ["float32", "float16", "bfloat16"]


def numpy_of(x):
    """The numbers of a torch or JAX array, as float64."""
    if isinstance(x, torch.Tensor):
        return x.detach().double().numpy()
    return np.asarray(x, dtype=np.float64)


def make(kind, x, dtype=None):
    if kind == "torch":
        x = torch.from_numpy(np.ascontiguousarray(x))
        return x if dtype is None else x.to(getattr(torch, dtype))
    x = jnp.asarray(x)
    return x if dtype is None else x.astype(dtype)


def expected(x, dtype):
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_forward(kind, dtype):
    q, k, v = (make(kind, x, dtype) for x in (Q, K, V))
    got = attn.attention(q, k, v, attn_mask=make(kind, MASK), return_lse=True,
                         return_weights=True)
    want = attn.attention(*(expected(x, dtype) for x in (Q, K, V)),
                          attn_mask=MASK, return_lse=True,
                          return_weights=True)
    assert all(type(x) is type(q) for x in got)
    assert got[0].dtype == q.dtype
    for a, b in zip(got, want):
        # JAX without x64 keeps lse in float32.
        exact = numpy_of(a) == np.asarray(b, np.float64)
        close = np.isclose(numpy_of(a), np.asarray(b, np.float64), rtol=1e-7)
        assert (exact if a.dtype.itemsize == b.dtype.itemsize
                else close).all()


@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_backward_and_the_rest(kind):
    q, k, v = (make(kind, x) for x in (Q, K, V))
    o, vjp = attn.attention_vjp(q, k, v, sinks=make(kind, np.ones(4, "f")))
    g = vjp(o)
    o2, vjp2 = attn.attention_vjp(Q, K, V, sinks=np.ones(4, "f"))
    g2 = vjp2(o2)
    for name in ("dq", "dk", "dv", "dsinks"):
        assert type(getattr(g, name)) is type(q)
        assert (numpy_of(getattr(g, name)) == getattr(g2, name)).all()
    positions = np.arange(9)
    y = attn.rope(q, make(kind, positions))
    assert type(y) is type(q)
    assert (numpy_of(y) == attn.rope(Q, positions)).all()
    w = attn.weights(q, k, rows=[3])
    assert type(w) is type(q) and w.shape == (2, 4, 1, 9)
    cache = attn.KVCache(2, 4, 16, 8, dtype=q.dtype)
    cache.append(k, v)
    assert type(attn.decode(q[:, :, -1:], cache)) is type(q)
    x = q[:, 0]
    weight = make(kind, np.eye(8, dtype="f"))
    y = attn.multi_head(x, weight, weight, weight, weight, heads=2)
    assert type(y) is type(q)


def test_torch_views_are_not_copied():
    qkv = torch.randn(2, 9, 3, 4, 8)
    q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
    want = attn.attention(*(x.contiguous() for x in (q, k, v)))
    assert torch.equal(attn.attention(q, k, v), want)
    out = torch.zeros_like(want)
    assert attn.attention(q, k, v, out=out) is out and torch.equal(out, want)


def test_zero_sizes():
    empty = torch.zeros(2, 4, 0, 8)
    assert attn.attention(empty, empty, empty).shape == empty.shape
    o = attn.attention(make("torch", Q), empty, empty)
    assert (o == 0).all()


def test_kinds_may_mix():
    o = attn.attention(make("torch", Q), K, make("jax", V))
    assert isinstance(o, torch.Tensor)
    assert (numpy_of(o) == attn.attention(Q, K, V)).all()


def test_torch_refusals():
    q = torch.randn(1, 2, 3, 4)
    bad = [(q.clone().requires_grad_(), "requires grad"),
           (q.to(torch.complex64), "complex64"),
           (q.to("meta"), "CPU"),
           (q[0, 0].to_sparse(), "dense"),
           (q.int(), "i32|int32")]
    for x, words in bad:
        with pytest.raises(TypeError, match=words):
            attn.attention(x, x, x)


def test_jax_tracers_are_refused():
    q = jnp.asarray(Q)

    def loss(x):
        return attn.attention(x, q, q).sum()

    for transform in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(TypeError, match="tracer"):
            transform(loss)(q)


def test_jax_through_pure_callback():
    """The way out that the sentence names."""
    q = jnp.asarray(Q)
    shape = jax.ShapeDtypeStruct(q.shape, q.dtype)
    o = jax.jit(lambda x: jax.pure_callback(
        lambda y: np.asarray(attn.attention(np.asarray(y), Q, Q)), shape,
        x))(q)
    assert (numpy_of(o) == attn.attention(Q, Q, Q)).all()
