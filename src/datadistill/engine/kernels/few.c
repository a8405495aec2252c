/* Convolutions followed by a selection: few pixels, of which each is treated by itself.
 *
 * Where a selection leaves at most one pixel of a window, the pixels are listed. Images have their
 * channels innermost: a row of the kernel is then one run of numbers, and a kernel some vectors at
 * fixed distances.
 */

#ifdef NARROW
#define few_forward narrow_forward
#define few_images narrow_images
#define few_weights narrow_weights
#endif

#include "vectors.h"
#include "few.h"
#include "lanes.h"

/* Copies an image (channels, rows, columns) into the middle of one with its channels innermost. */
static void innermost(const Shape *s, const REAL *from, REAL *to, int64_t pitch) {
    to += (s->padding_y * pitch + s->padding_x) * s->in;
    if (s->in == 1) {
        for (int64_t r = 0; r < s->height; r++, from += s->width)
            memcpy(to + r * pitch, from, sizeof(REAL) * (size_t)s->width);
        return;
    }
    for (int64_t c = 0; c < s->in; c++)
        for (int64_t r = 0; r < s->height; r++)
            for (int64_t k = 0; k < s->width; k++) to[(r * pitch + k) * s->in + c] = *from++;
}

static void outermost(const Shape *s, const REAL *from, REAL *to, int64_t pitch) {
    from += (s->padding_y * pitch + s->padding_x) * s->in;
    if (s->in == 1) {
        for (int64_t r = 0; r < s->height; r++, to += s->width)
            memcpy(to, from + r * pitch, sizeof(REAL) * (size_t)s->width);
        return;
    }
    for (int64_t c = 0; c < s->in; c++)
        for (int64_t r = 0; r < s->height; r++)
            for (int64_t k = 0; k < s->width; k++) *to++ = from[(r * pitch + k) * s->in + c];
}

/* Kernels (out, in, rows, columns) as vectors, zero where a row ends within one; and back. */
static void to_vectors(const Shape *s, const REAL *w, REAL *vectors, int64_t count) {
    const int64_t row = count / s->rows * LANES;
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++)
            for (int64_t r = 0; r < s->rows; r++)
                for (int64_t k = 0; k < s->columns; k++)
                    vectors[(o * s->rows + r) * row + k * s->in + c] = *w++;
}

static void from_vectors(const Shape *s, const REAL *vectors, REAL *w, int64_t count) {
    const int64_t row = count / s->rows * LANES;
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++)
            for (int64_t r = 0; r < s->rows; r++)
                for (int64_t k = 0; k < s->columns; k++)
                    *w++ = vectors[(o * s->rows + r) * row + k * s->in + c];
}

/* A pixel that is chosen: its number in the pooled map, and that of its window in the padded image,
 * in the upper and the lower half of one number. */
typedef int64_t Pixel;
INLINE int64_t pooled(Pixel pixel) { return pixel >> 32; }
INLINE int64_t window(Pixel pixel) { return (int32_t)pixel; }

typedef struct {
    int64_t pitch, plane; /* of an image with its padding */
    int64_t map, taps;    /* of a result and of a network's weights */
    int64_t count;        /* vectors of a kernel */
    int64_t size;         /* numbers of all kernels as vectors */
    int64_t *distance;    /* of each vector from the window's first number */
    REAL *image, *kernels;
    Pixel *pixels;
    Pixel *first;            /* of each pooling window */
    Pixel away[NOTHING + 1]; /* the pixel that is chosen, from there */
} Few;

