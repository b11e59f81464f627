/* SPDX-License-Identifier: Apache-2.0
 *
 * A scene as SVG. */
#ifndef ATTN_PICTURE_SVG_H
#define ATTN_PICTURE_SVG_H

#include "picture/scene.h"
#include "picture/stream.h"

/* Write it to the stream, whose failures remain there. `heat` is scratch. */
void attn__svg_write(const attn__scene *scene, const attn_figure *figure,
                     attn__heat *heat, attn__stream *stream);

#endif
