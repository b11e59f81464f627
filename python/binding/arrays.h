/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of any maker as views of the library, and memory for results in the
 * caller's kind of array. Nothing is copied. */
#ifndef ATTN_BINDING_ARRAYS_H
#define ATTN_BINDING_ARRAYS_H

#include "errors.h"

#include <nanobind/ndarray.h>

#include <new>
#include <utility>

namespace binding {

using readable = nb::ndarray<nb::ro, nb::device::cpu>;
using writable = nb::ndarray<nb::device::cpu>;

/* ------------------------------------------------------- element types */

inline attn_dtype dtype_of(nb::dlpack::dtype type)
{
    const int bits = type.lanes == 1 ? type.bits : 0;

    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Float:
        return bits == 64   ? ATTN_F64
               : bits == 32 ? ATTN_F32
               : bits == 16 ? ATTN_F16
                            : ATTN_NONE;
    case nb::dlpack::dtype_code::Bfloat:
        return bits == 16 ? ATTN_BF16 : ATTN_NONE;
    case nb::dlpack::dtype_code::Bool:
        return bits == 8 ? ATTN_BOOL : ATTN_NONE;
    case nb::dlpack::dtype_code::Int:
        return bits == 64 ? ATTN_I64 : bits == 32 ? ATTN_I32 : ATTN_NONE;
    default:
        return ATTN_NONE;
    }
}

inline nb::dlpack::dtype dlpack_of(attn_dtype dtype)
{
    const auto make = [](nb::dlpack::dtype_code code, int bits) {
        return nb::dlpack::dtype{static_cast<uint8_t>(code),
                                 static_cast<uint8_t>(bits), 1};
    };
    const int bits = static_cast<int>(8 * attn_dtype_size(dtype));

    return dtype == ATTN_BF16   ? make(nb::dlpack::dtype_code::Bfloat, bits)
           : dtype == ATTN_BOOL ? make(nb::dlpack::dtype_code::Bool, bits)
           : dtype >= ATTN_I32  ? make(nb::dlpack::dtype_code::Int, bits)
                                : make(nb::dlpack::dtype_code::Float, bits);
}

/* ------------------------------------------------------------ Python's */

/* What is looked up once: NumPy, and attn._arrays, which knows how arrays of
 * other makers are taken, made and refused. */
struct python_side {
    nb::object ndarray, empty, dtype[8], coerce, importer;
    nb::object k_dtype = nb::str("dtype");
};

inline python_side *python; /* set when the module is made, then constant */

inline bool is_numpy(nb::handle object)
{
    return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject *>(
                                                python->ndarray.ptr()));
}

/* ----------------------------------------------------------------- input */

/* A Python array as a view, and what keeps its memory. */
struct input {
    readable memory;
    attn_input view{};
};

template <class Array>
void fill_view(const Array &memory, attn_dtype dtype, const char *name,
               attn_input *view)
{
    const size_t rank = memory.ndim();

    if (rank > 4)
        fail(ATTN_E_SHAPE, name, "has %zu axes; at most 4 are legal", rank);
    view->data = memory.data();
    view->dtype = dtype;
    view->rank = static_cast<int32_t>(rank);
    for (size_t axis = 0; axis < rank; axis++) {
        view->shape[axis] = static_cast<int64_t>(memory.shape(axis));
        view->stride[axis] = memory.stride(axis);
    }
}

/* What nanobind can't read or the library doesn't take: attn._arrays gives
 * an equal array that works (with bf16 as its bits), or raises. */
inline attn_dtype coerced(const char *name, nb::handle object, readable *memory)
{
    nb::tuple pair = nb::cast<nb::tuple>(python->coerce(name, object));
    const bool is_bf16 = nb::cast<bool>(pair[1]);

    *memory = nb::cast<readable>(nb::object(pair[0]));
    return is_bf16 ? ATTN_BF16 : dtype_of(memory->dtype());
}

inline void take(const char *name, nb::handle object, input *to)
{
    attn_dtype dtype = ATTN_NONE;

    /* A tensor that records gradients would lose them here. */
    const bool records =
        !is_numpy(object) && nb::getattr(object, "requires_grad",
                                         nb::handle(Py_False)).ptr() == Py_True;

    if (!records && nb::try_cast(object, to->memory))
        dtype = dtype_of(to->memory.dtype());
    if (dtype == ATTN_NONE)
        dtype = coerced(name, object, &to->memory);
    fill_view(to->memory, dtype, name, &to->view);
}

/* ------------------------------------------------------------------ axes */

/* Leading axes of 1 until there are `rank`. */
template <class View> void widen(View *t, int32_t rank)
{
    const int32_t more = rank - t->rank;

    for (int32_t axis = rank - 1; axis >= 0 && more > 0; axis--) {
        t->shape[axis] = axis >= more ? t->shape[axis - more] : 1;
        t->stride[axis] = axis >= more ? t->stride[axis - more] : 1;
    }
    t->rank = rank;
}

