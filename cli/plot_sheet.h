/* SPDX-License-Identifier: Apache-2.0
 *
 * How attn plot's picture looks, and drawing it. */
#ifndef ATTN_CLI_PLOT_SHEET_H
#define ATTN_CLI_PLOT_SHEET_H

#include "attn_picture.h"
#include "drawn.h"

typedef struct cli_plot {
    const char *output; /* ends in .png or .svg, in any case */
    const char *title;  /* "": none */
    attn_theme theme;
    int shades; /* an attn_shades; -1: by the number of keys */
    int64_t cell, density, columns;
} cli_plot;

/* `tokens` may be NULL. CLI_GO or an exit code. */
int cli_plot_draw(const cli_plot *plot, const cli_drawn *drawn,
                  const attn_array *tokens);

#endif
