/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and judging the directory of a ZIP archive: first every record by
 * itself, then against its local header, then all members together. */
#include "io/zip_directory.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/reader.h"
#include "io/unicode.h"
#include "io/zip_bytes.h"
#include "io/zip_end.h"

/* APPNOTE 4.3.12 and 4.3.7: sizes without name, extra fields and comment. */
#define CENTRAL_SIZE 46
#define LOCAL_SIZE 30
#define EXTRA_ZIP64 0x0001u
#define ZIP_VERSION 63

/* The narrow fields of a header that a ZIP64 extra field can replace (APPNOTE
 * 4.5.3). They are 64 bits wide here before and after. */
typedef struct wide_fields {
    uint64_t size, packed, offset;
} wide_fields;

/* One field of a ZIP64 extra field, taken or passed over; false at its end. */
static bool take64(const uint8_t **at, const uint8_t *end, uint64_t *value,
                   bool wanted)
{
    if (end - *at < 8)
        return false;
    if (wanted)
        *value = attn__get64(*at);
    *at += 8;
    return true;
}

/* Replace those fields that are all ones. The directory's field holds just
 * those, a local header's always both sizes. */
static bool apply_zip64(const uint8_t *at, const uint8_t *end, bool local,
                        wide_fields *f)
{
    const bool size = f->size == ATTN__ZIP_SEE64;
    const bool packed = f->packed == ATTN__ZIP_SEE64;

    return (!(size || local) || take64(&at, end, &f->size, size)) &&
           (!(packed || local) || take64(&at, end, &f->packed, packed)) &&
           (f->offset != ATTN__ZIP_SEE64 || take64(&at, end, &f->offset, true));
}

/* Walk over the extra fields extra[0..n-1], which must fill it exactly. */
static attn_status apply_extra(const uint8_t *extra, size_t n, bool local,
                               wide_fields *f, const char *name,
                               attn_diag *diag)
{
    const uint8_t *end = extra + n;
    bool seen = false;

    while (end - extra >= 4) {
        const unsigned id = attn__get16(extra);
        const size_t size = attn__get16(extra + 2);

        extra += 4;
        if ((size_t)(end - extra) < size)
            break;
        if (id == EXTRA_ZIP64) {
            ATTN__REQUIRE(!seen && apply_zip64(extra, extra + size, local, f),
                          diag, ATTN_E_FORMAT, name,
                          "has a damaged ZIP64 field");
            seen = true;
        }
        extra += size;
    }
    ATTN__REQUIRE(extra == end, diag, ATTN_E_FORMAT, name,
                  "has damaged extra fields");
    ATTN__REQUIRE(f->size <= INT64_MAX && f->packed <= INT64_MAX &&
                      f->offset <= INT64_MAX,
                  diag, ATTN_E_OVERFLOW, name,
                  "has a size or offset above 2^63 - 1");
    return ATTN_OK;
}

/* Part by part, between slashes. We never unpack to the disk, but who lists an
 * archive with us and unpacks it with something else should not be surprised.
 */
bool attn__zip_name_stays_inside(const char *name)
{
    const char *part = name;

    if (strchr(name, '\\') || (name[0] && name[1] == ':'))
        return false;
    for (;;) {
        const size_t n = strcspn(part, "/");

        if ((n == 0 && (part == name || *part)) ||
            (n <= 2 && strncmp(part, "..", n) == 0 && n > 0))
            return false;
        if (part[n] == '\0')
            return true;
        part += n + 1;
    }
}

/* Copy the name text[0..n-1] into m. A name that is not ASCII must be marked as
 * UTF-8, since it would otherwise be in a code page nobody knows. */
