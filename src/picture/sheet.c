/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of items and its memory. Running out is remembered, so that who
 * places things need not ask after each. */
#include "picture/sheet.h"

#include "core/alloc.h"
#include "picture/font.h"

static bool make_room(attn__sheet *sheet)
{
    const size_t room = sheet->room ? 2 * sheet->room : 64;
    attn__item *grown;

    if (sheet->n < sheet->room)
        return true;
    grown = attn__realloc_array(sheet->items, room, sizeof *grown);
    if (!grown)
        return false;
    sheet->items = grown;
    sheet->room = room;
    return true;
}

void attn__sheet_add(attn__sheet *sheet, attn__item item)
{
    char *copy = item.text ? attn__strdup(item.text) : NULL;

    if ((item.text && !copy) || !make_room(sheet)) {
        attn__free(copy);
        sheet->short_of_memory = true;
        return;
    }
    item.text = item.owned = copy;
    sheet->items[sheet->n++] = item;
}

void attn__sheet_rect(attn__sheet *sheet, double x, double y, double width,
                      double height, uint32_t color)
{
    attn__sheet_add(sheet, (attn__item){.kind = ATTN__RECT, .x = x, .y = y,
                                        .width = width, .height = height,
                                        .color = color});
}

attn__item attn__plain_text(const attn__sheet *sheet, const char *text,
                            double x, double y)
{
    return (attn__item){.kind = ATTN__TEXT, .x = x,
                        .y = y + ATTN__CAP_HEIGHT / 2,
                        .color = sheet->colors.ink, .text = text,
                        .size = ATTN__TEXT_SIZE};
}

double attn__room_for(const attn__sheet *sheet, const char *text, double size)
{
    return sheet->slack * attn__text_width(text, size);
}

void attn__sheet_free(attn__sheet *sheet)
{
    for (size_t i = 0; i < sheet->n; i++)
        attn__free(sheet->items[i].owned);
    attn__free(sheet->items);
    sheet->items = NULL;
    sheet->n = sheet->room = 0;
}
