# SPDX-License-Identifier: Apache-2.0
#
# Style: C for someone's own prototype, in float.
SOURCE = "c_ported.c"
P = ["--signature=q f32[n,d], k f32[m,d], v f32[m,e], out f32[n,e], "
     "n int, m int, d int, e int"]
W = "--expect=window=2:0"
ZOO = [
    ("right", "correct", P), ("tiled", "correct", P),
    ("key_by_columns", "k-wrong-transpose", P),
    ("last_key_missing", "kv-length|tail-tile-unmasked", P),
    ("no_scale", "scale-missing", P),
    ("tiled_sum_stale", "online-max-stale", P),
    ("tiled_no_rescale", "online-max-stale", P),
    ("window_of_three", "correct", P + [W + ",causal=top_left"]),
    ("window_of_four", "window-off-by-one", P + [W + ",causal=top_left"]),
]
