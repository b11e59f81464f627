/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing .npz: members stored, in the order given, with a fixed date, so that
 * the bytes depend on nothing but the arrays. (libzip would add the clock and
 * copies of the data.) Sizes and offsets of 4 GiB and more go to ZIP64. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/npy_write.h"
#include "io/reader.h"
#include "io/unicode.h"
#include "io/zip_bytes.h"
#include "io/zip_directory.h"

#define DOS_DATE 0x0021u /* 1 January 1980, the first there is */
#define UNIX 0x0300u
#define VERSION 20u
#define VERSION64 45u
#define REGULAR_FILE (0100644u << 16)
#define HEADER_MAX (46 + ATTN__MAX_NAME + 28)

/* Known before the first byte is written, but for `offset`. */
typedef struct member {
    const char *name;
    attn__npy_layout layout;
    uint32_t crc;
    int64_t size, offset;
} member;

typedef struct writer {
    attn__output output;
    int64_t at; /* bytes written */
    member *members;
    int64_t n;
} writer;

/* ------------------------------------------------------------ checksum */

/* CRC-32 of IEEE 802.3 over what is written, a byte at a time by a table made
 * on the stack: there is no global state, and 256 steps are nothing beside a
 * member. */
typedef struct crc_sink {
    attn__sink base;
    uint32_t table[256], crc;
} crc_sink;

static attn_status write_crc(attn__sink *sink, const void *data, size_t n,
                             attn_diag *diag)
{
    crc_sink *s = (crc_sink *)sink;
    const uint8_t *at = data;
    uint32_t crc = s->crc;

    (void)diag;
    for (size_t i = 0; i < n; i++)
        crc = s->table[(crc ^ at[i]) & 0xff] ^ crc >> 8;
    s->crc = crc;
    return ATTN_OK;
}

static void crc_begin(crc_sink *s)
{
    s->base.write = write_crc;
    s->crc = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;

        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        s->table[i] = value;
    }
}

/* ------------------------------------------------------------- records */

/* A value, or the mark that says to look into the ZIP64 field. */
static uint32_t narrow(int64_t value)
{
    return value < ATTN__ZIP_SEE64 ? (uint32_t)value : ATTN__ZIP_SEE64;
}

/* The mark itself cannot be written as a value, so it counts as too large. */
static bool is_wide(int64_t value)
{
    return value >= ATTN__ZIP_SEE64;
}

/* A name that is all ASCII needs no mark and gets none, as with Python's
 * zipfile. */
static unsigned flags_of(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= 0x80)
            return ATTN__ZIP_UTF8;
    return 0;
}

/* The fields that both headers of a member share, from the version needed to
 * the length of the extra field; zip_directory.c has the two layouts. Version
 * 2.0 is what folders and deflate ask for, 4.5 what ZIP64 does. */
static uint8_t *put_common(uint8_t *p, const member *m, unsigned n_extra)
{
    p = attn__put16(p, n_extra ? VERSION64 : VERSION);
    p = attn__put16(p, flags_of(m->name));
    p = attn__put16(p, 0); /* stored */
    p = attn__put16(p, 0); /* midnight */
    p = attn__put16(p, DOS_DATE);
    p = attn__put32(p, m->crc);
    p = attn__put32(p, narrow(m->size));
    p = attn__put32(p, narrow(m->size));
    p = attn__put16(p, (unsigned)strlen(m->name) + 4);
    return attn__put16(p, n_extra);
}

/* A member's name is the array's and ".npy", as numpy.savez has it. */
static uint8_t *put_name(uint8_t *p, const member *m)
{
    const size_t n = strlen(m->name);

    memcpy(p, m->name, n);
    memcpy(p + n, ".npy", 4);
    return p + n + 4;
}

/* The ZIP64 field: the sizes, and the offset in the directory, if wide. */
static uint8_t *put_extra(uint8_t *p, const member *m, unsigned n_extra,
                          bool with_offset)
{
    if (n_extra == 0)
        return p;
    p = attn__put16(p, 0x0001);
    p = attn__put16(p, n_extra - 4);
    if (is_wide(m->size)) {
        p = attn__put64(p, (uint64_t)m->size);
        p = attn__put64(p, (uint64_t)m->size);
    }
    if (with_offset)
        p = attn__put64(p, (uint64_t)m->offset);
    return p;
}

