# SPDX-License-Identifier: Apache-2.0
#
# Style: a seminar's exercises in C.
SOURCE = "c_seminar.c"


def plain(dtype):
    return ["--signature=q {0}[n,d], k {0}[m,d], v {0}[m,e], out {0}[n,e], "
            "n int, m int, d int, e int".format(dtype)]


GROUPED = ["--signature=q f32[h,n,d], k f32[g,m,d], v f32[g,m,e], "
           "out f32[h,n,e], h long, g long, n long, m long, d long, e long"]
ZOO = [
    ("plain", "correct", plain("f64")),
    ("online", "correct", plain("f32")),
    ("unrolled_by_four", "tail-tile-unmasked", plain("f64")),
    ("keys_by_columns", "k-wrong-transpose", plain("f64")),
    ("sum_not_rescaled", "online-max-stale", plain("f64")),
    ("without_maximum", "softmax-no-max", plain("f32")),
    ("groups_by_modulo", "gqa-tile", GROUPED),
    ("crashes", "unusable", plain("f64")),
]
