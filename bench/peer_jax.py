# SPDX-License-Identifier: Apache-2.0
"""JAX's dot_product_attention, compiled. Its arrays are (batch, len, heads,
dim)."""

import os

os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

from peer import NotSupported, Work
from rows import bias, seen

TYPES = {"f64": jnp.float64, "f32": jnp.float32, "f16": jnp.float16,
         "bf16": jnp.bfloat16}


def attend(row):
    words = {"is_causal": row.square_causal or row.alibi}
    if row.alibi:
        words["bias"] = jnp.asarray(bias(row)[None])
    elif not row.square_causal and seen(row) is not None:
        words["mask"] = jnp.asarray(seen(row)[None, None])
    return lambda q, k, v: jax.nn.dot_product_attention(q, k, v, **words)


def prepare(row, arrays, threads):
    if row.dtype == "f64":
        raise NotSupported("sums in float32")
    given = [jnp.asarray(np.ascontiguousarray(arrays[name].swapaxes(1, 2)),
                         TYPES[row.dtype]) for name in row.inputs]
    function = attend(row)
    if row.kind == "forward":
        run = jax.jit(function)
    elif row.kind == "both":
        def both(q, k, v, do):
            return jax.vjp(function, q, k, v)[1](do)

        run = jax.jit(both)
    else:
        pull = jax.jit(lambda *x: jax.vjp(function, *x)[1])(*given[:3])
        given = [pull, given[3]]
        run = jax.jit(lambda pulled, do: pulled(do))

    def results(made):
        made = made if isinstance(made, tuple) else (made,)
        return {name: np.asarray(x, np.float64).swapaxes(1, 2)
                for name, x in zip(row.results, made)}

    return Work(lambda: jax.block_until_ready(run(*given)), results)
