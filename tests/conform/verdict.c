/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict on one array of one path. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conform.h"

/* Never written with a maximum: NaN would vanish in it. */
static bool is_close(double got, double expected, double most)
{
    if (isnan(expected))
        return isnan(got);
    if (isinf(expected) || isinf(got))
        return got == expected;
    return fabs(got - expected) <= most;
}

static double allowed(tolerance t, double expected)
{
    return fmin(t.atol + t.rtol * fabs(expected), t.most);
}

/* "[1,0,3]" of element n. */
static void write_index(const array *a, int64_t n, char *text, size_t size)
{
    int64_t index[MAX_RANK];
    size_t used = 0;

    for (int32_t axis = a->rank - 1; axis >= 0; axis--) {
        index[axis] = n % a->shape[axis];
        n /= a->shape[axis];
    }
    text[0] = '\0';
    for (int32_t axis = 0; axis < a->rank && used < size; axis++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 axis ? "," : "", (long long)index[axis]);
}

void compare(test_case *c, const char *path, const array *expected,
             const double *got, tolerance t)
{
    int64_t wrong = 0, first = 0;
    char index[128];

    note_path(c, path);
    for (int64_t n = 0; n < expected->count; n++) {
        if (is_close(got[n], expected->x[n], allowed(t, expected->x[n])))
            continue;
        if (wrong++ == 0)
            first = n;
    }
    if (wrong == 0)
        return;
    write_index(expected, first, index, sizeof index);
    complain(c,
             "%s: %s[%s] got %.17g expected %.17g tolerance %.3g "
             "(%lld of %lld wrong)",
             path, expected->name, index, got[first], expected->x[first],
             allowed(t, expected->x[first]), (long long)wrong,
             (long long)expected->count);
}

void note_path(test_case *c, const char *path)
{
    const size_t used = strlen(c->paths);

    if (!is_known(c->paths, path))
        snprintf(c->paths + used, sizeof c->paths - used, " %s", path);
}

double largest_finite(const array *a)
{
    double largest = 0;

    for (int64_t n = 0; n < a->count; n++) {
        if (isfinite(a->x[n]) && fabs(a->x[n]) > largest)
            largest = fabs(a->x[n]);
    }
    return largest;
}
