/* SPDX-License-Identifier: Apache-2.0
 *
 * The distance of words: how many letters must be put in, left out or changed,
 * or neighbours swapped. */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 96 /* longer words are near to none */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];

    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        /* Row i lies in i % 3: i + 1 is the place of row i - 2. */
        const size_t *before = rows[(i + 1) % 3], *last = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1,
                           last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void cli_nearest_offer(cli_nearest *nearest, const char *candidate)
{
    const size_t m = strlen(candidate);
    size_t d;

    if (nearest->n > LONGEST || m > LONGEST)
        return;
    d = distance(nearest->word, nearest->n, candidate, m);
    /* A third of the letters may be wrong, no more. */
    if (d > 0 && 3 * d > nearest->n + 1)
        return;
    if (nearest->best && nearest->distance <= d)
        return;
    nearest->best = candidate;
    nearest->distance = d;
}

void cli_nearest_text(const cli_nearest *nearest, const char *prefix,
                      char *text, size_t size)
{
    text[0] = '\0';
    if (nearest->best)
        snprintf(text, size, "; did you mean '%s%s'?", prefix, nearest->best);
}
