#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The coefficients of the kernels' exponential (src/kernels/tmpl/exp_tmpl.h).

e^x = 2^n e^r, n = rint(x log2 e), abs(r) <= ln 2 / 2:   e^r = 1 + r + r^2 q(r)

q minimises the largest relative error of the whole: a weighted least-squares
fit on Chebyshev nodes, reweighted (Lawson) until the error is level, of what
the truncated series leaves, so that double precision is enough for the fit.
Prints hexadecimal floats, rounded to the working type, and the error that the
rounded polynomial has in exact arithmetic.

usage: exp_coefficients.py          needs numpy
"""
import numpy as np

REAL = np.longdouble
LN2 = REAL("0.69314718055994530941723212145817657")


def series_of_exp(terms):
    """(e^r - 1 - r) / r^2 = sum of r^k / (k + 2)!"""
    return np.cumprod([REAL(1)] + [1 / REAL(k + 3)
                                   for k in range(terms - 1)]) / 2


def fit(degree, real):
    """Coefficients of q, lowest first, and the largest relative error."""
    nodes = np.cos(np.pi * (np.arange(4001) + 0.5) / 4001)
    r = LN2 / 2 * nodes.astype(REAL)
    powers = np.stack([r ** k for k in range(30)], axis=1)
    start = series_of_exp(30)[:degree + 1]
    rest = powers[:, degree + 1:] @ series_of_exp(30)[degree + 1:]
    powers = powers[:, :degree + 1]
    scale = r ** 2 / np.exp(r)
    weight = np.ones_like(r)
    for _ in range(60):
        rows = (powers * (scale * np.sqrt(weight))[:, None]).astype(float)
        wanted = (rest * scale * np.sqrt(weight)).astype(float)
        unit = np.abs(wanted).max()
        delta = np.linalg.lstsq(rows, wanted / unit, rcond=None)[0] * unit
        error = np.abs((powers @ delta.astype(REAL) - rest) * scale)
        weight = weight * (error + error.max() * 1e-6)
        weight /= weight.sum()
    rounded = (start + delta).astype(real)
    error = (powers @ (rounded.astype(REAL) - start) - rest) * scale
    return rounded, float(np.abs(error).max())


def main():
    for width, degree, real in (("f32", 4, np.float32),
                                ("16-bit weights", 3, np.float32),
                                ("f64", 9, np.float64)):
        unit = 2.0 ** (53 if width == "f64" else 24)
        c, error = fit(degree, real)
        print(f"{width}: degree {degree + 2}, relative error {error:.2e} = "
              f"{error * unit:.3f} u")
        for k, coefficient in enumerate(c):
            print(f"  c{k + 2} = {float(coefficient).hex()}")


if __name__ == "__main__":
    main()
