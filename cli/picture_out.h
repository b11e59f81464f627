/* SPDX-License-Identifier: Apache-2.0
 *
 * A figure into a file, PNG or SVG by the file's name. */
#ifndef ATTN_CLI_PICTURE_OUT_H
#define ATTN_CLI_PICTURE_OUT_H

#include "attn_picture.h"
#include "cli.h"

/* Before any work is done: does the name end in .png or .svg? `option` as the
 * user wrote it, "-o". CLI_GO or CLI_USAGE. */
int cli_picture_path(const char *option, const char *path);
/* Write to such a path. CLI_GO or an exit code. */
int cli_picture_write(const attn_figure *figure, const char *path);

#endif
