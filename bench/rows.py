# SPDX-License-Identifier: Apache-2.0
"""The rows of the bench: problems, their inputs, and masks as arrays."""

import dataclasses

# The least size of K and V together that a decode row goes round.
ROTATION = 1 << 30


@dataclasses.dataclass(frozen=True)
class Row:
    """One problem. `kind` is forward, backward or both; causal is at the
    lower right; window counts the keys to the left; `curve` puts the row into
    the picture."""

    name: str
    batch: int
    heads: int
    heads_kv: int
    len_q: int
    len_k: int
    dim: int
    kind: str = "forward"
    dtype: str = "f32"
    causal: bool = False
    window: int | None = None
    alibi: bool = False
    padding: bool = False
    bshd: bool = False
    curve: bool = False

    @property
    def group(self):
        return self.heads // self.heads_kv

    @property
    def decode(self):
        return self.len_q == 1

    @property
    def limit(self):
        """Which loop bounds it."""
        return "read" if self.decode else (
            "fma f64" if self.dtype == "f64" else "fma f32")

    @property
    def square_causal(self):
        """A causal mask that every library has a word for."""
        return self.causal and self.len_q == self.len_k and \
            self.window is None and not self.alibi

    @property
    def element(self):
        return {"f64": 8, "f32": 4, "bf16": 2, "f16": 2}[self.dtype]

    @property
    def copies(self):
        """How many K and V a decode goes round."""
        if not self.decode:
            return 1
        return -(-ROTATION // self.kv_bytes)

    @property
    def kv_bytes(self):
        return 2 * self.batch * self.heads_kv * self.len_k * self.dim * \
            self.element

    @property
    def work(self):
        """Operations; for decode, bytes."""
        if self.decode:
            return self.kv_bytes
        pairs = 0
        for i in range(self.len_q):
            last = i + self.len_k - self.len_q + 1 if self.causal \
                else self.len_k
            first = max(0, last - 1 - self.window) \
                if self.window is not None else 0
            pairs += last - first
        per_pair = {"forward": 4, "backward": 10, "both": 14}[self.kind]
        return pairs * self.batch * self.heads * self.dim * per_pair

    def shape(self, name):
        """Of an input or a result, as (batch, heads, len, dim)."""
        if name in ("k", "v", "dk", "dv"):
            return (self.batch, self.heads_kv, self.len_k, self.dim)
        return (self.batch, self.heads, self.len_q, self.dim)

    @property
    def inputs(self):
        return ("q", "k", "v") if self.kind == "forward" \
            else ("q", "k", "v", "do")

    @property
    def results(self):
        return ("o",) if self.kind == "forward" else ("dq", "dk", "dv")


def forward_rows():
    causal = {"causal": True}
    gpt2 = [Row(f"GPT-2 {n} causal", 1, 12, 12, n, n, 64, curve=True, **causal)
            for n in (128, 256, 512, 1024, 2048, 4096)]
    llama = (1, 32, 8, 2048, 2048, 128)
    return [
        Row("tiny 8x4", 1, 1, 1, 8, 8, 4),
        Row("BERT 128", 1, 12, 12, 128, 128, 64),
        Row("MiniLM 8x128", 8, 12, 12, 128, 128, 32),
        Row("BERT 512", 1, 12, 12, 512, 512, 64),
        *gpt2,
        Row("GPT-2 1024 bshd", 1, 12, 12, 1024, 1024, 64, bshd=True, **causal),
        Row("ViT 4x577", 4, 16, 16, 577, 577, 64),
        Row("d = 32", 1, 16, 16, 1024, 1024, 32),
        Row("d = 80", 1, 16, 16, 1024, 1024, 80),
        Row("d = 96", 1, 16, 16, 1024, 1024, 96),
        Row("d = 256 causal", 1, 8, 8, 1024, 1024, 256, **causal),
        Row("Llama 2048 GQA", *llama, **causal),
        Row("2 heads 4096", 1, 2, 2, 4096, 4096, 64),
        Row("2 heads 16384", 1, 2, 2, 16384, 16384, 64, **causal),
        Row("window 256 of 8192", 1, 8, 8, 8192, 8192, 64, window=255,
            **causal),
        Row("ALiBi 1024", 1, 12, 12, 1024, 1024, 64, alibi=True, **causal),
        Row("padding mask 512", 1, 12, 12, 512, 512, 64, padding=True),
        Row("chunk 128 of 4096", 1, 12, 12, 128, 4096, 64, **causal),
        Row("f64 1024", 1, 12, 12, 1024, 1024, 64, dtype="f64"),
        Row("bf16 GPT-2 1024", 1, 12, 12, 1024, 1024, 64, dtype="bf16",
            **causal),
        Row("bf16 Llama 2048", *llama, dtype="bf16", **causal),
        Row("f16 Llama 2048", *llama, dtype="f16", **causal),
        Row("decode 32768 GQA", 1, 32, 8, 1, 32768, 128, **causal),
        Row("decode 8x2048", 8, 32, 8, 1, 2048, 128, **causal),
        Row("bf16 decode 32768", 1, 32, 8, 1, 32768, 128, dtype="bf16",
            **causal),
    ]


def gradient_rows():
    shapes = {
        "BERT 4x512": (4, 12, 12, 512, 512, 64, False),
        "GPT-2 1024": (1, 12, 12, 1024, 1024, 64, True),
        "Llama 2048": (1, 8, 8, 2048, 2048, 128, True),
        "1 head 4096": (1, 1, 1, 4096, 4096, 64, True),
        "GQA 1024": (1, 32, 8, 1024, 1024, 128, True),
    }
    kinds = (("backward", "f32", "backward "), ("both", "f32", "both "),
             ("backward", "bf16", "bf16 backward "))
    return [Row(prefix + name, *shape[:6], kind=kind, dtype=dtype,
                causal=shape[6])
            for kind, dtype, prefix in kinds
            for name, shape in shapes.items()]


ROWS = forward_rows() + gradient_rows()


# ------------------------------------------------------------------- arrays
# NumPy comes late: the driver's test has none.


def round_to(x, dtype):
    """x with the values that fit the type, as float64 for f64, else
    float32."""
    import numpy as np
    if dtype == "f64":
        return x.astype(np.float64)
    x = x.astype(np.float32)
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = x.view(np.uint32)
        bits = bits + 0x7FFF + (bits >> 16 & 1) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return x


def make_inputs(row):
    """{name: array}, N(0, 1), of the row's values."""
    import numpy as np
    rng = np.random.default_rng(20261130)
    return {name: round_to(rng.standard_normal(row.shape(name),
                                               dtype=np.float32), row.dtype)
            for name in row.inputs}


def slopes(row):
    """ALiBi's, (heads,)."""
    import numpy as np
    return np.array([0.5 ** (1 + h % 8) for h in range(row.heads)],
                    np.float32)


def seen(row, rows=None):
    """Which keys each query (of `rows`) sees, bool (len_q, len_k); None:
    all."""
    import numpy as np
    i = np.arange(row.len_q) if rows is None else np.asarray(rows)
    p = (i + row.len_k - row.len_q)[:, None]
    j = np.arange(row.len_k)[None]
    see = np.ones((len(i), row.len_k), bool)
    if row.causal:
        see &= j <= p
    if row.window is not None:
        see &= j >= p - row.window
    if row.padding:
        see &= j < padded_length(row)
    return None if see.all() else see


def padded_length(row):
    return row.len_k - row.len_k // 8


def bias(row, rows=None):
    """ALiBi as an array, (heads, len_q, len_k); None without."""
    import numpy as np
    if not row.alibi:
        return None
    i = np.arange(row.len_q) if rows is None else np.asarray(rows)
    p = (i + row.len_k - row.len_q)[:, None]
    distance = np.abs(p - np.arange(row.len_k)[None]).astype(np.float32)
    return -slopes(row)[:, None, None] * distance


def float_mask(row):
    """Mask and bias as one array to add, (1, heads or 1, len_q, len_k)."""
    import numpy as np
    see, add = seen(row), bias(row)
    if add is None:
        add = np.zeros((1, row.len_q, row.len_k), np.float32)
    if see is not None:
        add = np.where(see, add, np.float32(-np.inf))
    return np.ascontiguousarray(add[None], dtype=np.float32)
