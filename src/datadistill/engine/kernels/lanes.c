/* The convolution with a given selection, and the gradient of its weights: maps in lanes.
 *
 * All maps choose among four pixels of a pooling window. So what a tap of the kernel meets is, for
 * all maps at once, a permutation of some pixels of two rows: one instruction, and one more
 * multiplies it. With at most 8 maps a vector holds two neighbouring windows in turn: its lane
 * 2m + h is map m in window h. The windows of a vector are called a unit.
 */

#include "vectors.h"
#include "lanes.h"

#ifdef WIDE
#include "units.h"

/* --- The products. */

/* 8 pixels of a row and of the next. */
INLINE __m512 rows_of_two(const float *row, int64_t pitch) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(row)),
                              _mm256_loadu_ps(row + pitch), 1);
}

/* Of what column k of the kernel meets. */
INLINE __m512i place_of(const Lanes *f, int64_t unit, const int k) {
    return _mm512_add_epi32(_mm512_load_si512(f->places + unit * WIDE), _mm512_set1_epi32(k));
}

INLINE void sums(const int columns, const Shape *s, const Lanes *f, const float *w) {
    const __m512 bias = _mm512_load_ps(w + f->size - WIDE * WIDE);
    for (int64_t u = 0; u < f->units; u++) {
        const float *channel = f->image + f->at[u], *tap = w;
        __m512 sum[COLUMNS];
        __m512i places[COLUMNS];
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++) {
            sum[k] = k ? _mm512_setzero_ps() : bias;
            places[k] = place_of(f, u, k);
        }
        for (int64_t c = 0; c < s->in; c++, channel += f->plane) {
            const float *row = channel;
            for (int64_t r = 0; r < s->rows; r++, row += f->pitch, tap += columns * WIDE) {
                const __m512 pixels = rows_of_two(row, f->pitch);
#pragma GCC unroll 8
                for (int k = 0; k < columns; k++)
                    sum[k] += _mm512_load_ps(tap + k * WIDE) *
                              _mm512_permutexvar_ps(places[k], pixels);
            }
        }
#pragma GCC unroll 8
        for (int k = 1; k < columns; k++) sum[0] += sum[k];
        _mm512_store_ps(f->values + u * WIDE, sum[0]);
    }
}

INLINE void products(const int rows, const int columns, const Lanes *f, const float *x, float *w) {
    __m512 sum[3][COLUMNS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++)
            sum[r][k] = _mm512_load_ps(w + (r * columns + k) * WIDE);
    for (int64_t u = 0; u < f->units; u++) {
        const float *from = x + f->at[u];
        const __m512 value = _mm512_load_ps(f->values + u * WIDE);
        __m512i places[COLUMNS];
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++)
            places[k] = place_of(f, u, k);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m512 pixels = rows_of_two(from + r * f->pitch, f->pitch);
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                sum[r][k] += value * _mm512_permutexvar_ps(places[k], pixels);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++)
            _mm512_store_ps(w + (r * columns + k) * WIDE, sum[r][k]);
}

INLINE void products_of(const int columns, const Shape *s, const Lanes *f, float *w) {
    for (int64_t c = 0; c < s->in; c++)
        for (int64_t r = 0; r < s->rows;) {
            const float *x = f->image + c * f->plane + r * f->pitch;
            float *to = w + (c * s->rows + r) * columns * WIDE;
            const int64_t left = s->rows - r;
            if (left >= 3) products(3, columns, f, x, to), r += 3;
            else if (left == 2) products(2, columns, f, x, to), r += 2;
            else products(1, columns, f, x, to), r += 1;
        }
}

#define FOR_COLUMNS(function, ...)                  \
    switch (s->columns) {                           \
        case 1: function(1, __VA_ARGS__); break;    \
        case 2: function(2, __VA_ARGS__); break;    \
        case 3: function(3, __VA_ARGS__); break;    \
        case 4: function(4, __VA_ARGS__); break;    \
        case 5: function(5, __VA_ARGS__); break;    \
        case 6: function(6, __VA_ARGS__); break;    \
        default: function(COLUMNS, __VA_ARGS__);    \
    }

int lanes_forward(const Shape *s, int64_t networks, int64_t images, const float *x,
                  int64_t of_network, int64_t of_image, const float *w, const float *b, float *y,
                  const uint8_t *index) {
    Rooms *own = rooms();
    if (!own) return 1;
    const Lanes f = lanes(s, own);
    for (int64_t j = 0; !own->failed && j < networks; j++) {
        for (int64_t i = 0; i < f.groups; i++) {
            const int64_t o = j * s->out + i * f.maps, maps = maps_of(s, &f, i);
            float *kernels = f.kernels + i * f.size;
            to_lanes(&f, w + o * f.taps, maps, f.taps, kernels);
            to_lanes(&f, b + o, maps, 1, kernels + f.size - WIDE * WIDE);
        }
        for (int64_t n = 0; n < images; n++) {
            pad(s, &f, x + j * of_network + n * of_image);
            for (int64_t i = 0; i < f.groups; i++) {
                const int64_t maps = maps_of(s, &f, i);
                const float *kernels = f.kernels + i * f.size;
                FOR_PAIRS(f.pair, find_places, &f, index, maps)
                FOR_COLUMNS(sums, s, &f, kernels)
                FOR_PAIRS(f.pair, spread_values, &f, index, maps, y)
                index += maps * f.map;
                y += maps * f.map;
            }
        }
    }
    return own->failed;
}

int lanes_weights(const Shape *s, int64_t networks, int64_t images, const float *x,
                  int64_t of_network, int64_t of_image, const float *g, const uint8_t *index,
                  float *w, float *b) {
    Rooms *own = rooms();
    if (!own) return 1;
    const Lanes f = lanes(s, own);
    for (int64_t j = 0; !own->failed && j < networks; j++) {
        memset(f.kernels, 0, sizeof(float) * (size_t)(f.groups * f.size));
        for (int64_t n = 0; n < images; n++) {
            pad(s, &f, x + j * of_network + n * of_image);
            for (int64_t i = 0; i < f.groups; i++) {
                const int64_t maps = maps_of(s, &f, i);
                float *kernels = f.kernels + i * f.size;
                FOR_PAIRS(f.pair, find_places, &f, index, maps)
                FOR_PAIRS(f.pair, gather_values, &f, g, index, maps, kernels + f.size - WIDE * WIDE)
                FOR_COLUMNS(products_of, s, &f, kernels)
                index += maps * f.map;
                g += maps * f.map;
            }
        }
        for (int64_t i = 0; i < f.groups; i++) {
            const int64_t o = j * s->out + i * f.maps, maps = maps_of(s, &f, i);
            const float *kernels = f.kernels + i * f.size;
            FOR_PAIRS(f.pair, from_lanes, kernels, maps, f.taps, w + o * f.taps)
            FOR_PAIRS(f.pair, from_lanes, kernels + f.size - WIDE * WIDE, maps, 1, b + o)
        }
    }
    return own->failed;
}
#endif
