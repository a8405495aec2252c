/* The gradient of the images of a convolution with a selection: strips of the image.
 *
 * Each map adds its kernel, shifted to where in the pooling window its pixel is, to some rows of 8
 * pixels. The windows below each other make a strip of the image, whose last rows stay in registers
 * from window to window. Strips overlap: of four, each has an array of its own, in which it is a
 * column of blocks beside those of the next but three; at the end the arrays are added up.
 */

#include "vectors.h"
#include "lanes.h"

#ifdef WIDE
#define BLOCK 8   /* pixels of a strip's row */
#define ARRAYS 4  /* neighbouring windows begin 2 pixels apart */
#define POSITIONS 4
#define CHANNELS 3 /* at once, at most */
#define PAIRS 4    /* of rows, at most */

typedef struct {
    int64_t map;
    int64_t pairs;  /* of rows that the maps of one window touch */
    int64_t pitch;  /* of an array */
    int64_t plane;  /* of one channel in it */
    int64_t array;  /* numbers of one */
    float *arrays, *kernels, *values;
} Strips;

static Strips strips(const Shape *s, Rooms *own) {
    const int64_t pairs = s->rows / 2 + 1, last = 2 * (s->pooled_height - 1 + pairs);
    const int64_t height = s->height + 2 * s->padding_y;
    Strips made = {
        .map = s->pooled_height * s->pooled_width,
        .pairs = pairs,
        .pitch = (up(s->width) + s->padding_x + 3 * BLOCK - 1) / BLOCK * BLOCK,
    };
    made.plane = (last > height ? last : height) * made.pitch;
    made.array = s->in * made.plane;
    made.arrays = room(own, ARRAYS * made.array);
    made.kernels = room(own, POSITIONS * s->out * s->in * pairs * WIDE);
    made.values = room(own, s->out * made.map);
    return made;
}

/* Kernels (out, in, rows, columns) for each position: pairs of rows, with zeros around them.
 * Channels that are treated at once lie side by side. */
static void shift(const Shape *s, const Strips *f, int64_t channels, const float *w, float *to) {
    const int64_t size = channels * f->pairs * WIDE, below = s->out * size;
    const __mmask8 columns = (__mmask8)((1 << s->columns) - 1);
    for (int64_t o = 0; o < s->out; o++, w += s->in * s->rows * s->columns, to += size)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t r = 0; r < s->rows; r++) {
                const float *from = w + (c * s->rows + r) * s->columns;
                float *row = to + 2 * c * f->pairs * BLOCK + r * BLOCK;
#pragma GCC unroll 2
                for (int v = 0; v < 2; v++, row += below) {
                    const __m256 moved = _mm256_maskz_expandloadu_ps((__mmask8)(columns << v), from);
                    _mm256_store_ps(row, moved);
                    _mm256_store_ps(row + 2 * below + BLOCK, moved);
                }
            }
}

/* The gradients of one image, zero where nothing is chosen. */
static void mask(const float *g, const uint8_t *index, int64_t size, float *to) {
    for (int64_t i = 0; i < size; i += WIDE)
        _mm512_store_ps(to + i, _mm512_maskz_loadu_ps(chosen(index + i, first(size - i)), g + i));
}

INLINE void store_rows(float *to, int64_t pitch, __m512 rows) {
    _mm256_storeu_ps(to, _mm512_castps512_ps256(rows));
    _mm256_storeu_ps(to + pitch, _mm512_extractf32x8_ps(rows, 1));
}

