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
typedef struct {
    int pair;             /* 1 if a unit has two windows, else 0 */
    int64_t pitch, plane; /* of an image with its padding */
    int64_t map, units;   /* windows, and how many units these are */
    int64_t maps, groups; /* of a vector, and vectors for all maps */
    int64_t taps, size;   /* of a kernel, and numbers of a group's kernels, with the biases */
    float *image, *kernels;
    float *values;   /* of the units */
    int32_t *places; /* among two rows of 8 pixels, of those that the first tap meets */
    int32_t *at;     /* the units' first pixels */
} Lanes;

static Lanes lanes(const Shape *s, Rooms *own) {
    const int pair = s->out <= WIDE / 2 && s->columns <= COLUMNS - 2 && s->pooled_width % 2 == 0;
    const int64_t maps = WIDE >> pair, map = s->pooled_height * s->pooled_width;
    Lanes made = {
        .pair = pair,
        .pitch = s->width + 2 * s->padding_x,
        .map = map,
        .units = map >> pair,
        .maps = maps,
        .groups = (s->out + maps - 1) / maps,
        .taps = s->in * s->rows * s->columns,
    };
    made.plane = (s->height + 2 * s->padding_y) * made.pitch;
    made.size = (up(made.taps) + WIDE) * WIDE;
    made.image = room(own, s->in * made.plane);
    made.kernels = room(own, made.groups * made.size);
    made.values = room(own, (up(map) >> pair) * WIDE);
    made.places = room(own, (up(map) >> pair) * WIDE);
    made.at = room(own, made.units);
    const int64_t across = s->pooled_width >> pair;
    for (int64_t u = 0; !own->failed && u < made.units; u++)
        made.at[u] = (int32_t)(u / across * 2 * made.pitch + (u % across * 2 << pair));
    return made;
}

static int64_t maps_of(const Shape *s, const Lanes *f, int64_t group) {
    const int64_t left = s->out - group * f->maps;
    return left < f->maps ? left : f->maps;
}

static void copy(const float *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i += WIDE)
        _mm512_mask_storeu_ps(to + i, first(count - i),
                              _mm512_maskz_loadu_ps(first(count - i), from + i));
}

static void pad(const Shape *s, const Lanes *f, const float *from) {
    if (!s->padding_x) { /* rows follow each other */
        const int64_t size = s->height * s->width;
        for (int64_t c = 0; c < s->in; c++)
            copy(from + c * size, size, f->image + c * f->plane + s->padding_y * f->pitch);
        return;
    }
    for (int64_t c = 0; c < s->in; c++) {
        float *to = f->image + c * f->plane + s->padding_y * f->pitch + s->padding_x;
        for (int64_t r = 0; r < s->height; r++, from += s->width, to += f->pitch)
            copy(from, s->width, to);
    }
}

/* --- Exchanging rows and columns. */

#define EVEN(a, b) _mm512_shuffle_f32x4(a, b, 0x88)
#define ODD(a, b) _mm512_shuffle_f32x4(a, b, 0xdd)

/* Of a square of 4×4 quarters of vectors, which stay as they are. */
INLINE void turn_quarters(__m512 *v, const int step) {
    const __m512 a = EVEN(v[0], v[step]), b = EVEN(v[2 * step], v[3 * step]);
    const __m512 c = ODD(v[0], v[step]), d = ODD(v[2 * step], v[3 * step]);
    v[0] = EVEN(a, b);
    v[step] = EVEN(c, d);
    v[2 * step] = ODD(a, b);
    v[3 * step] = ODD(c, d);
}

INLINE __m512 low(__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

INLINE __m512 high(__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/* Of 16×16 numbers. */
INLINE void turn(__m512 *v) {
    __m512 t[WIDE];
#pragma GCC unroll 8
    for (int i = 0; i < WIDE; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < WIDE; i += 4) {
        v[i] = low(t[i], t[i + 2]);
        v[i + 1] = high(t[i], t[i + 2]);
        v[i + 2] = low(t[i + 1], t[i + 3]);
        v[i + 3] = high(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) turn_quarters(v + i, 4);
}

/* Of 8×8 pairs of numbers. */
INLINE void turn_pairs(__m512 *v) {
#pragma GCC unroll 4
    for (int i = 0; i < WIDE / 2; i += 2) {
        const __m512 even = low(v[i], v[i + 1]);
        v[i + 1] = high(v[i], v[i + 1]);
        v[i] = even;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) turn_quarters(v + i, 2);
}

/* --- From an array for each map to lanes, and back. */

/* Numbers of each map; both windows of a unit get the same. */
static void to_lanes(const Lanes *f, const float *from, int64_t maps, int64_t size, float *to) {
    for (int64_t i = 0; i < size; i += WIDE) {
        __m512 square[WIDE];
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++)
            square[l] = _mm512_maskz_loadu_ps(l >> f->pair < maps ? first(size - i) : 0,
                                              from + (l >> f->pair) * size + i);
        turn(square);
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++) _mm512_store_ps(to + (i + l) * WIDE, square[l]);
    }
}

/* And back: the sum of a unit's windows. */
static void from_lanes(const Lanes *f, const float *from, int64_t maps, int64_t size, float *to) {
    for (int64_t i = 0; i < size; i += WIDE) {
        __m512 square[WIDE];
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++) square[l] = _mm512_load_ps(from + (i + l) * WIDE);
        turn(square);
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++)
            if (l < maps) {
                __m512 sum = square[l];
                if (f->pair) sum = square[2 * l % WIDE] + square[(2 * l + 1) % WIDE];
                _mm512_mask_storeu_ps(to + l * size + i, first(size - i), sum);
            }
    }
}

