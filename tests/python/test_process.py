# SPDX-License-Identifier: Apache-2.0
"""The package as a citizen of its process: import, threads, fork, the lock."""

import os
import subprocess
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import attn

RNG = np.random.default_rng(60)
Q, K, V = RNG.normal(size=(3, 2, 4, 128, 32)).astype(np.float32)


def python(code):
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_brings_numpy_alone():
    loaded = python("import sys, attn, attn.lessons; print(*sorted("
                    "{m.partition('.')[0] for m in sys.modules}))")
    assert "numpy" in loaded
    assert not {"torch", "jax", "transformers", "ml_dtypes"} & set(loaded)


def test_info():
    found = attn.info()
    assert found["version"] == attn.__version__
    assert found["isa"] in ("scalar", "avx2", "avx512", "amx")
    assert "fwd_f32_scalar" in str(found) and found["threads"] >= 1
    assert python("import attn; print(attn.info())")[0] == "attn"


def test_isa_from_the_environment():
    code = ("import os; os.environ['ATTN_ISA'] = 'scalar'; import attn; "
            "print(attn.info()['isa'])")
    assert python(code) == ["scalar"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_makes_its_own_pool():
    want = attn.attention(Q, K, V, threads=4)          # the pool exists
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ok = attn.attention(Q, K, V, threads=4).tobytes() == want.tobytes()
        os.write(writer, b"1" if ok else b"0")
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.01)
    assert os.read(reader, 1) == b"1"
    os.close(reader)
    assert attn.attention(Q, K, V).tobytes() == want.tobytes()


def test_many_threads_call_at_once():
    want = attn.attention(Q, K, V).tobytes()
    wrong = []

    def work():
        for _ in range(20):
            if attn.attention(Q, K, V).tobytes() != want:
                wrong.append(threading.get_ident())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"),
                    reason="this Python has the lock")
def test_import_leaves_the_lock_off():
    assert python("import sys, attn; print(sys._is_gil_enabled())") == \
        ["False"]


def test_the_lock_is_released():
    """Another thread counts while a long call runs."""
    q = RNG.normal(size=(1, 4, 2048, 64)).astype(np.float32)
    counts, running = [0], threading.Event()

    def count():
        running.set()
        while running.is_set():
            counts[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    running.wait()
    before = counts[0]
    attn.attention(q, q, q, threads=1)
    during = counts[0] - before
    running.clear()
    counter.join()
    # With the lock held throughout, the counter could not have moved at all.
    assert during > 100


def test_the_command_is_there():
    command = os.path.join(os.path.dirname(sys.executable), "attn")
    if not os.path.exists(command):
        pytest.skip("the package is not installed beside this interpreter")
    done = subprocess.run([command, "--help"], text=True, capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and "run" in done.stdout
