# SPDX-License-Identifier: Apache-2.0
#
# Style: an atelier's sketches in C.
SOURCE = "c_atelier.c"
ROWS = [
    "--signature=q f32[b,n,h,d], k f32[b,m,g,d], v f32[b,m,g,e], "
    "out f32[b,n,h,e], b int, n int, m int, h int, g int, d int, e int"
]
ZOO = [
    ("grouped_rows", "correct", ROWS),
    ("tiled_rows", "gqa-tile", ROWS),
    ("grouped_rows", "unusable", ROWS + ["--layout=bhsd"]),
]
