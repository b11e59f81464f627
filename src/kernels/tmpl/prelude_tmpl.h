/* SPDX-License-Identifier: Apache-2.0
 *
 * What every instance of attention includes between its SIMD header and its
 * pass. */

#include "kernels/tmpl/names_tmpl.h"

#ifndef BY_TILES
#define BY_TILES 0
#define TILE_PARTS 0
#endif

#include "kernels/tmpl/exp_tmpl.h"
#include "kernels/tmpl/product_tmpl.h"
#include "kernels/tmpl/tile_tmpl.h"

#include "kernels/tmpl/keys_tmpl.h"
#include "kernels/tmpl/score_tmpl.h"
