/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as sums of bf16 parts, laid out as AMX tiles: fp32 is exactly three
 * (8 + 8 + 8 digits), f16 two, bf16 one. Each layout is [part][tile]...[16][32]
 * in slots of the workspace; what is behind the given rows and columns is 0.
 *
 * A row is odd where its parts would not do: bf16 products have the exponents
 * of fp32, but no denormals, and a part of an infinity is NaN. Odd rows are
 * multiplied by vectors instead. That is a property of the row alone, so no
 * other row's bits depend on it. */

#define PARTS (STORAGE == STORAGE_F32 ? 3 : STORAGE == STORAGE_F16 ? 2 : 1)
#define PART_BITS 16

/* Largest sizes that parts stand for: no sum of products overflows. */
#define EVEN_MOST 0x1p50f
/* Smallest values (but 0): below, parts of fp32 would be denormal. */
#define EVEN_LEAST 0x1p-100f
#define EVEN_ANY 0x1p-149f
/* And of two such numbers, so that a product's parts are none of them. */
#define EVEN_BOTH (STORAGE == STORAGE_F32 ? 0x1p-50f : 0x1p-62f)
/* Values are multiplied by this and their sums divided, so that products with
 * small weights stay above 2^-126. */
#define VALUE_SCALE 0x1p40f
/* The same for weights and ds in backward, which may be as small as 2^-149. */
#define DS_SCALE 0x1p24f

/* x to 8 digits, half away from zero. */
static inline V part_round(V x)
{
    return (V)(((VI)x + (1 << (PART_BITS - 1))) & -(1 << PART_BITS));
}

/* x, or an infinity where it is NaN: rounding would carry some NaNs into 0. */
static inline V part_of_nan(V x)
{
    return v_max(x, v_set1((REAL)-INFINITY));
}

/* x = sum of part[0..n): exactly, where x has no more than 8 n digits, else the
 * last part is rounded. */
static inline __attribute__((always_inline)) void
parts_split(V x, V *part, const int n, const bool exact)
{
    UNROLL(3)
    for (int i = 0; i < n - 1; i++) {
        part[i] = part_round(x);
        x = x - part[i];
    }
    part[n - 1] = exact ? x : part_round(x);
}

/* 32 numbers: the high halves of a, then of b. */
static inline void parts_store_row(uint16_t *to, V a, V b)
{
    const __m512i odd = _mm512_add_epi16(
        _mm512_set1_epi32(0x00030001),
        (__m512i)((VI){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} *
                  0x00040004));

    _mm512_store_si512(to, _mm512_permutex2var_epi16((__m512i)a, odd,
                                                     (__m512i)b));
}

/* 16 pairs: the high halves of a and b by turns. */
static inline void parts_store_pairs(uint16_t *to, V a, V b)
{
    _mm512_store_si512(
        to, _mm512_mask_blend_epi16(
                0xaaaaaaaa, _mm512_srli_epi32((__m512i)a, PART_BITS),
                (__m512i)b));
}

/* LANES neighbours of which the first n are there. */
static inline V some_load(const REAL *from, int64_t n)
{
    if (n >= LANES)
        return v_loadu(from);
    if (n <= 0)
        return v_set1(0);
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}

static inline ptrdiff_t steps_of(int64_t n)
{
    return (ptrdiff_t)((n + AMX_STEP - 1) / AMX_STEP);
}

/* The largest size and the smallest but 0, lane by lane, as the integers that
 * order floats of one sign; of the smallest, one less, so that 0 is last. */
typedef struct sizes {
    VI most, least;
} sizes;

static const sizes no_sizes = {{0}, {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1}};

static inline void sizes_add(sizes *s, V x)
{
    const __m512i size = (__m512i)v_abs(x);

    s->most = (VI)_mm512_max_epi32((__m512i)s->most, size);
    s->least = (VI)_mm512_min_epu32((__m512i)s->least,
                                    (__m512i)((VI)size - 1));
}

/* Lanes where a size is neither 0 nor in [least, EVEN_MOST]. */
static inline VM sizes_odd(const sizes *s, float least)
{
    return (VM)(_mm512_cmpgt_epi32_mask((__m512i)s->most,
                                        (__m512i)v_set1(EVEN_MOST)) |
                _mm512_cmplt_epu32_mask((__m512i)s->least,
                                        (__m512i)((VI)v_set1(least) - 1)));
}

/* A bit for each of n <= 64 rows that is odd. */
static uint64_t rows_odd(const REAL *rows, ptrdiff_t row, int64_t n,
                         int64_t dim, float least)
{
    uint64_t odd = 0;

    for (int64_t j = 0; j < n; j++) {
        sizes row_sizes = no_sizes;
        int64_t c = 0;

        for (; c + LANES <= dim; c += LANES)
            sizes_add(&row_sizes, v_loadu(rows + j * row + c));
        sizes_add(&row_sizes, some_load(rows + j * row + c, dim - c));
        odd |= (uint64_t)(sizes_odd(&row_sizes, least) != 0) << j;
    }
    return odd;
}

/* Lanes of a panel [dim][lane] that are odd, a bit each. */
static void lanes_odd(unsigned *odd, const REAL *panel, int64_t dim,
                      float least)
{
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        sizes lanes = no_sizes;

        for (int64_t c = 0; c < dim; c++)
            sizes_add(&lanes, v_load(panel + c * TILE_ROWS + v * LANES));
        odd[v] = sizes_odd(&lanes, least);
    }
}

