/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices to draw, figures of them, and dots out of PNG files. */
#ifndef ATTN_TESTS_PICTURES_H
#define ATTN_TESTS_PICTURES_H

#include "attn_picture.h"

/* Dots of a decoded PNG, 3 or 4 bytes each. */
typedef struct dots {
    int64_t width, height;
    int channels;
    unsigned char *at; /* to be freed */
} dots;

/* Fails the test if the bytes are no PNG. */
dots decode_png(const void *data, size_t size);
/* 0xRRGGBB */
uint32_t dot_at(const dots *d, int64_t x, int64_t y);
uint64_t hash_dots(const dots *d);

/* Pictures that have everything, each with the memory it refers to. */
typedef struct sample {
    const char *name;
    attn_figure figure;
    void *memory; /* freed by drop_sample */
} sample;

enum { N_SAMPLES = 6 };
sample make_sample(int which);
void drop_sample(sample *s);

/* Words of a sentence, 16 of them. */
extern const char *const words[16];

#endif
