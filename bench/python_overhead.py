#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# python_overhead.py: what a call from Python costs beyond the C call.
#
#   make bench-python
#
# A call of (1, 1, 8, 4) on one thread, with NumPy arrays; the C side is
# call_overhead.c. The aim is 3 microseconds, on a machine that nobody else
# uses.

import subprocess
import sys
import timeit

import numpy as np

import attn

# Short bursts: the least of many is one that nobody interrupted.
CALLS, REPEATS = 500, 400


def nanoseconds(function):
    function()
    times = timeit.repeat(function, number=CALLS, repeat=REPEATS)
    return 1e9 * min(times) / CALLS


def main():
    in_c = float(subprocess.run([sys.argv[1]], check=True, text=True,
                                capture_output=True).stdout)
    q = np.random.default_rng(0).normal(size=(1, 1, 8, 4)).astype(np.float32)
    out = np.empty_like(q)
    cases = {
        "attention(q, k, v)":
            lambda: attn.attention(q, q, q, threads=1),
        "attention(q, k, v), all threads":
            lambda: attn.attention(q, q, q),
        "attention(q, k, v, out=out)":
            lambda: attn.attention(q, q, q, threads=1, out=out),
        "attention(q, k, v, causal=True, return_lse=True)":
            lambda: attn.attention(q, q, q, threads=1, causal=True,
                                   return_lse=True),
    }
    print(str(attn.info()).splitlines()[1])
    print(f"C: plan, workspace and forward of (1, 1, 8, 4): {in_c:.0f} ns")
    for name, function in cases.items():
        took = nanoseconds(function)
        print(f"{name:50} {took:6.0f} ns, {took - in_c:6.0f} ns more")


if __name__ == "__main__":
    main()