/* Headers are built in memory and written whole: `at` counts every byte that
 * the file has, since offsets come from it. */
static attn_status put(writer *w, const uint8_t *from, const uint8_t *to,
                       attn_diag *diag)
{
    const size_t n = (size_t)(to - from);

    w->at += (int64_t)n;
    return attn__output_write(&w->output, from, n, diag);
}

/* Before each member's data. Sizes are known, so there is no data descriptor.
 */
static attn_status write_local(writer *w, const member *m, attn_diag *diag)
{
    const unsigned n_extra = is_wide(m->size) ? 20 : 0;
    uint8_t header[HEADER_MAX], *p = header;

    p = attn__put32(p, ATTN__ZIP_LOCAL);
    p = put_common(p, m, n_extra);
    p = put_name(p, m);
    p = put_extra(p, m, n_extra, false);
    return put(w, header, p, diag);
}

/* A record of the directory: the same again, with attributes and the offset. */
static attn_status write_central(writer *w, const member *m, attn_diag *diag)
{
    const bool far = is_wide(m->offset);
    const unsigned fields = (is_wide(m->size) ? 16u : 0) + (far ? 8u : 0);
    const unsigned n_extra = fields ? 4 + fields : 0;
    uint8_t header[HEADER_MAX], *p = header;

    p = attn__put32(p, ATTN__ZIP_CENTRAL);
    p = attn__put16(p, UNIX | VERSION64);
    p = put_common(p, m, n_extra);
    p = attn__put32(p, 0); /* no comment, first volume */
    p = attn__put16(p, 0);
    p = attn__put32(p, REGULAR_FILE);
    p = attn__put32(p, narrow(m->offset));
    p = put_name(p, m);
    p = put_extra(p, m, n_extra, far);
    return put(w, header, p, diag);
}

/* The end record of a directory that began at `begin`; before it, if a number
 * is too large, its 64-bit double with a locator. */
static attn_status write_end(writer *w, int64_t begin, attn_diag *diag)
{
    const int64_t end = w->at, size = end - begin;
    const unsigned n = w->n < 0xffff ? (unsigned)w->n : 0xffffu;
    uint8_t record[98], *p = record;

    if (n == 0xffffu || is_wide(begin) || is_wide(size)) {
        p = attn__put32(p, ATTN__ZIP_END64);
        p = attn__put64(p, 44);
        p = attn__put16(p, UNIX | VERSION64);
        p = attn__put16(p, VERSION64);
        p = attn__put64(p, 0);
        p = attn__put64(p, (uint64_t)w->n);
        p = attn__put64(p, (uint64_t)w->n);
        p = attn__put64(p, (uint64_t)size);
        p = attn__put64(p, (uint64_t)begin);
        p = attn__put32(p, ATTN__ZIP_LOCATOR64);
        p = attn__put32(p, 0);
        p = attn__put64(p, (uint64_t)end);
        p = attn__put32(p, 1);
    }
    p = attn__put32(p, ATTN__ZIP_END);
    p = attn__put32(p, 0);
    p = attn__put16(p, n);
    p = attn__put16(p, n);
    p = attn__put32(p, narrow(size));
    p = attn__put32(p, narrow(begin));
    p = attn__put16(p, 0);
    return put(w, record, p, diag);
}

/* --------------------------------------------------------- the archive */

