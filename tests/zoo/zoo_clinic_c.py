# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases in C.
SOURCE = "c_clinic.c"


def plain(dtype):
    return ["--signature=q {0}[n,d], k {0}[m,d], v {0}[m,e], out {0}[n,e], "
            "n int, m int, d int, e int".format(dtype)]


def grouped(dtype):
    return ["--signature=q {0}[h,n,d], k {0}[g,m,d], v {0}[g,m,e], "
            "out {0}[h,n,e], h int, g int, n int, m int, d int, "
            "e int".format(dtype)]


CAUSAL = ["--expect=causal=bottom_right"]
ZOO = [
    ("one_head", "correct", plain("f64")),
    ("groups_causal", "correct", grouped("f64") + CAUSAL),
    ("width_rounded_up", "scale-padded-head-dim", plain("f32")),
    ("groups_by_modulo", "gqa-tile", grouped("f32")),
    ("rows_count_from_zero", "causal-corner", plain("f64") + CAUSAL),
    ("blocks_of_four", "tail-tile-unmasked", plain("f32")),
    ("maximum_from_zero", "online-max-stale|softmax-no-max", plain("f64")),
    ("modulo_unscaled", "gqa-tile + scale-missing", grouped("f32")),
    ("crashes", "unusable", plain("f64")),
    ("aborts", "unusable", plain("f64")),
]
