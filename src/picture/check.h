/* SPDX-License-Identifier: Apache-2.0
 *
 * What a figure must be, asked once; behind it nothing is checked again. */
#ifndef ATTN_PICTURE_CHECK_H
#define ATTN_PICTURE_CHECK_H

#include "attn_picture.h"

attn_status attn__check_figure(const attn_figure *figure, attn_diag *diag);

#endif