static Few few(const Shape *s, Rooms *own) {
    const int64_t pitch = s->width + 2 * s->padding_x;
    const int64_t row = (s->columns * s->in + LANES - 1) / LANES, count = s->rows * row;
    Few made = {
        .pitch = pitch,
        .plane = (s->height + 2 * s->padding_y) * pitch * s->in,
        .map = s->pooled_height * s->pooled_width,
        .taps = s->out * s->in * s->rows * s->columns,
        .count = count,
        .size = s->out * count * LANES,
    };
    made.image = room(own, made.plane + count * LANES);
    made.kernels = room(own, made.size);
    made.pixels = room(own, (int64_t)(sizeof(Pixel) / sizeof(int32_t)) * (made.map + 1));
    made.distance = room(own, (int64_t)(sizeof(int64_t) / sizeof(int32_t)) * count);
    made.first = room(own, (int64_t)(sizeof(Pixel) / sizeof(int32_t)) * made.map);
    for (int64_t i = 0; !own->failed && i < count; i++)
        made.distance[i] = i / row * pitch * s->in + i % row * LANES;
    for (int64_t q = 0; !own->failed && q < made.map; q++)
        made.first[q] = (q << 32) + (q / s->pooled_width * pitch + q % s->pooled_width) *
                                        s->stride * s->in;
    for (int64_t u = 0; u < s->pool; u++)
        for (int64_t v = 0; v < s->pool; v++)
            made.away[u * s->pool + v] = ((u - s->margin) * pitch + v - s->margin) * s->in;
    return made;
}

/* Lists the pixels of one map that are chosen. */
INLINE int64_t list(const Few *f, const uint8_t *index) {
    int64_t count = 0;
    for (int64_t q = 0; q < f->map; q++) {
        const uint8_t chosen = index[q];
        f->pixels[count] = f->first[q] + f->away[chosen];
        count += chosen != NOTHING;
    }
    return count;
}

#define SOME 10 /* vectors of a kernel at once */

INLINE void dots(const int vectors, const int64_t *distance, const REAL *x, const REAL *w,
                 const Pixel *pixels, int64_t count, REAL *y) {
    vec kernel[SOME];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) kernel[v] = load(w + v * LANES);
    for (int64_t p = 0; p < count; p++) {
        const REAL *from = x + window(pixels[p]);
        vec even = {0}, odd = {0};
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) {
            const vec product = kernel[v] * load(from + distance[v]);
            if (v % 2) odd += product; else even += product;
        }
        even += odd;
        y[pooled(pixels[p])] += total(even);
    }
}

/* Where a pixel does not keep all registers busy, the next one has sums of its own. The sum of the
 * gradients themselves, which is returned, is made in a vector too: one by one they would take
 * longer. */
INLINE REAL gather(const int vectors, const int64_t *distance, const REAL *x, REAL *w,
                   const Pixel *pixels, int64_t count, const REAL *g) {
    const int more = vectors <= SOME / 2 ? vectors : 0;
    vec kernel[SOME], second[SOME], bias = {0}, other_bias = {0};
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) kernel[v] = load(w + v * LANES);
#pragma GCC unroll 16
    for (int v = 0; v < more; v++) second[v] = (vec){0};
    int64_t p = 0;
    for (; more && p + 1 < count; p += 2) {
        const REAL *from = x + window(pixels[p]), *next = x + window(pixels[p + 1]);
        const REAL value = g[pooled(pixels[p])], other = g[pooled(pixels[p + 1])];
        bias += value;
        other_bias += other;
#pragma GCC unroll 16
        for (int v = 0; v < more; v++) {
            kernel[v] += value * load(from + distance[v]);
            second[v] += other * load(next + distance[v]);
        }
    }
    for (; p < count; p++) {
        const REAL *from = x + window(pixels[p]);
        const REAL value = g[pooled(pixels[p])];
        bias += value;
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) kernel[v] += value * load(from + distance[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < more; v++) kernel[v] += second[v];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) store(w + v * LANES, kernel[v]);
    bias += other_bias;
    return bias[0];
}

