/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for people and for programs. */
#ifndef ATTN_CLI_PRINT_ARRAYS_H
#define ATTN_CLI_PRINT_ARRAYS_H

#include "attn_io.h"
#include "cli.h"

/* "(2, 3)", as Python writes it. */
void cli_shape_text(int32_t rank, const int64_t *shape, char *text,
                    size_t size);

/* A table (name, shape, type, least, largest), then the values of the small
 * arrays. NaNs are counted, not compared. */
void cli_print_arrays(const attn_array *arrays, int n);
/* The beginning of a JSON object: its schema, which docs/json.md describes. */
void cli_json_begin(const char *schema);
/* The same as a JSON list. JSON has no NaN and no infinity: they are the
 * strings "NaN", "Infinity" and "-Infinity". */
void cli_json_arrays(const attn_array *arrays, int n);
/* A string with its quotes. */
void cli_json_string(const char *text);

#endif
