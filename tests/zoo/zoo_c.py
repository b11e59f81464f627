# SPDX-License-Identifier: Apache-2.0
#
# Style: C, called through its own prototype; c_animals.c.
SOURCE = "c_animals.c"

ONE = ["--signature", "q f32[n,d], k f32[m,d], v f32[m,e], out f32[n,e], "
       "n int, m int, d int, e int"]
MANY = ["--signature", "q f32[b,h,n,d], k f32[b,g,m,d], v f32[b,g,m,e], "
        "out f32[b,h,n,e], b int, h int, g int, n int, m int, d int, e int, "
        "causal int"]

ZOO = [
    ("right", "correct", ONE),
    ("online_right", "correct", ONE),
    ("usual", "correct"),
    ("grouped", "correct", MANY),
    ("no_scale", "scale-missing", ONE),
    ("wrong_transpose", "k-wrong-transpose", ONE),
    ("window_three", "correct", ONE),
    ("window_four", "window-off-by-one", ONE + ["--expect", "window=2:0"]),
    ("no_rescale", "online-max-stale", ONE),
    ("naive", "softmax-no-max", ONE),
    ("grouped_future", "causal-diagonal-shift", MANY),
    ("grouped_tiled", "gqa-tile", MANY),
    ("writes_inputs", "inputs-mutated", ONE),
    ("does_nothing", "output-nan", ONE),
    ("crashes", "unusable", ONE),
    ("hangs", "unusable", ONE + ["--timeout", "2"]),
    ("overruns", "unusable", ONE),
]
