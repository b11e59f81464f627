/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of pictures, and writing them. */
#include "picture_out.h"

#include <string.h>
#include <strings.h>

static bool ends_in(const char *path, const char *ending)
{
    const char *dot = strrchr(path, '.');

    return dot && strcasecmp(dot, ending) == 0;
}

int cli_picture_path(const char *option, const char *path)
{
    if (ends_in(path, ".png") || ends_in(path, ".svg"))
        return CLI_GO;
    return cli_fail(CLI_USAGE, "%s: '%s' ends neither in .png nor in .svg",
                    option, path);
}

int cli_picture_write(const attn_figure *figure, const char *path)
{
    attn_diag diag;
    const attn_status status =
        ends_in(path, ".png") ? attn_figure_write_png(figure, path, &diag)
                              : attn_figure_write_svg(figure, path, &diag);

    if (status == ATTN_OK)
        return CLI_GO;
    return diag.status == ATTN_E_IO
               ? cli_fail(CLI_INPUT, "%s: %s", path, diag.message)
               : cli_refused(&diag);
}
