# SPDX-License-Identifier: Apache-2.0
"""The machine's limits, by the loops of attn_bench.h: a burst's `rate` is in
operations or bytes per second."""

import ctypes
import os
import statistics
import time

import numpy as np

import rows

F64, F32 = 1, 2  # attn_dtype


class Loop:
    """One loop on a pool of threads."""

    def __init__(self, function, arguments, pool, threads):
        function.restype = ctypes.c_double
        self.once = lambda: function(*arguments, ctypes.c_void_p(pool),
                                     ctypes.c_int64(threads))

    def run(self, seconds):
        self.once()
        rates, end = [], time.perf_counter() + seconds
        while not rates or time.perf_counter() < end:
            rates.append(self.once())
        rate = statistics.median(rates)
        return {"seconds": 1 / rate, "calls": len(rates), "rate": rate}


def read_loop(lib, size, pool, threads):
    memory = np.ones(size // 8)
    loop = Loop(lib.attn_limit_read,
                (memory.ctypes.data_as(ctypes.c_void_p),
                 ctypes.c_size_t(memory.nbytes)), pool, threads)
    loop.memory = memory
    return loop


def prepare(row, arrays, threads):
    del arrays
    lib = ctypes.CDLL(os.environ["ATTN_LIMITS"])
    lib.attn_pool_create.restype = ctypes.c_void_p
    pool = lib.attn_pool_create(ctypes.c_int64(threads))
    if row.limit == "read":
        return read_loop(lib, rows.ROTATION, pool, threads)
    kind = F64 if row.limit == "fma f64" else F32
    return Loop(lib.attn_limit_fma, (lib.attn_cpu_isa(), kind), pool, threads)
