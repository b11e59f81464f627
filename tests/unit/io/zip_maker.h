/* SPDX-License-Identifier: Apache-2.0
 *
 * ZIP archives with any field wrong, for the tests of npz.c. A correct archive
 * is made first; the test then changes bytes at the places noted here. */
#ifndef ATTN_TESTS_ZIP_MAKER_H
#define ATTN_TESTS_ZIP_MAKER_H

#include "io_files.h"

#define MAX_MEMBERS 8

/* Offsets of fields in a local header, a record of the directory, and the end
 * record. */
enum {
    LOCAL_FLAGS = 6,
    LOCAL_METHOD = 8,
    LOCAL_CRC = 14,
    LOCAL_PACKED = 18,
    LOCAL_SIZE = 22,
    LOCAL_N_NAME = 26,
    LOCAL_N_EXTRA = 28,
    LOCAL_NAME = 30,
    CENTRAL_FLAGS = 8,
    CENTRAL_METHOD = 10,
    CENTRAL_CRC = 16,
    CENTRAL_PACKED = 20,
    CENTRAL_SIZE = 24,
    CENTRAL_N_NAME = 28,
    CENTRAL_N_EXTRA = 30,
    CENTRAL_N_COMMENT = 32,
    CENTRAL_DISK = 34,
    CENTRAL_OFFSET = 42,
    CENTRAL_NAME = 46,
    END_DISK = 4,
    END_N_HERE = 8,
    END_N = 10,
    END_SIZE = 12,
    END_OFFSET = 16,
    END_N_COMMENT = 20
};

/* What is to be made. */
typedef struct zip_plan {
    bool deflated;   /* by blocks that are stored inside the stream */
    bool descriptor; /* sizes and CRC behind the data, 0 before them */
    bool zip64;      /* sizes in extra fields, the end as a ZIP64 record */
} zip_plan;

typedef struct zip_made {
    bytes b;
    int n;
    size_t local[MAX_MEMBERS], data[MAX_MEMBERS], central[MAX_MEMBERS];
    size_t directory; /* where it begins */
    size_t end64, locator, end;
} zip_made;

/* An archive of n members named names[i], each holding contents[i]. */
zip_made zip_of(const zip_plan *plan, int n, const char *const *names,
                const bytes *contents);
/* One member q.npy, a float32 array (3,) of zeros. */
zip_made zip_usual(const zip_plan *plan);

unsigned crc32_of(const void *data, size_t n);

#endif