static attn_status take_name(const uint8_t *text, size_t n, unsigned flags,
                             attn__zip_member *m, attn_diag *diag)
{
    ATTN__REQUIRE(n > 0, diag, ATTN_E_FORMAT, "file",
                  "has a member without a name");
    ATTN__REQUIRE(n <= ATTN__MAX_NAME, diag, ATTN_E_LIMIT, "file",
                  "has a member with a name of %zu bytes; at most %d are read",
                  n, ATTN__MAX_NAME);
    ATTN__REQUIRE(attn__is_plain_utf8((const char *)text, (int64_t)n), diag,
                  ATTN_E_FORMAT, "file",
                  "has a member whose name is not plain UTF-8");
    m->name = attn__alloc(n + 1);
    ATTN__REQUIRE(m->name, diag, ATTN_E_NOMEM, "file", "no memory for a name");
    memcpy(m->name, text, n);
    m->name[n] = '\0';
    for (size_t i = 0; i < n; i++)
        ATTN__REQUIRE(text[i] < 0x80 || flags & ATTN__ZIP_UTF8, diag,
                      ATTN_E_UNSUPPORTED, m->name,
                      "has a name that is not marked as UTF-8");
    ATTN__REQUIRE(attn__zip_name_stays_inside(m->name), diag, ATTN_E_FORMAT,
                  m->name, "has a name that leads out of the archive");
    return ATTN_OK;
}

/* Whether we read this kind of member at all, and whether its sizes are such
 * as its method can have. */
static attn_status check_kind(const attn__zip_member *m, attn_diag *diag)
{
    ATTN__REQUIRE(m->needs <= ZIP_VERSION, diag, ATTN_E_UNSUPPORTED, m->name,
                  "needs version %d.%d of ZIP; up to 6.3 is read",
                  m->needs / 10, m->needs % 10);
    ATTN__REQUIRE(!(m->flags & ATTN__ZIP_ENCRYPTED), diag, ATTN_E_UNSUPPORTED,
                  m->name, "is encrypted");
    ATTN__REQUIRE(!(m->flags & ~ATTN__ZIP_KNOWN_FLAGS), diag,
                  ATTN_E_UNSUPPORTED, m->name, "has unknown flags (0x%04x)",
                  (unsigned)m->flags);
    ATTN__REQUIRE(m->method == 0 || m->method == 8, diag, ATTN_E_UNSUPPORTED,
                  m->name,
                  "is compressed by method %d; stored and deflated are read",
                  (int)m->method);
    ATTN__REQUIRE(m->method != 0 || m->size == m->packed, diag, ATTN_E_FORMAT,
                  m->name, "is stored, but has two sizes, %lld and %lld",
                  (long long)m->packed, (long long)m->size);
    ATTN__REQUIRE(m->method == 0 || (m->size <= ATTN__MAX_INFLATED &&
                                     attn__ceil_div(m->size, ATTN__MAX_RATIO) <=
                                         m->packed),
                  diag, ATTN_E_LIMIT, m->name,
                  "claims to inflate from %lld to %lld bytes, more than %d "
                  "times or 64 GiB", (long long)m->packed, (long long)m->size,
                  ATTN__MAX_RATIO);
    return ATTN_OK;
}

/* The record at p, of at most `left` bytes; *used of them are its own:
 *
 *      0 signature          4, 6 versions: made by, needed
 *      8 flags             10 method           12 time and date
 *     16 CRC               20 packed size      24 size
 *     28 length of name    30 of extra fields  32 of comment
 *     34 volume            36, 38 attributes   42 offset of the local header
 *     46 the name, the extra fields, the comment
 *
 * Times, attributes and comments mean nothing to an array: they are not
 * judged. */
static attn_status parse_central(const uint8_t *p, size_t left,
                                 attn__zip_member *m, size_t *used,
                                 attn_diag *diag)
{
    size_t n_name, n_extra;
    wide_fields f;

    ATTN__REQUIRE(left >= CENTRAL_SIZE && attn__get32(p) == ATTN__ZIP_CENTRAL,
                  diag, ATTN_E_FORMAT, "file",
                  "the archive's directory is damaged");
    n_name = attn__get16(p + 28);
    n_extra = attn__get16(p + 30);
    *used = CENTRAL_SIZE + n_name + n_extra + attn__get16(p + 32);
    ATTN__REQUIRE(*used <= left, diag, ATTN_E_FORMAT, "file",
                  "a record exceeds the archive's directory");
    m->needs = p[6];
    m->flags = attn__get16(p + 8);
    m->method = attn__get16(p + 10);
    m->crc = attn__get32(p + 16);
    ATTN__TRY(take_name(p + CENTRAL_SIZE, n_name, m->flags, m, diag));
    ATTN__REQUIRE(attn__get16(p + 34) == 0, diag, ATTN_E_UNSUPPORTED, m->name,
                  "lies in another volume");
    f = (wide_fields){attn__get32(p + 24), attn__get32(p + 20),
                      attn__get32(p + 42)};
    ATTN__TRY(apply_extra(p + CENTRAL_SIZE + n_name, n_extra, false, &f,
                          m->name, diag));
    m->size = (int64_t)f.size;
    m->packed = (int64_t)f.packed;
    m->begin = (int64_t)f.offset;
    return check_kind(m, diag);
}

