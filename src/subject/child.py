# SPDX-License-Identifier: Apache-2.0
#
# The Python side of the doctor: loads FILE, finds FUNCTION, and answers calls
# that come over the socket at fd 0; or, imported, answers them in the process
# of attn.doctor. protocol.h describes the messages. NumPy alone is needed;
# arrays may go to, and results come from, PyTorch and JAX.
import dataclasses
import importlib.util
import inspect
import os
import re
import struct
import sys
import time
import types
import warnings

if __name__ == "__main__":
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(name + "_NUM_THREADS", "1")
    link = os.dup(0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # what the subject prints is not for us
        os.dup2(quiet, fd)

import numpy as np  # noqa: E402

NUMPY = {1: np.float64, 2: np.float32, 4: np.float16, 5: np.bool_,
         6: np.int32, 7: np.int64}
CODE = {"float64": 1, "float32": 2, "bfloat16": 3, "float16": 4, "bool": 5,
        "int32": 6, "int64": 7}
MOST_ELEMENTS = 1 << 22


def receive(n):
    parts = []
    while n:
        part = os.read(link, min(n, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def send(payload):
    data = memoryview(struct.pack("<I", len(payload)) + payload)
    while data:
        data = data[os.write(link, data):]


def text(string):
    data = str(string).encode("utf-8", "replace")[:4000]
    return struct.pack("<I", len(data)) + data


# ------------------------------------------------------------------ loading

def load(path, dotted):
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    stem = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    found = module
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


def inner(function):
    """The Python function that does the work, as far as it can be seen."""
    for _ in range(8):
        if hasattr(function, "func"):  # functools.partial
            function = function.func
        elif hasattr(function, "__wrapped__"):  # jax.jit, functools.wraps
            function = function.__wrapped__
        elif not inspect.isroutine(function) and hasattr(function, "forward"):
            function = function.forward  # torch.nn.Module
        elif not inspect.isroutine(function) and \
                not isinstance(function, type) and \
                isinstance(getattr(type(function), "__call__", None),
                           types.FunctionType):
            function = type(function).__call__
        else:
            break
    return function


def put_in_evaluation(function):
    """A module, or the module of a method, is not training here."""
    module = getattr(function, "__self__", function)
    if isinstance(getattr(module, "training", None), bool) and \
            callable(getattr(module, "eval", None)):
        module.eval()


def documented(function):
    """(name, optional, default, positional only) out of the first line of a
    builtin's documentation, "f(q, k, mask=None) -> Tensor"."""
    found = re.search(r"^\s*\w+\(([^()]*)\)", inspect.getdoc(function) or "")
    if not found:
        return [(n, False, "", True) for n in ("q", "k", "v")]
    words = [w.partition("=") for w in found.group(1).split(",")]
    return [(name.strip(" */").split(":")[0], bool(equals), default.strip(),
             False) for name, equals, default in words if name.strip(" */")]


def parameters(function):
    """(name, optional, default, positional only) of each."""
    if hasattr(function, "forward") and not inspect.isroutine(function):
        function = function.forward
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return documented(function)
    found = []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        optional = p.default is not p.empty
        found.append((p.name, optional, repr(p.default)[:60] if optional
                      else "", p.kind == p.POSITIONAL_ONLY))
    return found


def words_of(function):
    """Documentation, and comments at the top of the body."""
    words = inspect.getdoc(function) or ""
    try:
        source = inspect.getsource(inner(function))
        words += "\n" + "\n".join(re.findall(r"#\s*(.*)", source))
    except (OSError, TypeError):
        pass
    return words[:3000]


def hello(function):
    """What the function takes: the first message."""
    known = parameters(function)
    parts = [b"H", struct.pack("<I", len(known))]
    for name, optional, default, _ in known:
        parts += [text(name), struct.pack("<B", optional), text(default)]
    return b"".join(parts) + text(words_of(function))


# --------------------------------------------------------------- frameworks

def names_of(code):
    """The global names that code, and what is nested in it, uses."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_of(constant)
    return names


def used_by(function):
    """What a function's code names: modules, functions and others."""
    names = names_of(function.__code__)
    found = [function.__globals__[n] for n in names
             if n in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not yet filled
            pass
    return found


def package_of(thing):
    name = thing.__name__ if isinstance(thing, types.ModuleType) else \
        getattr(thing, "__module__", None) or type(thing).__module__
    return str(name).split(".")[0]


def packages_of(function):
    """The packages that a function uses, by itself or by what it calls."""
    packages, seen, waiting = set(), [], [function]
    while waiting and len(seen) < 200:
        f = waiting.pop()
        packages.add(package_of(f))
        f = inner(f)
        packages.add(package_of(f))
        if not hasattr(f, "__code__") or not hasattr(f, "__globals__") or \
                f.__code__ in seen or packages & {"torch", "jax", "jaxlib"}:
            continue
        seen.append(f.__code__)
        for thing in used_by(f):
            packages.add(package_of(thing))
            if callable(thing):
                waiting.append(thing)
    return packages


def to_torch(array):
    return sys.modules["torch"].from_numpy(array)


def to_jax(array):
    return sys.modules["jax"].numpy.asarray(array)


MAKERS = {"numpy": np.asarray, "torch": to_torch, "jax": to_jax}


def makers_of(function):
    """What to make of an array before the function gets it: the likeliest
    first, then whatever else there is in this process."""
    packages = packages_of(function)
    order = [name for name in ("torch", "jax") if name in packages]
    order += [name for name in MAKERS if name not in order]
    return [MAKERS[name] for name in order
            if name == "numpy" or name in sys.modules]


# ------------------------------------------------------------------ calling

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def tensor(self):
        dtype, rank = self.take("BB")
        shape = [self.take("q") for _ in range(rank)]
        stride = [self.take("q") for _ in range(rank)]
        count = self.take("Q")
        kind = np.dtype(NUMPY[dtype])
        size = count * kind.itemsize
        base = np.frombuffer(bytearray(self.data[self.at:self.at + size]),
                             kind)
        self.at += size
        dense = np.cumprod([1] + shape[:0:-1])[::-1] if rank else []
        if list(dense) == stride and base.size == int(np.prod(shape)):
            return base.reshape(shape), base
        strides = [s * kind.itemsize for s in stride]
        return np.ndarray(shape, kind, base, 0, strides), base

    def value(self):
        kind = self.take("B")
        if kind == 0:
            return None, None
        if kind == 1:
            return self.tensor()
        if kind == 2:
            return self.take("d"), None
        if kind == 3:
            return self.take("q"), None
        if kind == 4:
            return bool(self.take("B")), None
        if kind == 5:
            return tuple(self.take("qq")), None
        n = self.take("I")
        self.at += n
        return self.data[self.at - n:self.at].decode(), None


def as_array(x):
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        if "bfloat16" in str(x.dtype):
            return np.asarray(x.float().numpy(), np.float64), 3
        x = x.numpy()
    x = np.asarray(x)
    if x.dtype.kind not in "fbiuV" and x.dtype.name != "bfloat16":
        raise TypeError("a result has type " + x.dtype.name)
    if x.size > MOST_ELEMENTS or x.ndim > 8:
        raise ValueError("a result has shape %s" % (x.shape,))
    return np.asarray(x, np.float64), CODE.get(x.dtype.name, 1)


ORDER = ("o", "out", "output", "y", "dq", "dk", "dv", "weights", "attn",
         "lse")


def results_of(returned):
    """The arrays of a return value, as a list."""
    if isinstance(returned, dict):
        keys = list(returned)
        keys.sort(key=lambda k: ORDER.index(k) if k in ORDER else len(ORDER))
        return [returned[k] for k in keys if returned[k] is not None]
    if dataclasses.is_dataclass(returned):
        returned = {f.name: getattr(returned, f.name)
                    for f in dataclasses.fields(returned)}
        return results_of(returned)
    if isinstance(returned, tuple):
        return [r for r in returned if r is not None]
    if isinstance(returned, list) and returned and all(
            hasattr(r, "ndim") for r in returned):
        same = all(r.shape == returned[0].shape for r in returned)
        if not (same and returned[0].ndim <= 1):
            return list(returned)
    if hasattr(returned, "__iter__") and not hasattr(returned, "shape") and \
            not isinstance(returned, (list, str)):
        return [r for r in returned if r is not None]
    return [] if returned is None else [returned]


class Callee:
    """A function that messages call."""

    def __init__(self, function):
        if not callable(function):
            raise TypeError("%r is not callable" % (function,))
        put_in_evaluation(function)
        self.function = function
        self.known = parameters(function)
        self.makers = makers_of(function)

    def values_of(self, data):
        """[(parameter, value, memory of an array)] of a message."""
        reader = Reader(data)
        return [(self.known[reader.take("i")], *reader.value())
                for _ in range(reader.take("I"))]

    def call(self, data, make):
        """(what it returns, seconds, bits of arrays that it changed)"""
        positional, named, before = [], {}, []
        for (name, _, _, by_position), value, base in self.values_of(data):
            if base is not None:
                value = make(value)
            if by_position:
                positional.append(value)
            else:
                named[name] = value
            before.append((base, None if base is None else base.tobytes()))
        start = time.perf_counter()
        returned = self.function(*positional, **named)
        seconds = time.perf_counter() - start
        arrays = [as_array(r) for r in results_of(returned)[:8]]
        mutated = 0
        for bit, (base, old) in enumerate(before):
            if base is not None and base.tobytes() != old and bit < 32:
                mutated |= 1 << bit
        return arrays, seconds, mutated

    def first_that_works(self, data):
        """The call by the first maker that it takes, which stays."""
        refusal = None
        for make in self.makers:
            try:
                found = self.call(data, make)
            except Exception as error:
                refusal = refusal or error
            else:
                self.makers = [make]
                return found
        raise refusal

    def answer(self, data):
        arrays, seconds, mutated = self.first_that_works(data)
        parts = [b"A", struct.pack("<dII", seconds, mutated, len(arrays))]
        for x, code in arrays:
            parts.append(struct.pack("<BB%dq" % x.ndim, code, x.ndim,
                                     *x.shape))
            parts.append(np.ascontiguousarray(x).tobytes())
        return b"".join(parts)


def reason(error):
    return "%s: %s" % (type(error).__name__, error)


def refusal(error):
    return b"R" + text(reason(error))


def main():
    try:
        function = load(sys.argv[1], sys.argv[2])
        callee = Callee(function)
        first = hello(function)
    except BaseException as error:  # whatever a module does on import
        send(b"E" + text(reason(error)))
        return
    send(first)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    while True:
        data = receive(struct.unpack("<I", receive(4))[0])
        try:
            payload = callee.answer(data)
        except BaseException as error:
            payload = refusal(error)
        send(payload)


if __name__ == "__main__":
    main()
