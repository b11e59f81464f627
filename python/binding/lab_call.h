/* SPDX-License-Identifier: Apache-2.0
 *
 * The experiments of attn_lab.h: data by their names in, a result as plain
 * Python values out. */
#ifndef ATTN_BINDING_LAB_CALL_H
#define ATTN_BINDING_LAB_CALL_H

#include "attention_call.h"
#include "attn_lab.h"

#include <nanobind/stl/vector.h>

#include <vector>

namespace binding {

struct lab_field {
    const char *name;
    attn_input attn_lab_data::*value;
};

constexpr lab_field lab_fields[] = {
    {"q", &attn_lab_data::q},     {"k", &attn_lab_data::k},
    {"v", &attn_lab_data::v},     {"x", &attn_lab_data::x},
    {"w_q", &attn_lab_data::w_q}, {"w_k", &attn_lab_data::w_k},
    {"w_v", &attn_lab_data::w_v}};
constexpr int n_lab_fields = sizeof lab_fields / sizeof lab_fields[0];

/* A NumPy array with a copy of the numbers. */
template <class Number>
nb::object copied(attn_dtype dtype, int32_t rank, const int64_t *shape,
                  const Number *values)
{
    const maker make;
    output to;
    size_t n = 1;

    for (int32_t axis = 0; axis < rank; axis++)
        n *= static_cast<size_t>(shape[axis]);
    make.make(dtype, rank, shape, &to);
    std::memcpy(to.view.data, values, n * sizeof *values);
    return make.finish(to);
}

/* Frees a result on every way out. */
struct lab_result : attn_lab_result {
    lab_result() : attn_lab_result{} {}
    ~lab_result() { attn_lab_free(this); }
    lab_result(const lab_result &) = delete;
    lab_result &operator=(const lab_result &) = delete;
};

inline nb::list lab_rows(const attn_lab_result &r)
{
    nb::list rows;

    for (int64_t i = 0; i < r.n_rows; i++) {
        nb::list row;

        for (int64_t j = 0; j < r.n_columns; j++) {
            const attn_lab_cell &cell = r.cells[i * r.n_columns + j];

            if (cell.text)
                row.append(nb::str(cell.text));
            else
                row.append(nb::float_(cell.number));
        }
        rows.append(nb::tuple(row));
    }
    return rows;
}

inline nb::list lab_matrices(const attn_lab_result &r)
{
    nb::list list;

    for (int64_t i = 0; i < r.n_matrices; i++) {
        const attn_lab_matrix &m = r.matrices[i];
        const int64_t shape[2] = {m.rows, m.columns};

        list.append(nb::make_tuple(
            m.title ? m.title : "", copied(ATTN_F64, 2, shape, m.values),
            m.shown ? copied(ATTN_BOOL, 2, shape, m.shown) : nb::none()));
    }
    return list;
}

inline nb::list lab_curves(const attn_lab_result &r)
{
    nb::list list;

    for (int64_t i = 0; i < r.n_curves; i++)
        list.append(nb::make_tuple(
            r.curves[i].title ? r.curves[i].title : "",
            copied(ATTN_F64, 1, &r.curves[i].n, r.curves[i].values)));
    return list;
}

/* `arrays`: by the names above, those that are given. */
inline nb::dict lab(const std::string &name, const nb::dict &arrays,
                    const std::vector<std::string> &tokens, uint64_t seed,
                    int64_t len, int64_t dim, int64_t heads)
{
    input in[n_lab_fields];
    std::vector<const char *> names;
    attn_lab_data data;
    lab_result result;
    attn_diag diag;
    attn_status status;

    attn_lab_data_init(&data);
    data.seed = seed;
    data.len = len;
    data.dim = dim;
    data.heads = heads;
    for (int i = 0; i < n_lab_fields; i++) {
        if (!arrays.contains(lab_fields[i].name))
            continue;
        take(lab_fields[i].name, arrays[lab_fields[i].name], &in[i]);
        data.*lab_fields[i].value = in[i].view;
    }
    for (const std::string &token : tokens)
        names.push_back(token.c_str());
    if (!names.empty())
        data.tokens = names.data();
    {
        nb::gil_scoped_release unlocked;

        status = attn_lab_run(name.c_str(), &data, &result, &diag);
    }
    check(status, diag);
    nb::dict found;
    nb::list columns;

    for (int64_t j = 0; j < result.n_columns; j++)
        columns.append(nb::str(result.columns[j]));
    found["title"] = result.title;
    found["conclusion"] = result.conclusion;
    found["columns"] = nb::tuple(columns);
    found["rows"] = lab_rows(result);
    found["matrices"] = lab_matrices(result);
    found["curves"] = lab_curves(result);
    return found;
}

/* {name: what it does} */
inline nb::dict lab_list()
{
    nb::dict found;

    for (int64_t i = 0; i < attn_lab_count(); i++)
        found[attn_lab_name(i)] = attn_lab_about(i);
    return found;
}

} // namespace binding

#endif
