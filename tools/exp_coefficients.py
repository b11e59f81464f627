#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The coefficients of the kernels' exp (src/kernels/tmpl/exp_tmpl.h).

exp(x) = 2^n e^r with n = rint(x log2 e), abs(r) <= ln 2 / 2, and
e^r = 1 + r + r^2 q(r). q minimises the largest relative error of e^r: a
weighted least-squares fit on Chebyshev nodes, reweighted (Lawson) until the
error is level. Prints hexadecimal floats, rounded to the working type, and
the error that the rounded polynomial has in exact arithmetic.

usage: exp_coefficients.py          needs numpy
"""
import numpy as np

HALF_LN2 = np.longdouble("0.34657359027997265470861606072908828")


def exp_tail(r):
    """(e^r - 1 - r) / r^2 by its series, in 80-bit arithmetic."""
    term = np.longdouble(1) / 2
    total = np.zeros_like(r)
    for k in range(3, 32):
        total += term
        term = term * r / k
    return total


def fit(degree, real):
    """Coefficients of q, lowest first, and the largest relative error."""
    nodes = HALF_LN2 * np.cos(np.pi * (np.arange(4001) + 0.5) / 4001)
    r = nodes.astype(np.longdouble)
    target = exp_tail(r)
    scale = r * r / np.exp(r)
    weight = np.ones_like(r)
    powers = np.stack([r ** k for k in range(degree + 1)], axis=1)
    # Fit what the truncated series leaves: small numbers keep their digits.
    series = np.cumprod([1] + [1 / np.longdouble(k + 3)
                               for k in range(degree)]) / 2
    rest = target - powers @ series
    for _ in range(60):
        rows = (powers * (scale * np.sqrt(weight))[:, None]).astype(float)
        wanted = (rest * scale * np.sqrt(weight)).astype(float)
        unit = np.abs(wanted).max()
        delta = np.linalg.lstsq(rows, wanted / unit, rcond=None)[0] * unit
        c = series + delta
        error = np.abs((powers @ c - target) * scale)
        weight = weight * (error + error.max() * 1e-6)
        weight /= weight.sum()
    rounded = c.astype(real)
    error = (powers @ rounded.astype(np.longdouble) - target) * scale
    return rounded, float(np.abs(error).max())


def main():
    for name, degree, real in (("f32", 4, np.float32), ("f64", 9, np.float64)):
        c, error = fit(degree, real)
        print(f"{name}: degree {degree + 2}, relative error {error:.2e} = "
              f"{error * 2 ** (24 if real is np.float32 else 53):.3f} u")
        for k, value in enumerate(c):
            print(f"  c{k + 2} = {float(value).hex()}")


if __name__ == "__main__":
    main()