/* One strip: window after window, downwards. */
INLINE void strip(const int channels, const int pairs, const Shape *s, const Strips *f,
                  const float *kernels, const float *g, const uint8_t *index, float *to) {
    const int count = channels * pairs;
    const int64_t size = count * WIDE, of_position = s->out * size;
    __m512 sum[CHANNELS * PAIRS], other[CHANNELS * PAIRS];
#pragma GCC unroll 12
    for (int i = 0; i < count; i++) sum[i] = _mm512_setzero_ps();
    for (int64_t y = 0; y < s->pooled_height; y++, to += 2 * f->pitch) {
        const float *value = g + y * s->pooled_width, *kernel = kernels;
        const uint8_t *position = index + y * s->pooled_width;
#pragma GCC unroll 12
        for (int i = 0; i < count; i++) other[i] = _mm512_setzero_ps();
        int64_t o = 0;
        for (; o + 1 < s->out; o += 2, value += 2 * f->map, position += 2 * f->map) {
            const float *one = kernel + *position % POSITIONS * of_position;
            const float *next = kernel + position[f->map] % POSITIONS * of_position + size;
            const __m512 a = _mm512_set1_ps(*value), b = _mm512_set1_ps(value[f->map]);
#pragma GCC unroll 12
            for (int i = 0; i < count; i++) sum[i] += a * _mm512_load_ps(one + i * WIDE);
#pragma GCC unroll 12
            for (int i = 0; i < count; i++) other[i] += b * _mm512_load_ps(next + i * WIDE);
            kernel += 2 * size;
        }
        if (o < s->out) {
            const float *one = kernel + *position % POSITIONS * of_position;
            const __m512 a = _mm512_set1_ps(*value);
#pragma GCC unroll 12
            for (int i = 0; i < count; i++) sum[i] += a * _mm512_load_ps(one + i * WIDE);
        }
#pragma GCC unroll 12
        for (int i = 0; i < count; i++) sum[i] += other[i];
#pragma GCC unroll 4
        for (int c = 0; c < channels; c++) {
            store_rows(to + c * f->plane, f->pitch, sum[c * pairs]);
#pragma GCC unroll 4
            for (int i = 0; i < pairs; i++)
                sum[c * pairs + i] = i + 1 < pairs ? sum[c * pairs + i + 1] : _mm512_setzero_ps();
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < channels; c++)
#pragma GCC unroll 4
        for (int i = 0; i + 1 < pairs; i++)
            store_rows(to + c * f->plane + 2 * i * f->pitch, f->pitch, sum[c * pairs + i]);
}

INLINE void all_strips(const int channels, const int pairs, const Shape *s, const Strips *f,
                       const float *kernels, const uint8_t *index, float *to) {
    for (int64_t x = 0; x < s->pooled_width; x++)
        strip(channels, pairs, s, f, kernels, f->values + x, index + x,
              to + x % ARRAYS * f->array + BLOCK + x / ARRAYS * BLOCK);
}

#define ALL s, f, kernels, index, to
INLINE void strips_of(const int channels, const Shape *s, const Strips *f, const float *kernels,
                      const uint8_t *index, float *to) {
    switch (f->pairs) {
        case 1: all_strips(channels, 1, ALL); break;
        case 2: all_strips(channels, 2, ALL); break;
        case 3: all_strips(channels, 3, ALL); break;
        default: all_strips(channels, PAIRS, ALL);
    }
}

static int64_t at_once(const Shape *s, int64_t channel) {
    const int64_t left = s->in - channel;
    return left < CHANNELS ? left : CHANNELS;
}

/* The sum of the arrays, without the padding. */
static void add_up(const Shape *s, const Strips *f, float *x) {
    for (int64_t c = 0; c < s->in; c++)
        for (int64_t r = 0; r < s->height; r++, x += s->width) {
            const float *from = f->arrays + c * f->plane + (r + s->padding_y) * f->pitch + BLOCK +
                                s->padding_x;
            for (int64_t k = 0; k < s->width; k += WIDE) {
                __m512 sum = _mm512_loadu_ps(from + k);
#pragma GCC unroll 4
                for (int a = 1; a < ARRAYS; a++)
                    sum += _mm512_loadu_ps(from + k + a * (f->array - 2));
                _mm512_mask_storeu_ps(x + k, first(s->width - k), sum);
            }
        }
}

int strips_images(const Shape *s, int64_t networks, int64_t images, const float *g,
                  const uint8_t *index, const float *w, float *x) {
    Rooms *own = rooms();
    if (!own) return 1;
    const Strips f = strips(s, own);
    const int64_t size = s->out * f.map, of_kernel = s->rows * s->columns;
    const int64_t of_channel = POSITIONS * s->out * f.pairs * WIDE;
    for (int64_t j = 0; !own->failed && j < networks; j++, w += s->out * s->in * of_kernel) {
        for (int64_t c = 0; c < s->in; c += CHANNELS)
            shift(s, &f, at_once(s, c), w + c * of_kernel, f.kernels + c * of_channel);
        for (int64_t n = 0; n < images; n++, g += size, index += size) {
            mask(g, index, size, f.values);
            for (int64_t c = 0; c < s->in; c += CHANNELS) {
                const float *kernels = f.kernels + c * of_channel;
                float *to = f.arrays + c * f.plane;
                switch (at_once(s, c)) {
                    case 1: strips_of(1, s, &f, kernels, index, to); break;
                    case 2: strips_of(2, s, &f, kernels, index, to); break;
                    default: strips_of(CHANNELS, s, &f, kernels, index, to);
                }
            }
            add_up(s, &f, x);
            x += s->in * s->height * s->width;
        }
    }
    return own->failed;
}
#endif