/* A local size or checksum: as the directory has it, or zero where it was not
 * known yet and follows the data. */
static bool agrees(uint64_t local, uint64_t central, unsigned flags)
{
    return local == central || (flags & ATTN__ZIP_DESCRIPTOR && local == 0);
}

/* The local header says what the directory says. local[] holds all of it. Some
 * readers go by the directory and others by local headers: where the two differ
 * one archive would be two. */
static attn_status compare_local(const uint8_t *local, size_t n_name,
                                 size_t n_extra, const attn__zip_member *m,
                                 attn_diag *diag)
{
    wide_fields f = {attn__get32(local + 22), attn__get32(local + 18), 0};

    ATTN__TRY(apply_extra(local + LOCAL_SIZE + n_name, n_extra, true, &f,
                          m->name, diag));
    ATTN__REQUIRE(attn__get16(local + 6) == m->flags &&
                      attn__get16(local + 8) == m->method &&
                      n_name == strlen(m->name) &&
                      memcmp(local + LOCAL_SIZE, m->name, n_name) == 0 &&
                      agrees(attn__get32(local + 14), m->crc, m->flags) &&
                      agrees(f.packed, (uint64_t)m->packed, m->flags) &&
                      agrees(f.size, (uint64_t)m->size, m->flags),
                  diag, ATTN_E_FORMAT, m->name,
                  "has a local header that contradicts the directory");
    return ATTN_OK;
}

/* Check the local header of m, and find where its data end. After the
 * signature:
 *
 *      4 version needed     6 flags             8 method
 *     10 time and date     14 CRC              18 packed size
 *     22 size              26 length of name   28 length of extra fields
 *     30 the name, the extra fields, the data */
static attn_status check_local(const attn__source *source, int64_t limit,
                               attn__zip_member *m, attn_diag *diag)
{
    uint8_t head[LOCAL_SIZE], *local;
    size_t n_name, n_extra, n;
    attn_status status;

    ATTN__REQUIRE(m->begin <= limit - LOCAL_SIZE, diag, ATTN_E_FORMAT, m->name,
                  "has its local header at byte %lld, not before the directory",
                  (long long)m->begin);
    ATTN__TRY(attn__source_read(source, m->begin, head, LOCAL_SIZE, diag));
    ATTN__REQUIRE(attn__get32(head) == ATTN__ZIP_LOCAL, diag, ATTN_E_FORMAT,
                  m->name, "has no local header at byte %lld",
                  (long long)m->begin);
    n_name = attn__get16(head + 26);
    n_extra = attn__get16(head + 28);
    n = LOCAL_SIZE + n_name + n_extra;
    ATTN__REQUIRE(attn__add_i64(m->begin + (int64_t)n, m->packed, &m->end),
                  diag, ATTN_E_OVERFLOW, m->name, "ends beyond 2^63");
    ATTN__REQUIRE(m->end <= limit, diag, ATTN_E_FORMAT, m->name,
                  "ends at byte %lld, inside the directory",
                  (long long)m->end);
    local = attn__alloc(n);
    ATTN__REQUIRE(local, diag, ATTN_E_NOMEM, m->name, "no memory for a header");
    status = attn__source_read(source, m->begin, local, n, diag);
    if (status == ATTN_OK)
        status = compare_local(local, n_name, n_extra, m, diag);
    attn__free(local);
    return status;
}

