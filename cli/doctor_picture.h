/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture of a report. */
#ifndef ATTN_CLI_DOCTOR_PICTURE_H
#define ATTN_CLI_DOCTOR_PICTURE_H

#include "attn_doctor.h"
#include "cli.h"

/* To a .png or .svg. CLI_GO or an exit code. */
int cli_doctor_draw(const attn_report *report, const char *path);

#endif
