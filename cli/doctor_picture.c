/* SPDX-License-Identifier: Apache-2.0
 *
 * What the doctor saw as a picture: one head as it should be, and as it is. */
#include <stdio.h>
#include <string.h>

#include "doctor_picture.h"
#include "picture_out.h"

static void describe(const attn_report *report, const attn_report_head *h,
                     char *note, size_t size)
{
    const attn_finding *f = attn_report_fault(report, 0);

    snprintf(note, size, "%s, %s of head %lld, batch %lld",
             f ? f->id : attn_verdict_name(attn_report_verdict(report)),
             h->what, (long long)h->head, (long long)h->batch);
}

static attn_figure figure_of(const attn_report_head *h, attn_panel panels[2])
{
    const int64_t shape[2] = {h->rows, h->columns};
    bool weights = h->visible != NULL;
    attn_figure f;

    panels[0] = (attn_panel){
        .title = "as it should be",
        .values = attn_in_dense(h->right, ATTN_F64, 2, shape)};
    panels[1] = (attn_panel){
        .title = "as it is",
        .values = attn_in_dense(h->theirs, ATTN_F64, 2, shape)};
    if (weights)
        panels[0].shown = attn_in_dense(h->visible, ATTN_BOOL, 2, shape);
    attn_figure_init(&f, panels, 2);
    f.columns = 2;
    f.row_axis = "query";
    f.column_axis = weights ? "key" : "channel";
    f.value = weights ? "weight" : "output";
    for (int64_t x = 0; weights && x < h->rows * h->columns; x++)
        weights = h->theirs[x] >= 0;
    if (weights)
        f.low = 0;
    return f;
}

int cli_doctor_draw(const attn_report *report, const char *path)
{
    const attn_report_head *h = attn_report_drawing(report);
    char note[160];
    attn_panel panels[2];
    attn_figure f;

    if (!h)
        return cli_fail(CLI_INPUT, "--picture: there is nothing to draw");
    f = figure_of(h, panels);
    describe(report, h, note, sizeof note);
    f.note = note;
    return cli_picture_write(&f, path);
}