/* Pointers are sorted, so that members keep the directory's order. */
static int by_begin(const void *a, const void *b)
{
    const attn__zip_member *const *x = a, *const *y = b;

    return ((*x)->begin > (*y)->begin) - ((*x)->begin < (*y)->begin);
}

/* No two members share a byte. Gaps are legal: data descriptors lie there. */
static attn_status check_apart(const attn__zip_directory *directory,
                               attn_diag *diag)
{
    const size_t n = (size_t)directory->n;
    const attn__zip_member **order =
        attn__realloc_array(NULL, n, sizeof *order);
    attn_status status = ATTN_OK;

    ATTN__REQUIRE(order || n == 0, diag, ATTN_E_NOMEM, "file",
                  "no memory for %zu members", n);
    for (size_t i = 0; i < n; i++)
        order[i] = &directory->members[i];
    if (n > 0)
        qsort(order, n, sizeof *order, by_begin);
    for (size_t i = 1; i < n && status == ATTN_OK; i++)
        if (order[i - 1]->end > order[i]->begin)
            status = attn__fail(diag, ATTN_E_FORMAT, order[i]->name,
                                "overlaps another member of the archive");
    attn__free(order);
    return status;
}

/* All records of the directory in memory, which they must fill exactly. */
static attn_status parse_all(const uint8_t *at, int64_t size,
                             attn__zip_directory *directory, attn_diag *diag)
{
    const uint8_t *end = at + size;
    size_t used = 0;

    for (int64_t i = 0; i < directory->n; i++, at += used)
        ATTN__TRY(parse_central(at, (size_t)(end - at), &directory->members[i],
                                &used, diag));
    ATTN__REQUIRE(at == end, diag, ATTN_E_FORMAT, "file",
                  "the archive's directory has %lld more bytes than members",
                  (long long)(end - at));
    return ATTN_OK;
}

/* Read the directory and parse its records into fresh members. */
static attn_status read_central(const attn__source *source,
                                const attn__zip_end *end,
                                attn__zip_directory *directory, attn_diag *diag)
{
    uint8_t *central;
    attn_status status;

    ATTN__REQUIRE(end->n <= end->size / CENTRAL_SIZE, diag, ATTN_E_FORMAT,
                  "file", "the archive's directory is too short for its %lld "
                  "members", (long long)end->n);
    ATTN__REQUIRE(end->n <= ATTN__MAX_MEMBERS, diag, ATTN_E_LIMIT, "file",
                  "has %lld members; at most %d are read", (long long)end->n,
                  ATTN__MAX_MEMBERS);
    /* `end` lies behind the directory, so its size is less than the file's. */
    central = attn__alloc((size_t)end->size);
    directory->members = attn__calloc((size_t)end->n,
                                      sizeof *directory->members);
    directory->n = directory->members ? end->n : 0;
    if (central && directory->members)
        status = attn__source_read(source, end->offset, central,
                                   (size_t)end->size, diag);
    else
        status = attn__fail(diag, ATTN_E_NOMEM, "file",
                            "no memory for the archive's directory");
    if (status == ATTN_OK)
        status = parse_all(central, end->size, directory, diag);
    attn__free(central);
    return status;
}

/* Reads the directory and as many local headers as it has members, never their
 * data. */
attn_status attn__zip_directory_read(const attn__source *source,
                                     attn__zip_directory *directory,
                                     attn_diag *diag)
{
    attn__zip_end end;
    attn_status status;

    memset(directory, 0, sizeof *directory);
    ATTN__TRY(attn__zip_end_read(source, &end, diag));
    status = read_central(source, &end, directory, diag);
    for (int64_t i = 0; i < directory->n && status == ATTN_OK; i++)
        status = check_local(source, end.offset, &directory->members[i], diag);
    if (status == ATTN_OK)
        status = check_apart(directory, diag);
    if (status != ATTN_OK)
        attn__zip_directory_free(directory);
    return status;
}

void attn__zip_directory_free(attn__zip_directory *directory)
{
    for (int64_t i = 0; i < directory->n; i++)
        attn__free(directory->members[i].name);
    attn__free(directory->members);
    memset(directory, 0, sizeof *directory);
}
