/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of statuses, element types and the library's version. */
#include "attn.h"

const char *attn_status_name(attn_status status)
{
    switch (status) {
#define NAME(name, value, text)                                               \
    case ATTN_##name:                                                         \
        return #name;
        ATTN_STATUS_MAP(NAME)
#undef NAME
    }
    return "unknown";
}

const char *attn_status_text(attn_status status)
{
    switch (status) {
#define TEXT(name, value, text)                                               \
    case ATTN_##name:                                                         \
        return text;
        ATTN_STATUS_MAP(TEXT)
#undef TEXT
    }
    return "not a status of this library";
}

uint32_t attn_version(void)
{
    return (uint32_t)ATTN_VERSION_MAJOR << 16 |
           (uint32_t)ATTN_VERSION_MINOR << 8 | ATTN_VERSION_PATCH;
}

size_t attn_dtype_size(attn_dtype dtype)
{
    switch (dtype) {
    case ATTN_F64:
    case ATTN_I64:
        return 8;
    case ATTN_F32:
    case ATTN_I32:
        return 4;
    case ATTN_BF16:
    case ATTN_F16:
        return 2;
    case ATTN_BOOL:
        return 1;
    case ATTN_NONE:
        break;
    }
    return 0;
}

const char *attn_dtype_name(attn_dtype dtype)
{
    static const char *const names[] = {"none", "f64",  "f32", "bf16",
                                        "f16",  "bool", "i32", "i64"};
    const size_t index = (size_t)dtype;

    return index < sizeof names / sizeof names[0] ? names[index] : "unknown";
}
