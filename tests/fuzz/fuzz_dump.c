/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps for the doctor: arrays with names that it looks for, of any type,
 * shape and numbers. Each array is a name, a type, a rank, that many lengths
 * below 4, and elements; what is cut short is filled up with 1. Few have the
 * time for a long search. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "attn_doctor.h"

static const char *const names[] = {
    "q", "k", "v", "o", "do", "dq", "dk", "dv", "mask", "bias", "scale",
    "softcap", "sinks", "alibi_slopes", "k_lengths", "weights", "lse", "x"};
enum { N_NAMES = sizeof names / sizeof names[0], MOST_ARRAYS = 12,
       MOST_BYTES = 3 * 3 * 3 * 3 * 8 };

typedef struct source {
    const uint8_t *data;
    size_t size, at;
} source;

static unsigned next(source *s)
{
    return s->at < s->size ? s->data[s->at++] : 1;
}

static void fill(source *s, attn_dump_array *array, unsigned char *bytes)
{
    const attn_dtype dtype = (attn_dtype)(1 + next(s) % ATTN_I64);
    const int32_t rank = (int32_t)(next(s) % 5);
    int64_t shape[4], count = 1;
    size_t left;

    for (int32_t a = 0; a < rank; a++) {
        shape[a] = next(s) % 4;
        count *= shape[a];
    }
    left = (size_t)count * attn_dtype_size(dtype);
    for (size_t x = 0; x < left; x++)
        bytes[x] = (unsigned char)next(s);
    for (size_t x = 0; dtype == ATTN_BOOL && x < left; x++)
        bytes[x] &= 1;
    array->tensor = attn_in_dense(bytes, dtype, rank, shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[MOST_ARRAYS][MOST_BYTES];
    source s = {data, size, 0};
    attn_dump_array arrays[MOST_ARRAYS];
    attn_doctor_options options;
    attn_report *report;
    attn_diag diag;
    int32_t n = 0;

    attn_doctor_options_init(&options);
    options.expect = next(&s) % 2 ? "causal=top_left" : NULL;
    options.seconds = next(&s) == 255 ? 1e-3 : 1e-6;
    while (s.at < s.size && n < MOST_ARRAYS) {
        arrays[n].name = names[next(&s) % N_NAMES];
        fill(&s, &arrays[n], bytes[n]);
        n++;
    }
    fuzz_count_memory((size_t)1 << 28);
    if (attn_doctor_examine_dump("dump", arrays, n, &options, &report,
                                 &diag) == ATTN_OK) {
        PROPERTY((unsigned)attn_report_verdict(report) <= 3);
        PROPERTY(strlen(attn_report_text(report)) > 0);
        PROPERTY(strlen(attn_report_json(report)) > 0);
        attn_report_free(report);
    }
    PROPERTY(fuzz_live_blocks() == 0);
    return 0;
}
