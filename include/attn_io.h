/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_io.h: arrays from and to files (.npy, .npz), and from .safetensors.
 *
 * A file is opened, its entries are listed, and the wanted ones are loaded.
 * Every length in a file is treated as hostile: it is checked before it is
 * used, and nothing is allocated that the file's own size does not justify.
 * Pickled objects are never loaded. docs/formats.md has the accepted subset
 * of each format and the answer to everything else.
 *
 * Statuses: E_IO (the system), E_FORMAT, E_TRUNCATED, E_OVERFLOW, E_LIMIT,
 * E_DUPLICATE, E_UNSUPPORTED (valid, refused), E_NOMEM. The diag's field is
 * the array's name, or "file". Since 0.1. */
#ifndef ATTN_IO_H
#define ATTN_IO_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_ARRAY_MAX_RANK 8

/* An array that owns its memory: row-major, native byte order. Integer and
 * boolean file types other than int32 and bool arrive as ATTN_I64. An array
 * of text has dtype ATTN_NONE and `text` instead of `data`: `count` UTF-8
 * strings. */
typedef struct attn_array {
    char *name;
    attn_dtype dtype;
    int32_t rank;
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    int64_t count; /* product of shape */
    void *data;
    char **text;
} attn_array;

/* An array of zeros with its own copy of the name. On failure (E_ARG, E_SHAPE,
 * E_DTYPE, E_OVERFLOW, E_NOMEM) `array` is zeroed. */
ATTN_API attn_status attn_array_init(attn_array *array, const char *name,
                                     attn_dtype dtype, int32_t rank,
                                     const int64_t *shape, attn_diag *diag);
/* Frees what the array owns (by attn_free) and zeroes it; not the struct
 * itself. */
ATTN_API void attn_array_free(attn_array *array);
/* The same numbers as f64, f32, bf16 or f16, rounded once (integers beyond
 * 2^53 twice). E_DTYPE for text and other targets; on failure (or E_NOMEM) the
 * array is as it was. */
ATTN_API attn_status attn_array_convert(attn_array *array, attn_dtype dtype,
                                        attn_diag *diag);
/* Element `index` of the row-major order, as a double; NaN for text. */
ATTN_API double attn_array_value(const attn_array *array, int64_t index);

/* One entry of a file, before its data are read. The strings belong to the
 * file. An entry that is well-formed but of a kind that is not read, such as
 * pickled objects, does not keep the others from being read: its status says
 * what attn_file_load will return, and only its strings are set. */
typedef struct attn_entry {
    const char *name;
    const char *format; /* the type as the file spells it, "<f4", "F32" */
    attn_status status; /* OK, E_UNSUPPORTED or E_LIMIT */
    attn_dtype dtype;   /* what attn_file_load will give; ATTN_NONE = text */
    int32_t rank;
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    int64_t count;
} attn_entry;

typedef struct attn_file attn_file;

/* Open a file of a known format, by its first bytes (a .safetensors, which has
 * no magic, also by its name). A .npy has one entry, named by the file's stem.
 * On success *file is the caller's to close; on failure it is NULL. */
ATTN_API attn_status attn_file_open(const char *path, attn_file **file,
                                    attn_diag *diag);
ATTN_API void attn_file_close(attn_file *file);
/* The formats that this build reads, as snprintf: "npy npz safetensors".
 * Archives need libzip when it is built. */
ATTN_API size_t attn_file_formats(char *text, size_t size);
/* "npy", "npz" or "safetensors". */
ATTN_API const char *attn_file_format(const attn_file *file);
ATTN_API int64_t attn_file_count(const attn_file *file);
/* 0 <= index < count. */
ATTN_API const attn_entry *attn_file_entry(const attn_file *file,
                                           int64_t index);
/* The index of the entry with that name, exact case first, then ignoring
 * case; -1 if there is none. */
ATTN_API int64_t attn_file_find(const attn_file *file, const char *name);
/* Read one entry whole. On success `array` is the caller's to free; on
 * failure it is zeroed. */
ATTN_API attn_status attn_file_load(attn_file *file, int64_t index,
                                    attn_array *array, attn_diag *diag);

/* Write arrays as .npz (stored, not compressed) or one as .npy, into a
 * temporary file beside `path` that replaces it when complete: on failure
 * `path` is as it was. bf16 is written as 2-byte void (V2), text as 'U'. */
ATTN_API attn_status attn_npz_write(const char *path, const attn_array *arrays,
                                    int64_t n, attn_diag *diag);
ATTN_API attn_status attn_npy_write(const char *path, const attn_array *array,
                                    attn_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
