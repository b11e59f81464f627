/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of npz.c where libzip was not there to build with: archives are
 * known by their first bytes, and refused. Writing them needs no libzip. */
#include "core/diag.h"
#include "io/reader.h"

#include <string.h>

/* Any kind of ZIP, so that none is called an unknown format. */
static bool probe(const uint8_t *head, size_t n)
{
    return n >= 4 && memcmp(head, "PK", 2) == 0;
}

static attn_status open_npz(attn_file *file, attn_diag *diag)
{
    (void)file;
    return attn__fail(diag, ATTN_E_UNSUPPORTED, "file",
                      "is an archive; this build reads no .npz, for want of "
                      "libzip");
}

static void close_npz(attn_file *file)
{
    (void)file;
}

const attn__reader attn__npz_reader = {"npz", NULL, probe, open_npz, NULL,
                                       close_npz};
