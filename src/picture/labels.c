/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing labels that do not run into each other: every one where there is
 * room, upright columns where they are wider than their cells, else round
 * numbers. */
#include "picture/labels.h"

#include <math.h>
#include <string.h>

#include "picture/font.h"
#include "picture/ticks.h"

#define LEAST_PITCH 11.0 /* of one line of text to the next */
#define NUMBER_PITCH 18.0 /* where each row has its number */
#define TICK_PITCH 36.0   /* and where not */
#define APART 20.0  /* between numbers side by side */
#define GAP 7.0     /* between text and cells */
#define TICK 4.0
#define LINE 12.0   /* height of a line, GAP not counted */
#define ELLIPSIS "\xe2\x80\xa6"

void attn__cut(const attn__sheet *sheet, const char *text, double size,
               double room, char to[ATTN__CUT_SIZE])
{
    const double dots = attn__room_for(sheet, "." ELLIPSIS, size) -
                        attn__room_for(sheet, ".", size);
    size_t fits = 0, n = 0; /* bytes before the dots, bytes in all */

    to[0] = '\0';
    while (text[n]) {
        uint32_t point;
        const size_t next = n + (size_t)attn__next_point(text + n, &point);

        if (next + sizeof ELLIPSIS > ATTN__CUT_SIZE)
            break;
        memcpy(to + n, text + n, next - n);
        to[next] = '\0';
        if (attn__room_for(sheet, to, size) > room)
            break;
        if (attn__room_for(sheet, to, size) + dots <= room)
            fits = next;
        n = next;
    }
    if (text[n])
        memcpy(to + fits, ELLIPSIS, sizeof ELLIPSIS);
}

/* What stands at cell i. */
static void label_of(const attn__sheet *sheet, const attn__axis *axis,
                     int64_t i, char to[ATTN__CUT_SIZE])
{
    if (axis->numbers)
        attn__format(to, (double)(axis->first + i), 0);
    else
        attn__cut(sheet, axis->labels[i], axis->size, ATTN__LONGEST, to);
}

static double width_at(const attn__sheet *sheet, const attn__axis *axis,
                       int64_t i)
{
    char text[ATTN__CUT_SIZE];

    label_of(sheet, axis, i, text);
    return attn__room_for(sheet, text, axis->size);
}

static double widest(const attn__sheet *sheet, const attn__axis *axis)
{
    double width = 0;

    /* Of numbers the first or the last is the longest. */
    if (axis->numbers)
        return fmax(width_at(sheet, axis, 0),
                    width_at(sheet, axis, axis->n - 1));
    for (int64_t i = 0; i < axis->n; i++)
        width = fmax(width, width_at(sheet, axis, i));
    return width;
}

void attn__axis_plan(const attn__sheet *sheet, attn__axis *axis, bool is_rows)
{
    double least, width;

    axis->numbers = !axis->labels || axis->pitch < LEAST_PITCH;
    axis->size = axis->numbers || axis->pitch >= LEAST_PITCH + 2
                     ? ATTN__TEXT_SIZE
                     : ATTN__TEXT_SIZE - 1;
    width = widest(sheet, axis);
    least = axis->pitch;
    if (axis->numbers && is_rows && axis->pitch < NUMBER_PITCH)
        least = TICK_PITCH;
    if (axis->numbers && !is_rows && axis->pitch < width + GAP)
        least = width + APART;
    axis->step = attn__round_step(least / axis->pitch);
    axis->ticks = axis->step > 1;
    axis->turned = !is_rows && !axis->numbers && width + GAP > axis->pitch;
    axis->room = GAP + (is_rows || axis->turned ? width : LINE) +
                 (axis->ticks ? TICK : 0);
}

/* The first cell with a label: its number is a multiple of the step. */
static int64_t first_of(const attn__axis *axis)
{
    const int64_t rest = axis->first % axis->step;

    return rest > 0 ? axis->step - rest : -rest;
}

void attn__axis_rows(attn__sheet *sheet, const attn__axis *axis, double x,
                     double y)
{
    const double tick = axis->ticks ? TICK : 0;
    char text[ATTN__CUT_SIZE];

    for (int64_t i = first_of(axis); i < axis->n; i += axis->step) {
        const double middle = y + ((double)i + 0.5) * axis->pitch;
        attn__item item;

        label_of(sheet, axis, i, text);
        item = attn__plain_text(sheet, text, x - GAP - tick, middle);
        item.size = axis->size;
        item.anchor = ATTN__END;
        attn__sheet_add(sheet, item);
        if (axis->ticks)
            attn__sheet_rect(sheet, x - TICK, floor(middle), TICK, 1,
                             sheet->colors.faint);
    }
}

void attn__axis_columns(attn__sheet *sheet, const attn__axis *axis, double x,
                        double y)
{
    const double tick = axis->ticks ? TICK : 0;
    char text[ATTN__CUT_SIZE];

    for (int64_t i = first_of(axis); i < axis->n; i += axis->step) {
        const double middle = x + ((double)i + 0.5) * axis->pitch;
        attn__item item;

        label_of(sheet, axis, i, text);
        item = attn__plain_text(sheet, text, middle, y + GAP + tick);
        item.size = axis->size;
        if (axis->turned) {
            item.x += ATTN__CAP_HEIGHT / 2;
            item.y = y + GAP + tick;
            item.anchor = ATTN__END;
            item.turned = 1;
        } else {
            item.y += ATTN__CAP_HEIGHT / 2;
            item.anchor = ATTN__MIDDLE;
        }
        attn__sheet_add(sheet, item);
        if (axis->ticks)
            attn__sheet_rect(sheet, floor(middle), y, 1, TICK,
                             sheet->colors.faint);
    }
}
