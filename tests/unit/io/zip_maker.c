/* SPDX-License-Identifier: Apache-2.0
 *
 * Making ZIP archives by the book (PKWARE APPNOTE 6.3). */
#include "zip_maker.h"

#include <string.h>

#include "../unit.h"

unsigned crc32_of(const void *data, size_t n)
{
    const unsigned char *at = data;
    unsigned crc = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* A raw deflate stream of one stored block (RFC 1951, 3.2.4). */
static bytes deflated(const bytes *content)
{
    bytes b = {0};

    assert_true(content->n < 65536);
    add_le(&b, 1, 1);
    add_le(&b, content->n, 2);
    add_le(&b, ~content->n & 0xffff, 2);
    add(&b, content->data, content->n);
    return b;
}

static void add_local(zip_made *z, const zip_plan *plan, const char *name,
                      const bytes *content, const bytes *packed)
{
    const unsigned crc = plan->descriptor
                             ? 0
                             : crc32_of(content->data, content->n);
    const size_t size = plan->descriptor ? 0 : content->n;
    const size_t n = plan->descriptor ? 0 : packed->n;

    add_le(&z->b, 0x04034b50, 4);
    add_le(&z->b, plan->zip64 ? 45 : 20, 2);
    add_le(&z->b, plan->descriptor ? 8 : 0, 2);
    add_le(&z->b, plan->deflated ? 8 : 0, 2);
    add_le(&z->b, 0x00210000, 4);
    add_le(&z->b, crc, 4);
    add_le(&z->b, plan->zip64 ? 0xffffffff : n, 4);
    add_le(&z->b, plan->zip64 ? 0xffffffff : size, 4);
    add_le(&z->b, strlen(name), 2);
    add_le(&z->b, plan->zip64 ? 20 : 0, 2);
    add_text(&z->b, name);
    if (plan->zip64) {
        add_le(&z->b, 1, 2);
        add_le(&z->b, 16, 2);
        add_le(&z->b, size, 8);
        add_le(&z->b, n, 8);
    }
}

static void add_descriptor(zip_made *z, const zip_plan *plan,
                           const bytes *content, const bytes *packed)
{
    if (!plan->descriptor)
        return;
    add_le(&z->b, 0x08074b50, 4);
    add_le(&z->b, crc32_of(content->data, content->n), 4);
    add_le(&z->b, packed->n, plan->zip64 ? 8 : 4);
    add_le(&z->b, content->n, plan->zip64 ? 8 : 4);
}

static void add_central(zip_made *z, const zip_plan *plan, const char *name,
                        const bytes *content, size_t n_packed, size_t offset)
{
    add_le(&z->b, 0x02014b50, 4);
    add_le(&z->b, 45, 2);
    add_le(&z->b, plan->zip64 ? 45 : 20, 2);
    add_le(&z->b, plan->descriptor ? 8 : 0, 2);
    add_le(&z->b, plan->deflated ? 8 : 0, 2);
    add_le(&z->b, 0x00210000, 4);
    add_le(&z->b, crc32_of(content->data, content->n), 4);
    add_le(&z->b, plan->zip64 ? 0xffffffff : n_packed, 4);
    add_le(&z->b, plan->zip64 ? 0xffffffff : content->n, 4);
    add_le(&z->b, strlen(name), 2);
    add_le(&z->b, plan->zip64 ? 28 : 0, 2);
    add_zeros(&z->b, 10);
    add_le(&z->b, plan->zip64 ? 0xffffffff : offset, 4);
    add_text(&z->b, name);
    if (plan->zip64) {
        add_le(&z->b, 1, 2);
        add_le(&z->b, 24, 2);
        add_le(&z->b, content->n, 8);
        add_le(&z->b, n_packed, 8);
        add_le(&z->b, offset, 8);
    }
}

static void add_end(zip_made *z, const zip_plan *plan)
{
    const size_t size = z->b.n - z->directory;

    if (plan->zip64) {
        z->end64 = z->b.n;
        add_le(&z->b, 0x06064b50, 4);
        add_le(&z->b, 44, 8);
        add_le(&z->b, 45, 2);
        add_le(&z->b, 45, 2);
        add_le(&z->b, 0, 8);
        add_le(&z->b, (unsigned)z->n, 8);
        add_le(&z->b, (unsigned)z->n, 8);
        add_le(&z->b, size, 8);
        add_le(&z->b, z->directory, 8);
        z->locator = z->b.n;
        add_le(&z->b, 0x07064b50, 4);
        add_le(&z->b, 0, 4);
        add_le(&z->b, z->end64, 8);
        add_le(&z->b, 1, 4);
    }
    z->end = z->b.n;
    add_le(&z->b, 0x06054b50, 4);
    add_le(&z->b, 0, 4);
    add_le(&z->b, plan->zip64 ? 0xffff : (unsigned)z->n, 2);
    add_le(&z->b, plan->zip64 ? 0xffff : (unsigned)z->n, 2);
    add_le(&z->b, plan->zip64 ? 0xffffffff : size, 4);
    add_le(&z->b, plan->zip64 ? 0xffffffff : z->directory, 4);
    add_le(&z->b, 0, 2);
}

zip_made zip_of(const zip_plan *plan, int n, const char *const *names,
                const bytes *contents)
{
    zip_made z = {.n = n};
    size_t n_packed[MAX_MEMBERS];

    assert_true(n <= MAX_MEMBERS);
    for (int i = 0; i < n; i++) {
        bytes packed = plan->deflated ? deflated(&contents[i]) : contents[i];

        z.local[i] = z.b.n;
        add_local(&z, plan, names[i], &contents[i], &packed);
        z.data[i] = z.b.n;
        add(&z.b, packed.data, packed.n);
        add_descriptor(&z, plan, &contents[i], &packed);
        n_packed[i] = packed.n;
        if (plan->deflated)
            drop(&packed);
    }
    z.directory = z.b.n;
    for (int i = 0; i < n; i++) {
        z.central[i] = z.b.n;
        add_central(&z, plan, names[i], &contents[i], n_packed[i], z.local[i]);
    }
    add_end(&z, plan);
    return z;
}

zip_made zip_usual(const zip_plan *plan)
{
    static const char *const names[] = {"q.npy"};
    bytes content = npy_array("<f4", "(3,)", 12);
    zip_made z = zip_of(plan, 1, names, &content);

    drop(&content);
    return z;
}
