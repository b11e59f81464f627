/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor of attn_doctor.h on a Python function: calls go to the function
 * `answer` as the bytes of messages and come back as bytes. */
#ifndef ATTN_BINDING_DOCTOR_CALL_H
#define ATTN_BINDING_DOCTOR_CALL_H

#include "attn_subject.h"
#include "errors.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

namespace binding {

/* The function that answers, and what it last said. An exception is kept: it
 * ends the examination, and goes on when that has ended. */
struct answerer {
    nb::callable answer;
    nb::bytes said;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;

    ~answerer()
    {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }

    static int exchange(void *ctx, const void *call, size_t n_call,
                        const void **reply, size_t *n_reply) noexcept
    {
        nb::gil_scoped_acquire locked;
        answerer *self = static_cast<answerer *>(ctx);

        try {
            self->said =
                nb::cast<nb::bytes>(self->answer(nb::bytes(call, n_call)));
        } catch (nb::python_error &error) {
            error.restore();
            PyErr_Fetch(&self->type, &self->value, &self->trace);
            return 0;
        } catch (...) {
            return 0;
        }
        *reply = self->said.data();
        *n_reply = self->said.size();
        return 1;
    }

    void raise_again()
    {
        if (!type)
            return;
        PyErr_Restore(type, value, trace);
        type = value = trace = nullptr;
        throw nb::python_error();
    }
};

struct opened_subject {
    attn_subject *subject = nullptr;
    ~opened_subject() { attn_subject_close(subject); }
};

struct written_report {
    attn_report *report = nullptr;
    ~written_report() { attn_report_free(report); }
};

/* (text, JSON) of the report. `kind` and `dtype` are the numbers of attn_kind
 * and attn_dtype. */
inline nb::tuple doctor(const std::string &name, const nb::bytes &hello,
                        nb::callable answer, int kind,
                        const std::optional<std::string> &layout, int dtype,
                        uint64_t seed,
                        const std::optional<std::string> &expect,
                        double seconds)
{
    answerer python_side_of_it{answer, nb::bytes("", 0)};
    opened_subject opened;
    written_report written;
    attn_doctor_options options;
    attn_diag diag;
    attn_status status;

    attn_doctor_options_init(&options);
    options.kind = static_cast<attn_kind>(kind);
    options.layout = layout ? layout->c_str() : nullptr;
    options.dtype = static_cast<attn_dtype>(dtype);
    options.seed = seed;
    options.expect = expect ? expect->c_str() : nullptr;
    options.seconds = seconds;
    check(attn_subject_open_exchange(name.c_str(), hello.data(), hello.size(),
                                     answerer::exchange, &python_side_of_it,
                                     &opened.subject, &diag),
          diag);
    {
        nb::gil_scoped_release unlocked;

        status = attn_doctor_examine(opened.subject, &options,
                                     &written.report, &diag);
    }
    python_side_of_it.raise_again();
    check(status, diag);
    return nb::make_tuple(attn_report_text(written.report),
                          attn_report_json(written.report));
}

/* [(id, what is wrong, fix)] of every fault that the doctor knows. */
inline nb::list doctor_list()
{
    nb::list found;

    for (int32_t i = 0; i < attn_doctor_n_entries(); i++) {
        const attn_fault_entry *entry = attn_doctor_entry(i);

        found.append(nb::make_tuple(entry->id, entry->says, entry->fix));
    }
    return found;
}

} // namespace binding

#endif
