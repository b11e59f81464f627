# SPDX-License-Identifier: Apache-2.0
"""Arrays of other makers: how they are taken, given back, and refused.

The extension reads what has the buffer protocol or ``__dlpack__`` by itself.
What it can't read comes here: bfloat16 of NumPy (as its bits), lists and
numbers where small arrays are expected, and everything that needs a sentence.
"""

import sys

import numpy as np

# The arguments that may be given as lists or numbers, and their type.
_SMALL = {
    "alibi_slopes": np.float64,
    "sinks": np.float64,
    "k_lengths": np.int64,
    "q_offset": np.int64,
    "cu_seqlens_q": np.int64,
    "cu_seqlens_k": np.int64,
    "positions": np.int64,
    "heads": np.int64,
    "rows": np.int64,
}

_TAKEN = "float64, float32, bfloat16, float16, bool, int32 and int64"


def coerce(name, x, writing=False):
    """An array that the extension can read in the place of ``x``.

    Returns (array, whether it holds the bits of bfloat16); raises TypeError or
    ValueError with one sentence where there is none. With ``writing`` the array
    shares the memory of ``x``.
    """
    if isinstance(x, np.ndarray):
        return _coerce_numpy(name, x, writing)
    wanted = _SMALL.get(name)
    if wanted and isinstance(x, (list, tuple, int, float, np.generic)):
        return _small(name, np.asarray(x), wanted), False
    raise _refusal(name, x)


def _small(name, array, wanted):
    """The same numbers in the type that the library takes."""
    if array.dtype.kind not in ("iu" if wanted is np.int64 else "iuf"):
        if array.size:  # an empty list has no type of its own
            raise TypeError(f"{name}: is {array.dtype}, must be "
                            f"{'integers' if wanted is np.int64 else 'real'}")
    return array.astype(wanted)


def _coerce_numpy(name, x, writing):
    if x.dtype.name == "bfloat16":
        return x.view(np.uint16), True
    if not x.dtype.isnative:
        raise TypeError(f"{name}: is {x.dtype} in foreign byte order; "
                        "x.astype(x.dtype.newbyteorder('=')) converts it")
    if writing and not x.flags.writeable:
        raise ValueError(f"{name}: is read-only")
    wanted = _SMALL.get(name)
    if wanted is np.int64 and x.dtype.kind in "iu" and not writing:
        return x.astype(np.int64), False
    if x.dtype.name not in _TAKEN:
        raise TypeError(f"{name}: is {x.dtype}; the library takes {_TAKEN}")
    raise ValueError(f"{name}: has strides {x.strides} that are no multiples "
                     f"of its {x.itemsize}-byte elements; "
                     "np.ascontiguousarray makes a copy that works")


def _refusal(name, x):
    """The exception for an object that is no usable array."""
    maker = type(x).__module__.partition(".")[0]
    if maker in ("jax", "jaxlib") and "Tracer" in type(x).__name__:
        return TypeError(f"{name}: is a JAX tracer, which holds no numbers; "
                         "call outside of jit and grad, or through "
                         "jax.pure_callback")
    if getattr(x, "requires_grad", False):
        return TypeError(f"{name}: requires grad, which is not recorded here; "
                         "use attn.torch, or pass x.detach()")
    if hasattr(x, "__dlpack_device__"):
        try:
            on_cpu = int(x.__dlpack_device__()[0]) == 1
        except (ValueError, BufferError, RuntimeError):
            on_cpu = False
        if not on_cpu:
            return TypeError(f"{name}: is not in the memory of the CPU")
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return TypeError(f"{name}: is {dtype}, or not dense; the library "
                         f"takes {_TAKEN}")
    return TypeError(f"{name}: is {type(x).__name__}, which is no array: it "
                     "has neither the buffer protocol nor __dlpack__")


def importer(x):
    """The function that makes an array of the kind of ``x`` out of memory with
    ``__dlpack__``; None for NumPy."""
    maker = type(x).__module__.partition(".")[0]
    if maker == "torch":
        return sys.modules["torch"].from_dlpack
    if maker in ("jax", "jaxlib"):
        import jax.numpy
        return jax.numpy.from_dlpack
    namespace = getattr(x, "__array_namespace__", None)
    if namespace is not None and hasattr(x, "__dlpack__"):
        return namespace().from_dlpack
    if _has_buffer(x):
        return None
    raise _refusal("q", x)


def _has_buffer(x):
    try:
        memoryview(x)
    except TypeError:
        return False
    return True