/* The 32 numbers of x and y into a row of a tile of each of `parts`: one after
 * the other, or as `pairs`, two rows of a right operand, by turns. */
static inline __attribute__((always_inline)) void
parts_of_vectors(uint16_t *to, ptrdiff_t part_size, V x, V y, const bool pairs,
                 const int parts, const bool exact)
{
    V a[3], b[3];

    parts_split(x, a, parts, exact);
    parts_split(y, b, parts, exact);
    UNROLL(3)
    for (int i = 0; i < parts; i++)
        (pairs ? parts_store_pairs : parts_store_row)(to + i * part_size, a[i],
                                                      b[i]);
}

/* rows[j][c] times scale as [part][j / 16][c / 32][16][32]: left operands whose
 * sums run over columns. `part_size`: bf16s of all tiles of one part. */
static inline __attribute__((always_inline)) void
parts_of_rows(uint16_t *out, ptrdiff_t part_size, const REAL *rows,
              ptrdiff_t row, int64_t n, int64_t dim, const REAL scale,
              const int parts, const bool exact)
{
    const ptrdiff_t steps = steps_of(dim);

    for (int64_t j = 0; j < steps_of(n) * AMX_STEP; j++)
        for (ptrdiff_t t = 0; t < steps; t++) {
            const REAL *from = rows + j * row + t * AMX_STEP;
            const int64_t there = j < n ? dim - t * AMX_STEP : 0;

            parts_of_vectors(out + (j / AMX_ROWS * steps + t) * AMX_TILE +
                                 j % AMX_ROWS * AMX_STEP,
                             part_size,
                             part_of_nan(some_load(from, there)) *
                                 v_set1(scale),
                             part_of_nan(some_load(from + LANES,
                                                   there - LANES)) *
                                 v_set1(scale),
                             false, parts, exact);
        }
}

/* 16 columns from c on of 16 rows from j on, transposed and scaled. */
static inline void columns_load(V *square, const REAL *rows, ptrdiff_t row,
                                int64_t j, int64_t n, int64_t there,
                                uint64_t odd, REAL scale)
{
    if (j + LANES <= n && there >= LANES && odd == 0) {
        UNROLL(16)
        for (ptrdiff_t i = 0; i < LANES; i++)
            square[i] = v_loadu(rows + (j + i) * row) * v_set1(scale);
    } else {
        for (ptrdiff_t i = 0; i < LANES; i++, j++)
            square[i] = j < n && !(odd >> j & 1)
                            ? some_load(rows + j * row, there) * v_set1(scale)
                            : v_set1(0);
    }
    v_transpose(square);
}

/* rows[j][c] times scale as [part][c / 16][j / 32][16][32]: left operands whose
 * sums run over rows. Rows that are odd count as 0; an even number of tiles of
 * columns. */
static void parts_of_columns(uint16_t *out, ptrdiff_t part_size,
                             const REAL *rows, ptrdiff_t row, int64_t n,
                             int64_t dim, uint64_t odd, REAL scale)
{
    const ptrdiff_t steps = steps_of(n);

    for (int64_t c = 0; c < steps_of(dim) * AMX_STEP; c += LANES)
        for (ptrdiff_t t = 0; t < steps; t++) {
            uint16_t *to = out + (c / LANES * steps + t) * AMX_TILE;
            V low[16], high[16];

            columns_load(low, rows + c, row, t * AMX_STEP, n, dim - c, odd,
                         scale);
            columns_load(high, rows + c, row, t * AMX_STEP + LANES, n, dim - c,
                         odd, scale);
            for (ptrdiff_t r = 0; r < LANES; r++, to += AMX_STEP)
                parts_of_vectors(to, part_size, low[r], high[r], false, PARTS,
                                 true);
        }
}

/* rows[r][c] times scale as [part][r / 32][c / 16][16][2 c + r % 2]: right
 * operands, of n rows of `vectors` vectors; rows that are odd count as 0. */
static inline __attribute__((always_inline)) void
parts_of_right(uint16_t *out, ptrdiff_t part_size, const REAL *rows,
               ptrdiff_t row, int64_t n, ptrdiff_t vectors, uint32_t odd,
               const REAL scale, const int parts, const bool exact)
{
    for (int64_t r = 0; r < steps_of(n) * AMX_STEP; r += 2)
        for (ptrdiff_t v = 0; v < vectors; v++) {
            uint16_t *to = out +
                           (r / AMX_STEP * vectors + v) * AMX_TILE +
                           r % AMX_STEP / 2 * AMX_STEP;
            V pair[2];

            UNROLL(2)
            for (ptrdiff_t k = 0; k < 2; k++)
                pair[k] = r + k < n && !(odd && odd >> (r + k) & 1)
                              ? part_of_nan(v_load(rows + (r + k) * row +
                                                   v * LANES)) *
                                    v_set1(scale)
                              : v_set1(0);
            parts_of_vectors(to, part_size, pair[0], pair[1], true, parts,
                             exact);
        }
}

/* The same of a panel [n][lane]. */
static inline __attribute__((always_inline)) void
parts_of_panel(uint16_t *out, ptrdiff_t part_size, const REAL *panel,
               int64_t n, const REAL scale, const int parts, const bool exact)
{
    parts_of_right(out, part_size, panel, TILE_ROWS, n, TILE_VECTORS, 0, scale,
                   parts, exact);
}
