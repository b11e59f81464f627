/* SPDX-License-Identifier: Apache-2.0
 *
 * A case: its sidecar, its arrays, its memory, and how it ends. Anything that
 * is not as it should be ends the case as failed; nothing is skipped. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform.h"

/* ------------------------------------------------------- how it ends */

static void print_failure(test_case *c, const char *format, va_list args)
{
    c->failed = true;
    printf("FAIL %s/%s: ", c->folder, c->name);
    vprintf(format, args);
    printf("\n");
}

void refuse(test_case *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_failure(c, format, args);
    va_end(args);
    longjmp(c->refused, 1);
}

void complain(test_case *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_failure(c, format, args);
    va_end(args);
}

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

void *take(test_case *c, int64_t n, size_t size)
{
    const size_t room = SIZE_MAX / 2 / (size > 0 ? size : 1);
    block *b = NULL;

    if (n >= 0 && (uint64_t)n < room)
        b = calloc(1, sizeof *b + (size_t)n * size);
    if (!b)
        refuse(c, "out of memory");
    b->next = c->blocks;
    c->blocks = b;
    return b->data;
}

static void drop_all(test_case *c)
{
    while (c->blocks) {
        block *next = c->blocks->next;

        free(c->blocks);
        c->blocks = next;
    }
}

double *take_reals(test_case *c, int64_t n)
{
    return take(c, n, sizeof(double));
}

/* --------------------------------------------------------------- sidecar */

json_t *member(test_case *c, const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        refuse(c, "the sidecar has no \"%s\"", key);
    return value;
}

double number_member(test_case *c, const json_t *object, const char *key)
{
    const json_t *value = member(c, object, key);

    if (!json_is_number(value))
        refuse(c, "\"%s\" is not a number", key);
    return json_number_value(value);
}

int64_t integer_member(test_case *c, const json_t *object, const char *key)
{
    const json_t *value = member(c, object, key);

    if (!json_is_integer(value))
        refuse(c, "\"%s\" is not an integer", key);
    return json_integer_value(value);
}

bool bool_member(test_case *c, const json_t *object, const char *key)
{
    const json_t *value = member(c, object, key);

    if (!json_is_boolean(value))
        refuse(c, "\"%s\" is not true or false", key);
    return json_is_true(value);
}

const char *string_member(test_case *c, const json_t *object, const char *key)
{
    const json_t *value = member(c, object, key);

    if (!json_is_string(value))
        refuse(c, "\"%s\" is not a string", key);
    return json_string_value(value);
}

bool is_known(const char *known, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = strstr(known, word); length > 0 && at;
         at = strstr(at + 1, word)) {
        if ((at == known || at[-1] == ' ') &&
            (at[length] == '\0' || at[length] == ' '))
            return true;
    }
    return false;
}

void only_known_keys(test_case *c, const json_t *object, const char *known)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_known(known, key))
            refuse(c, "\"%s\" is not known here", key);
    }
}

/* ---------------------------------------------------------------- arrays */

/* The type that attn_file_load gives a file's array of that word. */
static attn_dtype loaded_dtype(const char *word)
{
    if (strcmp(word, "bfloat16") == 0)
        return ATTN_I64; /* bit patterns, stored as <u2 */
    return dtype_of_word(word);
}

