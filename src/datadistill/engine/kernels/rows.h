/* Products of a few rows of numbers with matrices of weights, as linear layers need them.
 *
 * All matrices lie row by row. A block of rows and vectors stays in registers.
 */

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) /* with 32 registers */
#define ROWS 5   /* of one factor in a block */
#define ACROSS 4 /* rows or vectors of the other one */
#else
#define ROWS 4
#define ACROSS 2
#endif
#define APART __attribute__((noinline)) /* many variants of code: a single copy of them */

/* The first numbers of a vector, fewer than it has; the others are zero. */
INLINE vec load_some(const REAL *from, int64_t count) {
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    return sizeof(REAL) == 4 ? (vec)_mm512_maskz_loadu_ps((__mmask16)mask, from)
                             : (vec)_mm512_maskz_loadu_pd((__mmask8)mask, from);
#else
    vec value = {0};
    memcpy(&value, from, sizeof(REAL) * (size_t)count);
    return value;
#endif
}

INLINE void store_some(REAL *to, vec value, int64_t count) {
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    if (sizeof(REAL) == 4) _mm512_mask_storeu_ps(to, (__mmask16)mask, (__m512)value);
    else _mm512_mask_storeu_pd(to, (__mmask8)mask, (__m512d)value);
#else
    memcpy(to, &value, sizeof(REAL) * (size_t)count);
#endif
}

INLINE vec load_up_to(const REAL *from, int64_t count) {
    return count >= LANES ? load(from) : load_some(from, count);
}

INLINE void store_up_to(REAL *to, vec value, int64_t count) {
    if (count >= LANES) store(to, value);
    else store_some(to, value, count);
}

/* Adds the sums of some vectors' numbers to as many numbers. */
INLINE void add_totals(const int count, const vec *v, REAL *y) {
#if defined(__AVX512F__)
    if (sizeof(REAL) == 4 && count == 4) { /* side by side, in a third of the time */
        __m128 quarter[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m512 whole = (__m512)v[i];
            const __m256 half = _mm256_add_ps(
                _mm512_castps512_ps256(whole),
                _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(whole), 1)));
            quarter[i] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        }
        const __m128 one = _mm_add_ps(_mm_unpacklo_ps(quarter[0], quarter[1]),
                                      _mm_unpackhi_ps(quarter[0], quarter[1]));
        const __m128 other = _mm_add_ps(_mm_unpacklo_ps(quarter[2], quarter[3]),
                                        _mm_unpackhi_ps(quarter[2], quarter[3]));
        const __m128 sums = _mm_add_ps(_mm_movelh_ps(one, other), _mm_movehl_ps(other, one));
        float *to = (float *)y;
        _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), sums));
        return;
    }
#endif
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) y[i] += total(v[i]);
}

/* y[n][o] += Σ_i x[n][i] w[o][i] for some rows n and o. */
INLINE void dot_block(const int rows, const int outputs, int64_t in, const REAL *x, const REAL *w,
                      REAL *y, int64_t pitch) {
    vec sum[ROWS][ACROSS];
#pragma GCC unroll 8
    for (int n = 0; n < rows; n++)
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++) sum[n][o] = (vec){0};
    int64_t i = 0;
    for (; i + LANES <= in; i += LANES) {
        vec weight[ACROSS];
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++) weight[o] = load(w + o * in + i);
#pragma GCC unroll 8
        for (int n = 0; n < rows; n++) {
            const vec own = load(x + n * in + i);
#pragma GCC unroll 8
            for (int o = 0; o < outputs; o++) sum[n][o] += own * weight[o];
        }
    }
    if (i < in) {
        vec weight[ACROSS];
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++) weight[o] = load_some(w + o * in + i, in - i);
#pragma GCC unroll 8
        for (int n = 0; n < rows; n++) {
            const vec own = load_some(x + n * in + i, in - i);
#pragma GCC unroll 8
            for (int o = 0; o < outputs; o++) sum[n][o] += own * weight[o];
        }
    }
#pragma GCC unroll 8
    for (int n = 0; n < rows; n++) add_totals(outputs, sum[n], y + n * pitch);
}

/* y[n][i] += Σ_k g[n][k] w[k][i] for some rows n and vectors i, of which `left` numbers are left;
 * g's numbers lie `of_row` and `of_term` apart. */
INLINE void sum_block(const int rows, const int vectors, int64_t terms, const REAL *g,
                      int64_t of_row, int64_t of_term, const REAL *w, int64_t pitch, REAL *y,
                      int64_t left) {
    vec sum[ROWS][ACROSS];
    const int64_t last = left - (vectors - 1) * LANES;
#pragma GCC unroll 8
    for (int n = 0; n < rows; n++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[n][v] = v < vectors - 1 ? load(y + n * pitch + v * LANES)
                                        : load_up_to(y + n * pitch + v * LANES, last);
    for (int64_t k = 0; k < terms; k++) {
        vec weight[ACROSS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            weight[v] = v < vectors - 1 ? load(w + k * pitch + v * LANES)
                                        : load_up_to(w + k * pitch + v * LANES, last);
#pragma GCC unroll 8
        for (int n = 0; n < rows; n++) {
            const REAL factor = g[n * of_row + k * of_term];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) sum[n][v] += factor * weight[v];
        }
    }
#pragma GCC unroll 8
    for (int n = 0; n < rows; n++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            if (v < vectors - 1) store(y + n * pitch + v * LANES, sum[n][v]);
            else store_up_to(y + n * pitch + v * LANES, sum[n][v], last);
        }
}

/* Whole blocks, and what is left over one by one: fewer variants take less time to compile. */
#define BLOCKS(call, rows, n, across, i)                     \
    for (int64_t n = 0, step; n < (rows); n += step) {       \
        step = (rows) - n < ROWS ? 1 : ROWS;                 \
        for (int64_t i = 0, some; i < (across); i += some) { \
            some = (across) - i < ACROSS ? 1 : ACROSS;       \
            if (step > 1 && some > 1) call(ROWS, ACROSS);    \
            else if (step > 1) call(ROWS, 1);                \
            else if (some > 1) call(1, ACROSS);              \
            else call(1, 1);                                 \
        }                                                    \
    }

/* y (rows, out) += x (rows, in) · wᵀ, of weights (out, in). */
APART static void add_forward(int64_t images, int64_t in, int64_t out, const REAL *x, const REAL *w,
                        REAL *y) {
#define DOT(rows, outputs) \
    dot_block(rows, outputs, in, x + n * in, w + o * in, y + n * out + o, out)
    BLOCKS(DOT, images, n, out, o)
#undef DOT
}

/* y (rows, across) += Σ over terms of g (rows, terms) · w (terms, across). */
APART static void add_sums(int64_t count, int64_t terms, int64_t across, const REAL *g, int64_t of_row,
                     int64_t of_term, const REAL *w, REAL *y) {
#define SUM(rows, vectors)                                                          \
    sum_block(rows, vectors, terms, g + n * of_row, of_row, of_term, w + v * LANES, \
              across, y + n * across + v * LANES, across - v * LANES)
    const int64_t length = (across + LANES - 1) / LANES;
    BLOCKS(SUM, count, n, length, v)
#undef SUM
}
