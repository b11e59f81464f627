/* SPDX-License-Identifier: Apache-2.0
 *
 * io_faults: the faults of file_faults.h under the readers and writers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit/io/zip_maker.h"
#include "../unit/unit.h"
#include "attn_io.h"
#include "file_faults.h"

static char in_npy[64], in_npz[64], in_safetensors[64];

static attn_status read_file(const char *path, unsigned *sum)
{
    attn_file *file;
    attn_status status = attn_file_open(path, &file, NULL);

    for (int64_t i = 0; !status && i < attn_file_count(file); i++) {
        attn_array a;

        status = attn_file_load(file, i, &a, NULL);
        if (status == ATTN_OK && a.text)
            *sum = mix(*sum, a.text[0], strlen(a.text[0]));
        else if (status == ATTN_OK)
            *sum = mix(*sum, a.data,
                       (size_t)a.count * attn_dtype_size(a.dtype));
        attn_array_free(&a);
    }
    attn_file_close(file);
    return status;
}

static attn_status read_npy(unsigned *sum)
{
    return read_file(in_npy, sum);
}

static attn_status read_npz(unsigned *sum)
{
    return read_file(in_npz, sum);
}

static attn_status read_safetensors(unsigned *sum)
{
    return read_file(in_safetensors, sum);
}

static double numbers[] = {1, 2, 3, 4, 5, 6};
static char *strings[] = {"a", "b"};
static const attn_array arrays[] = {
    {.name = "q", .dtype = ATTN_F64, .rank = 2, .shape = {2, 3}, .count = 6,
     .data = numbers},
    {.name = "t", .rank = 1, .shape = {2}, .count = 2, .text = strings}};

static attn_status write_npy(unsigned *sum)
{
    (void)sum;
    return attn_npy_write(fault_out, &arrays[0], NULL);
}

static attn_status write_npz(unsigned *sum)
{
    (void)sum;
    return attn_npz_write(fault_out, arrays, 2, NULL);
}

static attn_status convert(unsigned *sum)
{
    const int64_t shape = 3;
    attn_array a;
    attn_status status = attn_array_init(&a, "x", ATTN_F64, 1, &shape, NULL);

    if (status == ATTN_OK)
        status = attn_array_convert(&a, ATTN_F16, NULL);
    if (status == ATTN_OK)
        *sum = mix(*sum, a.data, 6);
    attn_array_free(&a);
    return status;
}

static const file_scene scenes[] = {
    {.name = "read .npy", .play = read_npy},
    {.name = "read .npz", .play = read_npz},
    {.name = "read .safetensors", .play = read_safetensors},
    {.name = "write .npy", .play = write_npy, .writes = true},
    {.name = "write .npz", .play = write_npz, .writes = true},
    {.name = "make and convert", .play = convert, .no_files = true},
};

/* Two tensors, and more of no bytes than there is room for at first. */
static void make_safetensors(void)
{
    bytes text = {0}, file = {0};
    char piece[128];
    FILE *out;

    add_text(&text, "{\"x\": {\"dtype\": \"BF16\", \"shape\": [2, 3], "
                    "\"data_offsets\": [0, 12]}");
    for (int i = 0; i < 20; i++) {
        snprintf(piece, sizeof piece, ", \"n%d\": {\"dtype\": \"I8\", "
                 "\"shape\": [0], \"data_offsets\": [0, 0]}", i);
        add_text(&text, piece);
    }
    add_text(&text, "}");
    add_le(&file, text.n, 8);
    add(&file, text.data, text.n);
    add_zeros(&file, 12);
    snprintf(in_safetensors, sizeof in_safetensors, "%s/in.safetensors",
             fault_folder);
    out = fopen(in_safetensors, "wb");
    fwrite(file.data, 1, file.n, out);
    fclose(out);
    drop(&text);
    drop(&file);
}

/* A Fortran-ordered .npy of the other byte order, and a .npz of deflated
 * members with descriptors and ZIP64 records. */
static void make_inputs(void)
{
    static const char *const names[] = {"a.npy", "t.npy"};
    const zip_plan plan = {true, true, true};
    bytes npy = npy_of(1, "{'descr': '>f4', 'fortran_order': True, "
                       "'shape': (2, 3), }", 24);
    bytes contents[] = {npy_array("<i2", "(300,)", 600),
                        npy_array("|S4", "(1,)", 4)};
    zip_made z = zip_of(&plan, 2, names, contents);
    FILE *file;

    snprintf(in_npy, sizeof in_npy, "%s/in.npy", fault_folder);
    snprintf(in_npz, sizeof in_npz, "%s/in.npz", fault_folder);
    file = fopen(in_npy, "wb");
    fwrite(npy.data, 1, npy.n, file);
    fclose(file);
    file = fopen(in_npz, "wb");
    fwrite(z.b.data, 1, z.b.n, file);
    fclose(file);
    drop(&npy);
    drop(&contents[0]);
    drop(&contents[1]);
    drop(&z.b);
}

int main(void)
{
    begin_faults();
    make_inputs();
    make_safetensors();
    for (size_t s = 0; s < COUNT(scenes); s++)
        play_scene(&scenes[s]);
    unlink(in_npy);
    unlink(in_npz);
    unlink(in_safetensors);
    return end_faults();
}