static void check_shape(test_case *c, const array *a, const attn_array *loaded)
{
    bool same = a->rank == loaded->rank;

    for (int32_t axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == loaded->shape[axis];
    if (!same)
        refuse(c, "%s: the shape of file and sidecar differ", a->name);
    if (loaded->dtype != loaded_dtype(a->dtype))
        refuse(c, "%s: the type of file and sidecar differ", a->name);
}

/* As doubles. Integers are checked to be exact in one. */
static void convert(test_case *c, array *a, const attn_array *loaded)
{
    a->x = take_reals(c, a->count);
    if (loaded->dtype != ATTN_I64) {
        unstored(loaded->dtype, loaded->data, a->count, a->x);
        return;
    }
    for (int64_t n = 0; n < a->count; n++) {
        const int64_t value = ((const int64_t *)loaded->data)[n];

        a->x[n] = (double)value;
        if (llabs(value) > INT64_C(1) << 53)
            refuse(c, "%s: an integer beyond 2^53", a->name);
        if (strcmp(a->dtype, "bfloat16") == 0) {
            const uint16_t bits = (uint16_t)value;
            unstored(ATTN_BF16, &bits, 1, &a->x[n]);
        }
    }
}

static void read_shape(test_case *c, const json_t *entry, array *a)
{
    const json_t *shape = member(c, entry, "shape");
    const size_t rank = json_array_size(shape);

    if (!json_is_array(shape) || rank > MAX_RANK)
        refuse(c, "%s: a shape that cannot be read", a->name);
    a->rank = (int32_t)rank;
    a->count = 1;
    for (size_t axis = 0; axis < rank; axis++) {
        const json_t *length = json_array_get(shape, axis);

        if (!json_is_integer(length) || json_integer_value(length) < 0)
            refuse(c, "%s: a shape that cannot be read", a->name);
        a->shape[axis] = json_integer_value(length);
        a->count *= a->shape[axis];
    }
}

/* Let the case own the data, so that a refusal finds nothing to free. */
static void own(test_case *c, attn_array *loaded)
{
    const size_t size = (size_t)loaded->count * attn_dtype_size(loaded->dtype);
    const attn_array copy = *loaded;
    void *data = take(c, (int64_t)size, 1);

    if (size > 0)
        memcpy(data, loaded->data, size);
    attn_array_free(loaded);
    *loaded = copy;
    loaded->data = data;
    loaded->name = NULL;
    loaded->text = NULL;
}

static void load(test_case *c, const json_t *entry, const char *prefix,
                 array *a)
{
    const char *name = string_member(c, entry, "name");
    char key[128];
    attn_array loaded;
    attn_diag diag;
    int64_t index;

    a->name = json_object_get(entry, "formal")
                  ? string_member(c, entry, "formal")
                  : name;
    a->dtype = string_member(c, entry, "dtype");
    if (dtype_of_word(a->dtype) == ATTN_NONE)
        refuse(c, "%s: the type \"%s\" is not known", name, a->dtype);
    read_shape(c, entry, a);
    snprintf(key, sizeof key, "%s%s", prefix, name);
    index = attn_file_find(c->file, key);
    if (index < 0)
        refuse(c, "the file has no array %s", key);
    if (attn_file_load(c->file, index, &loaded, &diag) != ATTN_OK)
        refuse(c, "%s: %s", diag.field, diag.message);
    own(c, &loaded);
    check_shape(c, a, &loaded);
    convert(c, a, &loaded);
}

static int load_list(test_case *c, const char *list, const char *prefix,
                     array *arrays)
{
    const json_t *entries = member(c, c->sidecar, list);
    int n = 0;

    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);

        if (json_is_null(entry))
            continue; /* an optional input or output that is absent */
        if (n == MAX_ARRAYS)
            refuse(c, "more than %d arrays", MAX_ARRAYS);
        load(c, entry, prefix, &arrays[n++]);
    }
    if (n == 0)
        refuse(c, "\"%s\" is empty", list);
    return n;
}

void load_inputs(test_case *c, const char *list)
{
    c->n_inputs = load_list(c, list, "", c->inputs);
}

void load_expected(test_case *c, const char *list, const char *prefix)
{
    c->n_expected = load_list(c, list, prefix, c->expected);
}

static const array *named(const array *arrays, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(arrays[i].name, name) == 0)
            return &arrays[i];
    }
    return NULL;
}

const array *input_named(const test_case *c, const char *name)
{
    return named(c->inputs, c->n_inputs, name);
}

const array *expected_named(const test_case *c, const char *name)
{
    return named(c->expected, c->n_expected, name);
}

const array *required_input(test_case *c, const char *name)
{
    const array *a = input_named(c, name);

    if (!a)
        refuse(c, "the input %s is missing", name);
    return a;
}

void require_shape(test_case *c, const array *a, int32_t rank,
                   const int64_t *shape)
{
    bool same = a->rank == rank;

    for (int32_t axis = 0; same && axis < rank; axis++)
        same = a->shape[axis] == shape[axis];
    if (!same)
        refuse(c, "%s has a shape that does not fit the others", a->name);
}

int64_t *integers_of(test_case *c, const array *a)
{
    int64_t *values = take(c, a->count, sizeof *values);

    for (int64_t n = 0; n < a->count; n++)
        values[n] = (int64_t)a->x[n];
    return values;
}

/* ------------------------------------------------------------------- run */

static void open_case(test_case *c)
{
    char path[1024];
    json_error_t error;
    attn_diag diag;

    snprintf(path, sizeof path, "%s/%s.json", c->folder, c->name);
    c->sidecar = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!c->sidecar)
        refuse(c, "%s.json line %d: %s", c->name, error.line, error.text);
    snprintf(path, sizeof path, "%s/%s", c->folder,
             string_member(c, c->sidecar, "file"));
    if (attn_file_open(path, &c->file, &diag) != ATTN_OK)
        refuse(c, "%s: %s", diag.field, diag.message);
}

static void run(test_case *c)
{
    const char *kind;

    open_case(c);
    kind = string_member(c, c->sidecar, "kind");
    if (strcmp(kind, "attention") == 0)
        core_attention(c);
    else if (strcmp(kind, "rope") == 0)
        core_rope(c);
    else if (strcmp(kind, "onnx_node") == 0)
        onnx_node(c);
    else
        refuse(c, "the kind \"%s\" is not known", kind);
    if (c->paths[0] == '\0')
        refuse(c, "nothing was compared");
}

bool case_run(const char *folder, const char *name, bool verbose)
{
    test_case *c = calloc(1, sizeof *c);
    bool passed;

    if (!c) {
        printf("FAIL %s/%s: out of memory\n", folder, name);
        return false;
    }
    c->folder = folder;
    c->name = name;
    c->verbose = verbose;
    if (setjmp(c->refused) == 0)
        run(c);
    if (verbose && !c->failed)
        printf("ok   %s/%s:%s\n", folder, name, c->paths);
    passed = !c->failed;
    drop_all(c);
    attn_file_close(c->file);
    json_decref(c->sidecar);
    free(c);
    return passed;
}
