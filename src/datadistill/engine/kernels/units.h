/* Images, kernels, selections and results as the maps' lanes need them. */

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
    int32_t *at = made.at;
    for (int64_t i = 0; !own->failed && i < s->pooled_height; i++)
        for (int64_t k = 0; k < s->pooled_width; k += 1 + pair)
            *at++ = (int32_t)(2 * (i * made.pitch + k));
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

/* Within each quarter, of 4×4 numbers. */
INLINE void turn_in_quarters(__m512 *v) {
    const __m512 a = _mm512_unpacklo_ps(v[0], v[1]), b = _mm512_unpackhi_ps(v[0], v[1]);
    const __m512 c = _mm512_unpacklo_ps(v[2], v[3]), d = _mm512_unpackhi_ps(v[2], v[3]);
    v[0] = low(a, c);
    v[1] = high(a, c);
    v[2] = low(b, d);
    v[3] = high(b, d);
}

/* Of 16×16 numbers. */
INLINE void turn(__m512 *v) {
#pragma GCC unroll 4
    for (int i = 0; i < WIDE; i += 4) turn_in_quarters(v + i);
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

#define FOR_PAIRS(pair, function, ...) \
    if (pair) function(1, __VA_ARGS__); else function(0, __VA_ARGS__);

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
INLINE void from_lanes(const int pair, const float *from, int64_t maps, int64_t size, float *to) {
    for (int64_t i = 0; i < size; i += WIDE) {
        __m512 square[WIDE];
#pragma GCC unroll 16
        for (int l = 0; l < WIDE; l++) square[l] = _mm512_load_ps(from + (i + l) * WIDE);
        turn(square);
#pragma GCC unroll 16
        for (int l = 0; l < WIDE >> pair; l++) {
            __m512 sum = square[l << pair];
            if (pair) sum += square[2 * l + 1];
            if (l < maps) _mm512_mask_storeu_ps(to + l * size + i, first(size - i), sum);
        }
    }
}

/* The selections of 16 windows. As a permutation looks at the lowest 4 bits of a number only, four
 * windows' bytes are turned as one number, of which each unit gets a shifted copy. */
INLINE void places_of(const int pair, const __m128i *rows, int32_t *to) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i second = _mm512_and_si512(lane, _mm512_set1_epi32(pair)); /* window of a unit */
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i joined = _mm512_castsi128_si512(rows[i >> pair]);
        joined = _mm512_inserti32x4(joined, rows[(i + 4) >> pair], 1);
        joined = _mm512_inserti32x4(joined, rows[(i + 8) >> pair], 2);
        v[i] = _mm512_castsi512_ps(_mm512_inserti32x4(joined, rows[(i + 12) >> pair], 3));
    }
    turn_in_quarters(v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i bytes = _mm512_castps_si512(v[i]);
        const __m512i row = _mm512_and_si512(bytes, _mm512_set1_epi32(0x02020202));
        const __m512i column = _mm512_and_si512(bytes, _mm512_set1_epi32(0x01010101));
        const __m512i place = _mm512_or_si512(_mm512_slli_epi32(row, 2), column);
#pragma GCC unroll 4
        for (int window = 0; window < 4; window += 1 + pair, to += WIDE) {
            const __m512i own = _mm512_add_epi32(second, _mm512_set1_epi32(window));
            const __m512i shifted = _mm512_srlv_epi32(place, _mm512_slli_epi32(own, 3));
            _mm512_store_si512(to, _mm512_add_epi32(shifted, _mm512_slli_epi32(second, 1)));
        }
    }
}

INLINE void find_places(const int pair, const Lanes *f, const uint8_t *index, int64_t maps) {
    for (int64_t q = 0; q < f->map; q += WIDE) {
        const __mmask16 there = first(f->map - q);
        __m128i rows[WIDE];
#pragma GCC unroll 16
        for (int m = 0; m < WIDE >> pair; m++)
            rows[m] = _mm_maskz_loadu_epi8(m < maps ? there : 0, index + m * f->map + q);
        places_of(pair, rows, f->places + (q >> pair) * WIDE);
    }
}

/* The gradients of a group's maps, zero where nothing is chosen; adds their sum to `sum`. */
INLINE void gather_values(const int pair, const Lanes *f, const float *g, const uint8_t *index,
                          int64_t maps, float *sum) {
    __m512 total = _mm512_load_ps(sum);
    for (int64_t q = 0; q < f->map; q += WIDE, g += WIDE, index += WIDE) {
        const __mmask16 there = first(f->map - q);
        __m512 v[WIDE];
#pragma GCC unroll 16
        for (int m = 0; m < WIDE >> pair; m++)
            v[m] = _mm512_maskz_loadu_ps(chosen(index + m * f->map, m < maps ? there : 0),
                                         g + m * f->map);
        if (pair) turn_pairs(v); else turn(v);
        float *to = f->values + (q >> pair) * WIDE;
#pragma GCC unroll 16
        for (int u = 0; u < WIDE >> pair; u++) {
            total += v[u];
            _mm512_store_ps(to + u * WIDE, v[u]);
        }
    }
    _mm512_store_ps(sum, total);
}

/* And back, for the result. */
INLINE void spread_values(const int pair, const Lanes *f, const uint8_t *index, int64_t maps,
                          float *y) {
    for (int64_t q = 0; q < f->map; q += WIDE, y += WIDE, index += WIDE) {
        const __mmask16 there = first(f->map - q);
        const float *from = f->values + (q >> pair) * WIDE;
        __m512 v[WIDE];
#pragma GCC unroll 16
        for (int u = 0; u < WIDE >> pair; u++) v[u] = _mm512_load_ps(from + u * WIDE);
        if (pair) turn_pairs(v); else turn(v);
#pragma GCC unroll 16
        for (int m = 0; m < WIDE >> pair; m++)
            if (m < maps) {
                const __mmask16 alive = chosen(index + m * f->map, there);
                _mm512_mask_storeu_ps(y + m * f->map, there, _mm512_maskz_mov_ps(alive, v[m]));
            }
    }
}
