# SPDX-License-Identifier: Apache-2.0
"""attn.rope against multiplication of complex numbers. (Its scalings: see
test_vectors.py.)"""

import numpy as np
import pytest

import attn

RNG = np.random.default_rng(40)


def turned(x, positions, interleaved, rotary, base=10000.0):
    """Rotation as multiplication by e^(i t), in extended precision."""
    x = np.asarray(x, np.longdouble)
    m = np.arange(rotary // 2, dtype=np.longdouble)
    angle = np.asarray(positions, np.longdouble)[..., None] * \
        np.longdouble(base) ** (-2 * m / rotary)
    if angle.ndim == 3:
        angle = angle[:, None]
    if interleaved:
        pairs = x[..., 0:rotary:2] + 1j * x[..., 1:rotary:2]
    else:
        pairs = x[..., :rotary // 2] + 1j * x[..., rotary // 2:rotary]
    pairs = pairs * np.exp(1j * angle)
    y = x.copy()
    if interleaved:
        y[..., 0:rotary:2], y[..., 1:rotary:2] = pairs.real, pairs.imag
    else:
        y[..., :rotary // 2] = pairs.real
        y[..., rotary // 2:rotary] = pairs.imag
    return y


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary", [None, 4])
@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 8), (2, 3, 5, 8),
                                   (2, 2, 3, 5, 8)])
def test_rope_turns_pairs(dtype, interleaved, rotary, shape):
    x = RNG.normal(size=shape).astype(dtype)
    positions = np.array([0, 1, 100, 7, 60000])
    if len(shape) == 4:
        positions = np.stack([positions, positions + 3])
    words = dict(interleaved=interleaved, rotary_dim=rotary)
    y = attn.rope(x, positions, **words)
    want = turned(x, positions, interleaved, rotary or 8)
    assert y.shape == x.shape and y.dtype == dtype
    # an angle of a and its error u a; two products and a sum; one rounding
    u = np.finfo(np.float64).eps / 2
    size = abs(x).max()
    error = size * u * (4 * 60003 + 8) + np.finfo(dtype).eps / 2 * abs(want) \
        + 2.0**-25 * (dtype == np.float16)
    assert (abs(y - want) <= error).all()
    dy = RNG.normal(size=shape)
    dx = attn.rope_backward(dy, positions, **words)
    back = attn.rope_backward(attn.rope(dy, positions, **words), positions,
                              **words)
    np.testing.assert_allclose(back, dy, atol=1e-14)    # orthogonal
    assert dx.shape == shape


def test_errors():
    x = np.ones((4, 8))
    for error, field, words in [
            (ValueError, "rotary_dim", dict(rotary_dim=3)),
            (ValueError, "rotary_dim", dict(rotary_dim=10)),
            (ValueError, "scaling", dict(scaling={"rope_type": "su"})),
            (ValueError, "scaling", dict(scaling={"rope_type": "linear",
                                                  "faktor": 2.0})),
            (TypeError, "scaling", dict(scaling=2.0)),
            (ValueError, "base", dict(base=-1.0))]:
        with pytest.raises(error, match=f"^{field}: "):
            attn.rope(x, [0, 1, 2, 3], **words)
    with pytest.raises(ValueError, match="^positions: "):
        attn.rope(x, [0, 1, 2])
    with pytest.raises(TypeError, match="^positions: "):
        attn.rope(x, [0.5, 1, 2, 3])
    with pytest.raises(TypeError, match="^x: "):
        attn.rope(np.ones((4, 8), int), [0, 1, 2, 3])
