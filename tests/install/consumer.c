/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody's program, which calls every installed library once. installed.py
 * builds it outside of the source tree. */
#include <attn.h>
#include <attn_bench.h>
#include <attn_doctor.h>
#include <attn_io.h>
#include <attn_lab.h>
#include <attn_layer.h>
#include <attn_picture.h>
#include <attn_ref.h>
#include <attn_subject.h>

#include <stdio.h>
#include <string.h>

/* One query that sees one key: o is v. */
static int core(void)
{
    const double q = 1, k = 2, v = 7;
    double o = 0;
    attn_desc desc;
    attn_args args;
    attn_diag diag;

    attn_desc_init(&desc, ATTN_F64, 1, 1, 1, 1, 1, 1, 1);
    attn_args_init(&args);
    args.q = attn_in_bhsd(&q, ATTN_F64, 1, 1, 1, 1);
    args.kv.k = attn_in_bhsd(&k, ATTN_F64, 1, 1, 1, 1);
    args.kv.v = attn_in_bhsd(&v, ATTN_F64, 1, 1, 1, 1);
    args.o = attn_bhsd(&o, ATTN_F64, 1, 1, 1, 1);
    return attn_attention(&desc, &args, 1, &diag) == ATTN_OK && o == v;
}

static int others(void)
{
    attn_layer_desc layer;
    attn_ref_problem problem;
    attn_doctor_options doctor;
    attn_subject_options subject;
    char formats[64];

    attn_layer_desc_init(&layer, ATTN_F32, 1, 4, 8, 2, 2);
    attn_ref_problem_init(&problem, 1, 1, 1, 1, 1, 1, 1);
    attn_doctor_options_init(&doctor);
    attn_subject_options_init(&subject);
    attn_file_formats(formats, sizeof formats);
    return layer.dim_y == 8 && strstr(formats, "npy") &&
           strstr(attn_picture_formats(), "svg") && attn_lab_count() > 0 &&
           attn_bench_count() > 0;
}

int main(void)
{
    if (!core() || !others())
        return 1;
    printf("libattn %u\n", (unsigned)attn_version());
    return 0;
}