/* (L, D), (H, L, D), (B, H, L, D), under bshd (L, H, D), (B, L, H, D): all as
 * (B, H, L, D). */
template <class View> void fold(View *t, bool bshd)
{
    const bool has_heads = t->rank > 2;

    widen(t, 4);
    if (bshd && has_heads) {
        std::swap(t->shape[1], t->shape[2]);
        std::swap(t->stride[1], t->stride[2]);
    }
}

/* ---------------------------------------------------------------- output */

/* Memory for one result, in the caller's kind of array. */
struct output {
    nb::object array; /* empty where not asked for */
    writable memory;
    attn_tensor view{};
    bool foreign = false; /* `array` is made of `memory` when it is full */
};

inline void fill_tensor(const writable &memory, attn_dtype dtype,
                        const char *name, attn_tensor *view)
{
    attn_input t;

    fill_view(memory, dtype, name, &t);
    view->data = memory.data();
    view->dtype = dtype;
    view->rank = t.rank;
    std::memcpy(view->shape, t.shape, sizeof view->shape);
    std::memcpy(view->stride, t.stride, sizeof view->stride);
}

/* An array that the caller gave to be written. */
inline void take_writable(const char *name, nb::handle object, output *to)
{
    to->array = nb::borrow(object);
    attn_dtype dtype = ATTN_NONE;

    if (nb::try_cast(object, to->memory))
        dtype = dtype_of(to->memory.dtype());
    if (dtype == ATTN_NONE) {
        nb::tuple pair =
            nb::cast<nb::tuple>(python->coerce(name, object, true));

        if (!nb::try_cast(nb::object(pair[0]), to->memory))
            fail(ATTN_E_ARG, name, "cannot be written to");
        dtype = nb::cast<bool>(pair[1]) ? ATTN_BF16
                                        : dtype_of(to->memory.dtype());
    }
    fill_tensor(to->memory, dtype, name, &to->view);
}

/* Makes results of the kind of one array, q. */
class maker {
public:
    maker() = default; /* NumPy, no type but those of the library */
    explicit maker(nb::handle like) : like_(like)
    {
        if (!is_numpy(like))
            importer_ = python->importer(like);
    }

    void make(attn_dtype dtype, int32_t rank, const int64_t *shape,
              output *to) const
    {
        if (importer_.is_valid() && !importer_.is_none())
            make_foreign(dtype, rank, shape, to);
        else
            make_numpy(dtype, rank, shape, to);
        fill_tensor(to->memory, dtype, "out", &to->view);
    }

    nb::object finish(const output &made) const
    {
        return made.foreign ? importer_(made.array) : made.array;
    }

private:
    void make_numpy(attn_dtype dtype, int32_t rank, const int64_t *shape,
                    output *to) const
    {
        nb::object type = dtype == ATTN_BF16 ? like_.attr(python->k_dtype)
                                             : python->dtype[dtype];
        PyObject *sizes = PyTuple_New(rank);

        if (!sizes)
            throw nb::python_error();
        nb::object shape_tuple = nb::steal(sizes);
        for (int32_t axis = 0; axis < rank; axis++)
            PyTuple_SET_ITEM(sizes, axis, PyLong_FromLongLong(shape[axis]));
        PyObject *arguments[2] = {sizes, type.ptr()};
        PyObject *made =
            PyObject_Vectorcall(python->empty.ptr(), arguments, 2, nullptr);

        if (!made)
            throw nb::python_error();
        to->array = nb::steal(made);
        if (dtype == ATTN_BF16)
            take_writable("out", to->array, to);
        else
            to->memory = nb::cast<writable>(to->array);
    }

    /* Alignment as JAX and others ask for, to share rather than copy. */
    void make_foreign(attn_dtype dtype, int32_t rank, const int64_t *shape,
                      output *to) const
    {
        constexpr auto alignment = std::align_val_t{64};
        size_t sizes[4] = {1, 1, 1, 1}, bytes = attn_dtype_size(dtype);

        for (int32_t axis = 0; axis < rank; axis++) {
            sizes[axis] = static_cast<size_t>(shape[axis]);
            bytes *= sizes[axis];
        }
        void *data = ::operator new(bytes + 1, alignment);
        nb::capsule owner(data, [](void *p) noexcept {
            ::operator delete(p, alignment);
        });
        to->memory = writable(data, static_cast<size_t>(rank), sizes, owner,
                              nullptr, dlpack_of(dtype));
        to->array = nb::cast(nb::ndarray<nb::array_api>(to->memory));
        to->foreign = true;
    }

    nb::handle like_;
    nb::object importer_;
};

} // namespace binding

#endif
