/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of items and its memory. Running out is remembered, so that who
 * places things need not ask after each. */
#include "picture/scene.h"

#include "core/alloc.h"
#include "picture/font.h"

static bool make_room(attn__scene *scene)
{
    const size_t room = scene->room ? 2 * scene->room : 64;
    attn__item *grown;

    if (scene->n < scene->room)
        return true;
    grown = attn__realloc_array(scene->items, room, sizeof *grown);
    if (!grown)
        return false;
    scene->items = grown;
    scene->room = room;
    return true;
}

void attn__scene_add(attn__scene *scene, attn__item item)
{
    char *copy = item.text ? attn__strdup(item.text) : NULL;

    if ((item.text && !copy) || !make_room(scene)) {
        attn__free(copy);
        scene->short_of_memory = true;
        return;
    }
    item.text = item.owned = copy;
    scene->items[scene->n++] = item;
}

void attn__scene_rect(attn__scene *scene, double x, double y, double width,
                      double height, uint32_t color)
{
    attn__scene_add(scene, (attn__item){.kind = ATTN__RECT, .x = x, .y = y,
                                        .width = width, .height = height,
                                        .color = color});
}

attn__item attn__plain_text(const attn__scene *scene, const char *text,
                            double x, double y)
{
    return (attn__item){.kind = ATTN__TEXT, .x = x,
                        .y = y + ATTN__CAP_HEIGHT / 2,
                        .color = scene->colors.ink, .text = text,
                        .size = ATTN__TEXT_SIZE};
}

double attn__room_for(const attn__scene *scene, const char *text, double size)
{
    return scene->slack * attn__text_width(text, size);
}

void attn__scene_free(attn__scene *scene)
{
    for (size_t i = 0; i < scene->n; i++)
        attn__free(scene->items[i].owned);
    attn__free(scene->items);
    scene->items = NULL;
    scene->n = scene->room = 0;
}
