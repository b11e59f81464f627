/* SPDX-License-Identifier: Apache-2.0
 *
 * A status of the library as a Python exception, with its sentence. */
#ifndef ATTN_BINDING_ERRORS_H
#define ATTN_BINDING_ERRORS_H

#include "attn.h"

#include <nanobind/nanobind.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace nb = nanobind;

namespace binding {

/* The Python exception of a status; the compiler misses none. */
inline PyObject *exception_of(attn_status status)
{
    switch (status) {
    case ATTN_E_ARG:
    case ATTN_E_SHAPE:
    case ATTN_E_OVERFLOW:
    case ATTN_E_FORMAT:
    case ATTN_E_TRUNCATED:
    case ATTN_E_LIMIT:
    case ATTN_E_DUPLICATE:
    case ATTN_E_MISMATCH:
        return PyExc_ValueError;
    case ATTN_E_DTYPE:
        return PyExc_TypeError;
    case ATTN_E_UNSUPPORTED:
        return PyExc_NotImplementedError;
    case ATTN_E_NOMEM:
        return PyExc_MemoryError;
    case ATTN_E_IO:
        return PyExc_OSError;
    case ATTN_E_WORKSPACE:
    case ATTN_OK:
        break; /* only a mistake in this file gives these */
    }
    return PyExc_RuntimeError;
}

/* The fields that Python spells another way. */
inline const char *python_name(const char *field)
{
    static const char *const names[][2] = {
        {"mask", "attn_mask"}, {"bias", "attn_bias"}, {"d_o", "do"}};

    for (const auto &pair : names)
        if (std::strcmp(pair[0], field) == 0)
            return pair[1];
    return field;
}

[[noreturn]] inline void fail(attn_status status, const char *field,
                       const char *format, ...)
{
    char sentence[200];
    va_list list;

    va_start(list, format);
    std::vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    PyErr_Format(exception_of(status), "%s: %s", field, sentence);
    throw nb::python_error();
}

inline void check(attn_status status, const attn_diag &diag)
{
    if (status != ATTN_OK)
        fail(status, python_name(diag.field), "%s", diag.message);
}

} // namespace binding

#endif