#define PARTS(function, x, w, result)                                                        \
    for (int64_t v = 0; v < f.count; v += SOME) {                                            \
        const int64_t *distance = f.distance + v;                                            \
        switch (f.count - v) {                                                               \
            case 1: function(1, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 2: function(2, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 3: function(3, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 4: function(4, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 5: function(5, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 6: function(6, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 7: function(7, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 8: function(8, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            case 9: function(9, distance, x, (w) + v * LANES, f.pixels, count, result); break; \
            default: function(SOME, distance, x, (w) + v * LANES, f.pixels, count, result);    \
        }                                                                                    \
    }

int few_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                       int64_t of_network, int64_t of_image, const REAL *w, const REAL *b,
                       REAL *y, const uint8_t *index) {
    IN_LANES(lanes_forward(s, networks, images, x, of_network, of_image, w, b, y, index))
    Rooms *own = rooms();
    if (!own) return 1;
    const Few f = few(s, own);
    for (int64_t j = 0; !own->failed && j < networks; j++) {
        to_vectors(s, w + j * f.taps, f.kernels, f.count);
        for (int64_t n = 0; n < images; n++) {
            innermost(s, x + j * of_network + n * of_image, f.image, f.pitch);
            for (int64_t o = 0; o < s->out; o++, y += f.map, index += f.map) {
                const int64_t count = list(&f, index);
                memset(y, 0, sizeof(REAL) * (size_t)f.map);
                for (int64_t p = 0; p < count; p++) y[pooled(f.pixels[p])] = b[j * s->out + o];
                PARTS(dots, f.image, f.kernels + o * f.count * LANES, y)
            }
        }
    }
    return own->failed;
}

/* The gradient of images takes all maps' pixels of one pooling window at once: they touch the same
 * part of the image, which stays in registers meanwhile. Kernels have zeros around them, so that
 * wherever in the window a pixel is, the part that it touches is the same. For each column of the
 * window there is a copy of them: so all their vectors begin where lines of the cache do. */
typedef struct {
    const REAL *kernel; /* the row of it, or of its zeros, that meets the part's first */
    REAL value;
} Touch;

typedef struct {
    int64_t pitch, map;
    int64_t before;         /* numbers of room in front of the image */
    int64_t size;           /* numbers of the image with all its room */
    int64_t of_row, of_map; /* numbers of a kernel's row and of a kernel, with their zeros */
    int64_t of_copy;        /* numbers of all kernels */
    int64_t count;          /* vectors of a part of the image */
    int64_t *distance;      /* of each from the part's first number, and in a kernel, in turn */
    REAL *image, *kernels;
    Touch *touches;
    int64_t first[NOTHING + 1]; /* number of the kernel's row that meets the part's first */
} Spread;

static Spread spread(const Shape *s, Rooms *own) {
    const int64_t pitch = s->width + 2 * s->padding_x, side = s->pool - 1;
    const int64_t row = up((s->columns + side) * s->in), across = row / LANES;
    Spread made = {
        .pitch = pitch,
        .map = s->pooled_height * s->pooled_width,
        .before = s->margin * (pitch + 1) * s->in,
        .of_row = row,
        .count = (s->rows + side) * across,
    };
    made.of_map = (s->rows + 2 * side) * made.of_row;
    made.of_copy = s->out * made.of_map;
    made.size = (s->height + 2 * s->padding_y) * pitch * s->in + 2 * made.before + row;
    made.image = room(own, made.size);
    made.kernels = room(own, s->pool * made.of_copy);
    made.touches = room(own, (int64_t)(sizeof(Touch) / sizeof(REAL)) * (s->out + 1));
    made.distance = room(own, (int64_t)(2 * sizeof(int64_t) / sizeof(REAL)) * made.count);
    for (int64_t i = 0; !own->failed && i < made.count; i++) {
        made.distance[2 * i] = i / across * pitch * s->in + i % across * LANES;
        made.distance[2 * i + 1] = i / across * made.of_row + i % across * LANES;
    }
    for (int64_t u = 0; u <= side; u++)
        for (int64_t v = 0; v <= side; v++)
            made.first[u * s->pool + v] = v * made.of_copy + (side - u) * made.of_row;
    return made;
}

/* Kernels (out, in, rows, columns) of one network, their channels innermost, among zeros. */
static void among_zeros(const Shape *s, const Spread *f, const REAL *w) {
    REAL *first = f->kernels + (s->pool - 1) * f->of_row;
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++)
            for (int64_t r = 0; r < s->rows; r++)
                for (int64_t k = 0; k < s->columns; k++, w++)
                    for (int64_t v = 0; v < s->pool; v++)
                        first[v * f->of_copy + o * f->of_map + r * f->of_row + (v + k) * s->in +
                              c] = *w;
}

/* Lists the maps that have chosen a pixel of one pooling window. */
INLINE int64_t touches(const Shape *s, const Spread *f, const REAL *g, const uint8_t *index) {
    int64_t count = 0;
    const REAL *kernel = f->kernels;
    for (int64_t o = 0; o < s->out; o++, g += f->map, index += f->map, kernel += f->of_map) {
        f->touches[count] = (Touch){kernel + f->first[*index], *g};
        count += *index != NOTHING;
    }
    return count;
}

INLINE void add(const int vectors, const int64_t *distance, const Touch *touches, int64_t count,
                REAL *x) {
    vec sum[SOME];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) sum[v] = load(x + distance[2 * v]);
    for (int64_t i = 0; i < count; i++) {
        const REAL *kernel = touches[i].kernel;
        const REAL value = touches[i].value;
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) sum[v] += value * load(kernel + distance[2 * v + 1]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) store(x + distance[2 * v], sum[v]);
}

#define ADD f->distance + 2 * v, f->touches, count, x
INLINE void add_all(const Spread *f, int64_t count, REAL *x) {
    for (int64_t v = 0; v < f->count; v += SOME) switch (f->count - v) {
            case 1: add(1, ADD); break;
            case 2: add(2, ADD); break;
            case 3: add(3, ADD); break;
            case 4: add(4, ADD); break;
            case 5: add(5, ADD); break;
            case 6: add(6, ADD); break;
            case 7: add(7, ADD); break;
            case 8: add(8, ADD); break;
            case 9: add(9, ADD); break;
            default: add(SOME, ADD);
        }
}

int few_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
                      const uint8_t *index, const REAL *w, REAL *x) {
    IN_STRIPS(strips_images(s, networks, images, g, index, w, x))
    Rooms *own = rooms();
    if (!own) return 1;
    const Spread f = spread(s, own);
    const int64_t size = s->out * f.map, corner = s->margin * (f.pitch + 1);
    for (int64_t j = 0; !own->failed && j < networks; j++, w += s->out * s->in * s->rows * s->columns) {
        among_zeros(s, &f, w);
        for (int64_t n = 0; n < images; n++, g += size, index += size) {
            memset(f.image, 0, sizeof(REAL) * (size_t)f.size);
            for (int64_t i = 0, q = 0; i < s->pooled_height; i++)
                for (int64_t k = 0; k < s->pooled_width; k++, q++) {
                    const int64_t pixel = (i * f.pitch + k) * s->stride - corner;
                    const int64_t count = touches(s, &f, g + q, index + q);
                    add_all(&f, count, f.image + f.before + pixel * s->in);
                }
            outermost(s, f.image + f.before, x, f.pitch);
            x += s->in * s->height * s->width;
        }
    }
    return own->failed;
}

int few_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                       int64_t of_network, int64_t of_image, const REAL *g, const uint8_t *index,
                       REAL *w, REAL *b) {
    IN_LANES(lanes_weights(s, networks, images, x, of_network, of_image, g, index, w, b))
    Rooms *own = rooms();
    if (!own) return 1;
    const Few f = few(s, own);
    memset(b, 0, sizeof(REAL) * (size_t)(networks * s->out));
    for (int64_t j = 0; !own->failed && j < networks; j++) {
        memset(f.kernels, 0, sizeof(REAL) * (size_t)f.size);
        for (int64_t n = 0; n < images; n++) {
            innermost(s, x + j * of_network + n * of_image, f.image, f.pitch);
            for (int64_t o = 0; o < s->out; o++, g += f.map, index += f.map) {
                const int64_t count = list(&f, index);
                REAL bias = 0; /* the same for each part of a kernel */
                PARTS(bias = gather, f.image, f.kernels + o * f.count * LANES, g)
                b[j * s->out + o] += bias;
            }
        }
        from_vectors(s, f.kernels, w + j * f.taps, f.count);
    }
    return own->failed;
}