/* The names must be such as our reader accepts. */
static attn_status check_name(const char *name, attn_diag *diag)
{
    ATTN__REQUIRE(name && *name, diag, ATTN_E_ARG, "name",
                  "an array in an archive needs a name");
    ATTN__REQUIRE(strlen(name) + 4 <= ATTN__MAX_NAME &&
                      attn__is_plain_utf8(name, (int64_t)strlen(name)) &&
                      name[strlen(name) - 1] != '/' &&
                      attn__zip_name_stays_inside(name),
                  diag, ATTN_E_ARG, name, "is no name for an archive");
    return ATTN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static attn_status check_names(const attn_array *arrays, int64_t n,
                               attn_diag *diag)
{
    const char **order = attn__realloc_array(NULL, (size_t)n, sizeof *order);
    attn_status status = ATTN_OK;

    ATTN__REQUIRE(order, diag, ATTN_E_NOMEM, "file", "no memory for %lld names",
                  (long long)n);
    for (int64_t i = 0; i < n; i++) {
        order[i] = arrays[i].name;
        if (status == ATTN_OK)
            status = check_name(arrays[i].name, diag);
    }
    if (status == ATTN_OK && n > 1)
        qsort(order, (size_t)n, sizeof *order, by_name);
    for (int64_t i = 1; i < n && status == ATTN_OK; i++)
        if (strcmp(order[i - 1], order[i]) == 0)
            status = attn__fail(diag, ATTN_E_DUPLICATE, order[i],
                                "is the name of two arrays");
    attn__free(order);
    return status;
}

/* All that the headers of a member need: its layout, and by a first walk over
 * the data its CRC. */
static attn_status prepare(const attn_array *array, member *m, crc_sink *crc,
                           attn_diag *diag)
{
    m->name = array->name;
    ATTN__TRY(attn__npy_layout_of(array, &m->layout, diag));
    ATTN__REQUIRE(attn__add_i64(m->layout.header_size, m->layout.data_size,
                                &m->size),
                  diag, ATTN_E_OVERFLOW, m->name, "is too large for a file");
    crc_begin(crc);
    ATTN__TRY(attn__npy_emit(array, &m->layout, &crc->base, diag));
    m->crc = ~crc->crc;
    return ATTN_OK;
}

/* Members, directory, end: offsets are counted on the way, nothing is sought.
 */
static attn_status write_archive(writer *w, const attn_array *arrays,
                                 attn_diag *diag)
{
    attn__file_sink sink = attn__file_sink_to(&w->output);
    int64_t begin;

    for (int64_t i = 0; i < w->n; i++) {
        member *m = &w->members[i];

        m->offset = w->at;
        ATTN__TRY(write_local(w, m, diag));
        ATTN__TRY(attn__npy_emit(&arrays[i], &m->layout, &sink.base, diag));
        w->at += m->size;
    }
    begin = w->at;
    for (int64_t i = 0; i < w->n; i++)
        ATTN__TRY(write_central(w, &w->members[i], diag));
    return write_end(w, begin, diag);
}

/* The data are walked over twice, for the CRC and for the file, and never
 * copied: an archive of any size needs some hundred bytes a member. Nothing is
 * opened before all arrays have been found writable. */
attn_status attn_npz_write(const char *path, const attn_array *arrays,
                           int64_t n, attn_diag *diag)
{
    writer w = {.output = {-1, NULL, NULL}, .n = n};
    crc_sink crc;
    attn_status status = ATTN_OK;

    ATTN__REQUIRE(path, diag, ATTN_E_ARG, "path", "must not be NULL");
    ATTN__REQUIRE(n >= 0 && (arrays || n == 0), diag, ATTN_E_ARG, "n",
                  "%lld arrays are not there", (long long)n);
    ATTN__REQUIRE(n <= ATTN__MAX_MEMBERS, diag, ATTN_E_LIMIT, "n",
                  "%lld arrays exceed %d", (long long)n, ATTN__MAX_MEMBERS);
    ATTN__TRY(check_names(arrays, n, diag));
    w.members = attn__calloc((size_t)n, sizeof *w.members);
    ATTN__REQUIRE(w.members, diag, ATTN_E_NOMEM, "file",
                  "no memory for %lld members", (long long)n);
    for (int64_t i = 0; i < n && status == ATTN_OK; i++)
        status = prepare(&arrays[i], &w.members[i], &crc, diag);
    if (status == ATTN_OK)
        status = attn__output_open(&w.output, path, diag);
    if (status == ATTN_OK)
        status = write_archive(&w, arrays, diag);
    if (status == ATTN_OK)
        status = attn__output_commit(&w.output, diag);
    attn__output_end(&w.output);
    attn__free(w.members);
    return status == ATTN_OK ? attn__ok(diag) : status;
}