/* The selection of 16 windows. A permutation looks at the lowest 4 bits of a number only: so four
 * windows' bytes are turned as one number, which is then shifted. */
static void find_places(const Lanes *f, const uint8_t *index, int64_t maps) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i second = _mm512_and_si512(lane, _mm512_set1_epi32(f->pair));
    for (int64_t q = 0; q < f->map; q += WIDE) {
        __m128i rows[WIDE];
        __m512 four[4];
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++)
            rows[l] = _mm_maskz_loadu_epi8(l >> f->pair < maps ? first(f->map - q) : 0,
                                           index + (l >> f->pair) * f->map + q);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            __m512i joined = _mm512_castsi128_si512(rows[i]);
            joined = _mm512_inserti32x4(joined, rows[i + 4], 1);
            joined = _mm512_inserti32x4(joined, rows[i + 8], 2);
            four[i] = _mm512_castsi512_ps(_mm512_inserti32x4(joined, rows[i + 12], 3));
        }
        const __m512 a = _mm512_unpacklo_ps(four[0], four[1]);
        const __m512 b = _mm512_unpackhi_ps(four[0], four[1]);
        const __m512 c = _mm512_unpacklo_ps(four[2], four[3]);
        const __m512 d = _mm512_unpackhi_ps(four[2], four[3]);
        const __m512 turned[4] = {low(a, c), high(a, c), low(b, d), high(b, d)};
        int32_t *to = f->places + (q >> f->pair) * WIDE;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m512i bytes = _mm512_castps_si512(turned[i]);
            const __m512i row = _mm512_and_si512(bytes, _mm512_set1_epi32(0x02020202));
            const __m512i column = _mm512_and_si512(bytes, _mm512_set1_epi32(0x01010101));
            const __m512i place = _mm512_or_si512(_mm512_slli_epi32(row, 2), column);
            for (int window = 0; window < 4; window += 1 << f->pair, to += WIDE) {
                const __m512i own = _mm512_add_epi32(second, _mm512_set1_epi32(window));
                const __m512i shifted = _mm512_srlv_epi32(place, _mm512_slli_epi32(own, 3));
                _mm512_store_si512(to, _mm512_add_epi32(shifted, _mm512_slli_epi32(second, 1)));
            }
        }
    }
}

/* The gradients of a group's maps, zero where nothing is chosen; adds their sum to `sum`. */
static void gather_values(const Lanes *f, const float *g, const uint8_t *index, int64_t maps,
                          float *sum) {
    __m512 total = _mm512_load_ps(sum);
    for (int64_t q = 0; q < f->map; q += WIDE) {
        __m512 square[WIDE];
        const int count = WIDE >> f->pair;
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++)
            square[l] = _mm512_maskz_loadu_ps(
                l < maps ? chosen(index + l * f->map + q, f->map - q) : 0, g + l * f->map + q);
        if (f->pair) turn_pairs(square); else turn(square);
        float *to = f->values + (q >> f->pair) * WIDE;
#pragma GCC unroll 16
        for (int u = 0; u < WIDE; u++)
            if (u < count) {
                total += square[u];
                _mm512_store_ps(to + u * WIDE, square[u]);
            }
    }
    _mm512_store_ps(sum, total);
}

/* And back, for the result. */
static void spread_values(const Lanes *f, const uint8_t *index, int64_t maps, float *y) {
    for (int64_t q = 0; q < f->map; q += WIDE) {
        __m512 square[WIDE];
        const float *from = f->values + (q >> f->pair) * WIDE;
        const int count = WIDE >> f->pair;
#pragma GCC unroll 16
        for (int u = 0; u < WIDE; u++) square[u] = _mm512_load_ps(from + u % count * WIDE);
        if (f->pair) turn_pairs(square); else turn(square);
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++)
            if (l < maps) {
                const __mmask16 there = chosen(index + l * f->map + q, f->map - q);
                _mm512_mask_storeu_ps(y + l * f->map + q, first(f->map - q),
                                      _mm512_maskz_mov_ps(there, square[l]));
            }
    }
}

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
                find_places(&f, index, maps);
                FOR_COLUMNS(sums, s, &f, kernels)
                spread_values(&f, index, maps, y);
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
                find_places(&f, index, maps);
                gather_values(&f, g, index, maps, kernels + f.size - WIDE * WIDE);
                FOR_COLUMNS(products_of, s, &f, kernels)
                index += maps * f.map;
                g += maps * f.map;
            }
        }
        for (int64_t i = 0; i < f.groups; i++) {
            const int64_t o = j * s->out + i * f.maps, maps = maps_of(s, &f, i);
            const float *kernels = f.kernels + i * f.size;
            from_lanes(&f, kernels, maps, f.taps, w + o * f.taps);
            from_lanes(&f, kernels + f.size - WIDE * WIDE, maps, 1, b + o);
        }
    }
    return own->failed;
}
#endif
