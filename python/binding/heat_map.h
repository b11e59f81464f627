/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat maps of matrices, as the bytes of an SVG or PNG. */
#ifndef ATTN_BINDING_HEAT_MAP_H
#define ATTN_BINDING_HEAT_MAP_H

#include "attn_picture.h"
#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace binding {

/* One panel per matrix of `values`, (rows, columns) or (n, rows, columns),
 * all with the same labels; an empty list of labels means numbers. */
inline nb::bytes heat_map(nb::handle values,
                          const std::vector<std::string> &titles,
                          const std::vector<std::string> &row_labels,
                          const std::vector<std::string> &column_labels,
                          bool as_png)
{
    const auto pointers = [](const std::vector<std::string> &texts) {
        std::vector<const char *> list;

        for (const std::string &text : texts)
            list.push_back(text.c_str());
        return list;
    };
    const std::vector<const char *> rows = pointers(row_labels);
    const std::vector<const char *> columns = pointers(column_labels);
    input in;
    attn_figure figure;
    attn_diag diag;
    void *data = nullptr;
    size_t size = 0;

    take("A", values, &in);
    widen(&in.view, 3);
    std::vector<attn_panel> panels(static_cast<size_t>(in.view.shape[0]));
    for (size_t i = 0; i < panels.size(); i++) {
        attn_input &one = panels[i].values;

        panels[i] = attn_panel{};
        one = in.view;
        one.data = static_cast<const char *>(in.view.data) +
                   static_cast<int64_t>(i) * in.view.stride[0] *
                       static_cast<int64_t>(attn_dtype_size(in.view.dtype));
        one.rank = 2;
        for (int axis = 0; axis < 2; axis++) {
            one.shape[axis] = in.view.shape[axis + 1];
            one.stride[axis] = in.view.stride[axis + 1];
        }
        panels[i].title = i < titles.size() ? titles[i].c_str() : nullptr;
        panels[i].row_labels = rows.empty() ? nullptr : rows.data();
        panels[i].column_labels = columns.empty() ? nullptr : columns.data();
    }
    attn_figure_init(&figure, panels.data(),
                     static_cast<int64_t>(panels.size()));
    figure.low = 0;
    figure.row_axis = "query";
    figure.column_axis = "key";
    check((as_png ? attn_figure_png : attn_figure_svg)(&figure, &data, &size,
                                                       &diag),
          diag);
    nb::bytes made(static_cast<const char *>(data), size);
    attn_free(data);
    return made;
}

} // namespace binding

#endif
