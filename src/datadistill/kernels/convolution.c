/* Convolutions of small images with max-pooling, for J networks with weights of their own.
 *
 * A convolution may be followed by a selection S: of each pooling window its largest pixel, or
 * none where ReLU lets nothing through. The three functions at the end are the bilinear maps
 *
 *     forward(x, w, b) = S (w * x + b)      images(g, w) = w' * S' g      weights(x, g) = x ** S' g
 *
 * (' is the transpose, * and ** are correlations), of which each is the derivative of the others:
 * they suffice for derivatives of any order.
 *
 * Compile with -DREAL=float or -DREAL=double. All images and weights are plain arrays:
 * (networks, images, channels, rows, columns) and (networks, out, in, rows, columns). The
 * functions return 0, or 1 if there is not enough memory.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define BYTES 64
#define OUTPUTS 8
#define SUMS 24
#define GRADIENTS 4
#elif defined(__AVX__)
#define BYTES 32
#define OUTPUTS 4
#define SUMS 12
#define GRADIENTS 2
#else
#define BYTES 16
#define OUTPUTS 4
#define SUMS 12
#define GRADIENTS 2
#endif

#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define WIDEST 4  /* vectors of neighbouring pixels at once */
#define TAPS 5    /* columns of a kernel at once */
#define CHUNK 8   /* images of which a gradient is summed in registers */
#define NOTHING 255

typedef REAL vec __attribute__((vector_size(BYTES)));
typedef REAL loose __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
#define INLINE static inline __attribute__((always_inline))

typedef struct {
    int64_t in, height, width;       /* channels and size of an input image */
    int64_t out, out_height, out_width;
    int64_t rows, columns;           /* of the kernel */
    int64_t padding_y, padding_x;
    int64_t pool, stride, margin;    /* size, stride and padding of the pooling windows */
    int64_t pooled_height, pooled_width;
    int64_t relu;
} Shape;

#define WHOLE __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0))

INLINE vec load(const REAL *from) { return *(const loose *)from; }
INLINE void store(REAL *to, vec value) { *(loose *)to = value; }
typedef REAL quarter __attribute__((vector_size(16)));

/* The sum of a vector's numbers. */
INLINE REAL total(vec value) {
    union {
        vec whole;
        quarter parts[BYTES / 16];
    } split = {value};
    quarter sum = split.parts[0];
#pragma GCC unroll 4
    for (int i = 1; i < BYTES / 16; i++) sum += split.parts[i];
    REAL result = 0;
#pragma GCC unroll 4
    for (int64_t lane = 0; lane < (int64_t)(16 / sizeof(REAL)); lane++) result += sum[lane];
    return result;
}

INLINE int64_t up(int64_t size) { return (size + LANES - 1) / LANES * LANES; }

static REAL *room(int64_t size) {
    void *memory = NULL;
    size_t bytes = sizeof(REAL) * (size_t)up(size + 2 * WIDEST * LANES);
    if (posix_memalign(&memory, BYTES, bytes)) return NULL;
    memset(memory, 0, bytes);
    return memory;
}

/* One block of outputs: y[o][p] = bias[o] + Σ w[o][c][r][k] x[c][p + r·pitch + k]. */
INLINE void block(const int outputs, const int vectors, const REAL *x, int64_t in, int64_t plane,
                  int64_t pitch, int64_t rows, int64_t columns, const REAL *w, const REAL *bias,
                  REAL *y, int64_t length) {
    vec sum[OUTPUTS][WIDEST];
    const int64_t taps = in * rows * columns;
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sum[o][v] = (bias ? bias[o] : 0) - (vec){0};
    for (int64_t c = 0; c < in; c++)
        for (int64_t r = 0; r < rows; r++) {
            const REAL *row = x + c * plane + r * pitch;
            const REAL *tap = w + (c * rows + r) * columns;
            for (int64_t k = 0; k < columns; k++, row++, tap++) {
                vec pixels[WIDEST];
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) pixels[v] = load(row + v * LANES);
#pragma GCC unroll 8
                for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
                    for (int v = 0; v < vectors; v++) sum[o][v] += tap[o * taps] * pixels[v];
            }
        }
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) store(y + o * length + v * LANES, sum[o][v]);
}

#define ARGUMENTS x, in, plane, pitch, rows, columns, w, bias, y, length
INLINE void blocks(const int outputs, int vectors, const REAL *x, int64_t in, int64_t plane,
                   int64_t pitch, int64_t rows, int64_t columns, const REAL *w, const REAL *bias,
                   REAL *y, int64_t length) {
    switch (vectors) {
        case 1: block(outputs, 1, ARGUMENTS); break;
        case 2: block(outputs, 2, ARGUMENTS); break;
        case 3: block(outputs, 3, ARGUMENTS); break;
        default: block(outputs, 4, ARGUMENTS);
    }
}

/* All outputs of one image: x is (in, plane) with slack behind, y is (out, length). */
static void correlate(const REAL *x0, int64_t in, int64_t plane, int64_t pitch, int64_t rows,
                      int64_t columns, const REAL *w0, const REAL *bias0, int64_t out, REAL *y0,
                      int64_t length) {
    const int64_t vectors = length / LANES;
    for (int64_t o = 0; o < out; o += OUTPUTS) {
        /* As many sums at once as there are registers for. */
        const int64_t outputs = out - o < OUTPUTS ? out - o : OUTPUTS;
        const int64_t widest = SUMS / outputs < WIDEST ? SUMS / outputs : WIDEST;
        const int64_t parts = (vectors + widest - 1) / widest;
        const REAL *w = w0 + o * in * rows * columns, *bias = bias0 ? bias0 + o : NULL;
        for (int64_t part = 0; part < parts; part++) {
            const int64_t begin = vectors * part / parts, end = vectors * (part + 1) / parts;
            const REAL *x = x0 + begin * LANES;
            REAL *y = y0 + o * length + begin * LANES;
            const int count = (int)(end - begin);
            switch (outputs) {
                case 1: blocks(1, count, ARGUMENTS); break;
                case 2: blocks(2, count, ARGUMENTS); break;
                case 3: blocks(3, count, ARGUMENTS); break;
#if OUTPUTS > 4
                case 4: blocks(4, count, ARGUMENTS); break;
                case 5: blocks(5, count, ARGUMENTS); break;
                case 6: blocks(6, count, ARGUMENTS); break;
                case 7: blocks(7, count, ARGUMENTS); break;
#endif
                default: blocks(OUTPUTS, count, ARGUMENTS);
            }
        }
    }
}

/* Copies planes into the middle of larger ones, which are zero already. */
static void pad(const REAL *from, int64_t planes, int64_t height, int64_t width, REAL *to,
                int64_t plane, int64_t pitch, int64_t first) {
    for (int64_t c = 0; c < planes; c++)
        for (int64_t r = 0; r < height; r++)
            memcpy(to + c * plane + first + r * pitch, from + (c * height + r) * width,
                   sizeof(REAL) * (size_t)width);
}

/* S: y[q] = the pixel of window q that is chosen; here chosen is the first largest. */
static void choose_any(const Shape *s, const REAL *maps, int64_t plane, int64_t pitch, REAL *y,
                       uint8_t *index, WHOLE *restrict found) {
    const int64_t ph = s->pooled_height, pw = s->pooled_width;
    const int64_t step = s->stride, margin = s->margin;
    for (int64_t c = 0; c < s->out; c++, maps += plane)
        for (int64_t i = 0; i < ph; i++, y += pw, index += pw) {
            REAL *restrict most = y;
            for (int64_t j = 0; j < pw; j++) found[j] = NOTHING;
            for (int64_t u = 0; u < s->pool; u++) {
                const int64_t r = i * step - margin + u;
                if (r < 0 || r >= s->out_height) continue;
                for (int64_t v = 0; v < s->pool; v++) {
                    /* The windows that have a pixel here. */
                    const int64_t left = margin - v, right = s->out_width - 1 + margin - v;
                    const int64_t first = left > 0 ? (left + step - 1) / step : 0;
                    const int64_t last = right / step < pw - 1 ? right / step : pw - 1;
                    const REAL *row = maps + r * pitch - margin + v;
                    const WHOLE number = (WHOLE)(u * s->pool + v);
                    for (int64_t j = first; j <= last; j++) {
                        const REAL value = row[j * step];
                        const WHOLE more =
                            -(WHOLE)(found[j] == NOTHING) | -(WHOLE)(value > most[j]);
                        most[j] = more ? value : most[j];
                        found[j] = (more & number) | (~more & found[j]);
                    }
                }
            }
            for (int64_t j = 0; j < pw; j++) {
                const int dead = s->relu & (most[j] <= 0);
                index[j] = (uint8_t)(dead ? NOTHING : found[j]);
                most[j] = dead ? 0 : most[j];
            }
        }
}

/* The same for windows of 2x2: whole planes at once, first by rows and then by columns. */
static void choose_quarter(const Shape *s, const REAL *maps, int64_t plane, int64_t pitch, REAL *y,
                           uint8_t *index, REAL *restrict larger, WHOLE *restrict place,
                           REAL *restrict most_of, WHOLE *restrict found_at) {
    const int64_t ph = s->pooled_height, pw = s->pooled_width, half = pitch / 2;
    const WHOLE relu = -(WHOLE)s->relu;
    for (int64_t c = 0; c < s->out; c++, maps += plane) {
        for (int64_t i = 0; i < ph; i++) {
            const REAL *top = maps + 2 * i * pitch, *bottom = top + pitch;
            REAL *to = larger + i * pitch;
            WHOLE *at = place + i * pitch;
            for (int64_t k = 0; k < pitch; k++) {
                const WHOLE below = bottom[k] > top[k];
                to[k] = below ? bottom[k] : top[k];
                at[k] = 2 * below + (WHOLE)(k & 1);
            }
        }
        for (int64_t q = 0; q < ph * half; q++) {
            const REAL one = larger[2 * q], other = larger[2 * q + 1];
            const WHOLE here = place[2 * q], there = place[2 * q + 1];
            const WHOLE more = -(WHOLE)(other > one), same = -(WHOLE)(other == one);
            const WHOLE right = more | (same & -(WHOLE)(there < here));
            const REAL most = other > one ? other : one;
            const WHOLE dead = relu & -(WHOLE)(most <= 0);
            most_of[q] = most;
            found_at[q] = dead | (right & there) | (~right & here);
        }
        for (int64_t i = 0; i < ph; i++, y += pw, index += pw)
            for (int64_t j = 0; j < pw; j++) {
                const WHOLE found = found_at[i * half + j];
                y[j] = found < 0 ? 0 : most_of[i * half + j];
                index[j] = (uint8_t)found; /* -1 is NOTHING */
            }
    }
}

INLINE void distances(const Shape *s, int64_t pitch, int64_t *at) {
    for (int64_t u = 0; u < s->pool; u++)
        for (int64_t v = 0; v < s->pool; v++)
            at[u * s->pool + v] = (u - s->margin) * pitch + v - s->margin;
    at[NOTHING] = 0; /* any pixel of the window */
}

/* S' g: puts g back where it was chosen, into maps that are zero. */
static void put_back(const Shape *s, const REAL *g, const uint8_t *index, REAL *maps,
                     int64_t plane, int64_t pitch, int64_t first) {
    if (!index) {
        pad(g, s->out, s->out_height, s->out_width, maps, plane, pitch, first);
        return;
    }
    const int64_t ph = s->pooled_height, pw = s->pooled_width;
    int64_t at[NOTHING + 1];
    distances(s, pitch, at);
    for (int64_t c = 0; c < s->out; c++)
        for (int64_t i = 0; i < ph; i++, g += pw, index += pw) {
            REAL *row = maps + c * plane + first + i * s->stride * pitch;
            for (int64_t j = 0; j < pw; j++)
                row[j * s->stride + at[index[j]]] += index[j] == NOTHING ? 0 : g[j];
        }
}

/* --- Few pixels: where a selection leaves at most one pixel of a window, the pixels are listed
 * and each is treated by itself, on images with their channels innermost. A row of the kernel is
 * then one run of numbers, and a kernel some vectors at fixed distances. */

typedef struct {
    int64_t count;      /* vectors of a kernel */
    int64_t *distance;  /* of each from the window's first number */
} Window;

static Window window(const Shape *s, int64_t pitch) {
    const int64_t row = (s->columns * s->in + LANES - 1) / LANES;
    Window made = {s->rows * row, malloc(sizeof(int64_t) * (size_t)(s->rows * row))};
    for (int64_t i = 0; made.distance && i < made.count; i++)
        made.distance[i] = i / row * pitch * s->in + i % row * LANES;
    return made;
}

/* Copies an image (channels, rows, columns) into the middle of one with its channels innermost. */
static void innermost(const Shape *s, const REAL *from, REAL *to, int64_t pitch) {
    to += (s->padding_y * pitch + s->padding_x) * s->in;
    for (int64_t c = 0; c < s->in; c++)
        for (int64_t r = 0; r < s->height; r++)
            for (int64_t k = 0; k < s->width; k++) to[(r * pitch + k) * s->in + c] = *from++;
}

static void outermost(const Shape *s, const REAL *from, REAL *to, int64_t pitch) {
    from += (s->padding_y * pitch + s->padding_x) * s->in;
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

typedef struct {
    int64_t first;  /* number of its window in the padded image */
    int64_t pooled; /* pixel of the pooled map */
} Pixel;

/* Lists the pixels of one map that are chosen. */
static int64_t list(const Shape *s, const uint8_t *index, int64_t pitch, Pixel *pixels) {
    int64_t at[NOTHING + 1], count = 0, q = 0;
    distances(s, pitch, at);
    for (int64_t i = 0; i < s->pooled_height; i++)
        for (int64_t j = 0; j < s->pooled_width; j++, q++) {
            const int64_t pixel = i * s->stride * pitch + j * s->stride + at[index[q]];
            pixels[count] = (Pixel){pixel * s->in, q};
            count += index[q] != NOTHING;
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
        const REAL *from = x + pixels[p].first;
        vec even = {0}, odd = {0};
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) {
            const vec product = kernel[v] * load(from + distance[v]);
            if (v % 2) odd += product; else even += product;
        }
        even += odd;
        y[pixels[p].pooled] += total(even);
    }
}

INLINE void spread(const int vectors, const int64_t *distance, REAL *x, const REAL *w,
                   const Pixel *pixels, int64_t count, const REAL *g) {
    vec kernel[SOME];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) kernel[v] = load(w + v * LANES);
    for (int64_t p = 0; p < count; p++) {
        REAL *to = x + pixels[p].first;
        const REAL value = g[pixels[p].pooled];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++)
            store(to + distance[v], load(to + distance[v]) + value * kernel[v]);
    }
}

INLINE void gather(const int vectors, const int64_t *distance, const REAL *x, REAL *w,
                   const Pixel *pixels, int64_t count, const REAL *g) {
    vec kernel[SOME];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) kernel[v] = load(w + v * LANES);
    for (int64_t p = 0; p < count; p++) {
        const REAL *from = x + pixels[p].first;
        const REAL value = g[pixels[p].pooled];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) kernel[v] += value * load(from + distance[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) store(w + v * LANES, kernel[v]);
}

#define PARTS(function, x, w, result)                                                        \
    for (int64_t v = 0; v < all.count; v += SOME) {                                          \
        const int64_t *distance = all.distance + v;                                          \
        switch (all.count - v) {                                                             \
            case 1: function(1, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 2: function(2, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 3: function(3, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 4: function(4, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 5: function(5, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 6: function(6, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 7: function(7, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 8: function(8, distance, x, (w) + v * LANES, pixels, count, result); break; \
            case 9: function(9, distance, x, (w) + v * LANES, pixels, count, result); break; \
            default: function(SOME, distance, x, (w) + v * LANES, pixels, count, result);    \
        }                                                                                    \
    }

static int few_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                int64_t of_network, int64_t of_image, const REAL *w, const REAL *b, REAL *y,
                const uint8_t *index) {
    const int64_t pitch = s->width + 2 * s->padding_x;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch * s->in;
    const int64_t map = s->pooled_height * s->pooled_width;
    const int64_t taps = s->out * s->in * s->rows * s->columns;
    const Window all = window(s, pitch);
    REAL *image = room(plane + all.count * LANES), *kernels = room(s->out * all.count * LANES);
    Pixel *pixels = malloc(sizeof(Pixel) * (size_t)(map + 1));
    const int failed = !image || !kernels || !pixels || !all.distance;
    for (int64_t j = 0; !failed && j < networks; j++) {
        to_vectors(s, w + j * taps, kernels, all.count);
        for (int64_t n = 0; n < images; n++) {
            innermost(s, x + j * of_network + n * of_image, image, pitch);
            for (int64_t o = 0; o < s->out; o++, y += map, index += map) {
                const int64_t count = list(s, index, pitch, pixels);
                memset(y, 0, sizeof(REAL) * (size_t)map);
                for (int64_t p = 0; p < count; p++) y[pixels[p].pooled] = b[j * s->out + o];
                PARTS(dots, image, kernels + o * all.count * LANES, y)
            }
        }
    }
    free(image);
    free(kernels);
    free(pixels);
    free(all.distance);
    return failed;
}

static int few_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
               const uint8_t *index, const REAL *w, REAL *x) {
    const int64_t pitch = s->width + 2 * s->padding_x;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch * s->in;
    const int64_t map = s->pooled_height * s->pooled_width;
    const int64_t taps = s->out * s->in * s->rows * s->columns;
    const Window all = window(s, pitch);
    REAL *image = room(plane + all.count * LANES), *kernels = room(s->out * all.count * LANES);
    Pixel *pixels = malloc(sizeof(Pixel) * (size_t)(map + 1));
    const int failed = !image || !kernels || !pixels || !all.distance;
    for (int64_t j = 0; !failed && j < networks; j++) {
        to_vectors(s, w + j * taps, kernels, all.count);
        for (int64_t n = 0; n < images; n++, x += s->in * s->height * s->width) {
            memset(image, 0, sizeof(REAL) * (size_t)plane);
            for (int64_t o = 0; o < s->out; o++, g += map, index += map) {
                const int64_t count = list(s, index, pitch, pixels);
                PARTS(spread, image, kernels + o * all.count * LANES, g)
            }
            outermost(s, image, x, pitch);
        }
    }
    free(image);
    free(kernels);
    free(pixels);
    free(all.distance);
    return failed;
}

static int few_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                int64_t of_network, int64_t of_image, const REAL *g, const uint8_t *index, REAL *w,
                REAL *b) {
    const int64_t pitch = s->width + 2 * s->padding_x;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch * s->in;
    const int64_t map = s->pooled_height * s->pooled_width;
    const int64_t taps = s->out * s->in * s->rows * s->columns;
    const Window all = window(s, pitch);
    const int64_t size = s->out * all.count * LANES;
    REAL *image = room(plane + all.count * LANES), *kernels = room(size);
    Pixel *pixels = malloc(sizeof(Pixel) * (size_t)(map + 1));
    const int failed = !image || !kernels || !pixels || !all.distance;
    memset(b, 0, sizeof(REAL) * (size_t)(networks * s->out));
    for (int64_t j = 0; !failed && j < networks; j++) {
        memset(kernels, 0, sizeof(REAL) * (size_t)size);
        for (int64_t n = 0; n < images; n++) {
            innermost(s, x + j * of_network + n * of_image, image, pitch);
            for (int64_t o = 0; o < s->out; o++, g += map, index += map) {
                const int64_t count = list(s, index, pitch, pixels);
                REAL sum = 0;
                for (int64_t p = 0; p < count; p++) sum += g[pixels[p].pooled];
                b[j * s->out + o] += sum;
                PARTS(gather, image, kernels + o * all.count * LANES, g)
            }
        }
        from_vectors(s, kernels, w + j * taps, all.count);
    }
    free(image);
    free(kernels);
    free(pixels);
    free(all.distance);
    return failed;
}

/* --- Many pixels: whole maps. Rows lie one after the other with a pitch that includes the
 * padding, so that an output pixel is a sum over input pixels at fixed distances, for as many
 * neighbours at once as the processor takes. */

static int many_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                        int64_t of_network, int64_t of_image, const REAL *w, const REAL *b,
                        REAL *y, uint8_t *index) {
    const int64_t pitch = (s->width + 2 * s->padding_x + 1) / 2 * 2;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch;
    const int64_t length = up(s->out_height * pitch);
    const int64_t taps = s->in * s->rows * s->columns;
    const int64_t size = index ? s->out * s->pooled_height * s->pooled_width
                               : s->out * s->out_height * s->out_width;
    REAL *padded = room(s->in * plane + length), *maps = room((s->out + OUTPUTS) * length);
    REAL *larger = room(2 * length);
    WHOLE *place = (WHOLE *)room(2 * length);
    const int quarter = s->pool == 2 && s->stride == 2 && !s->margin;
    const int failed = !padded || !maps || !larger || !place;
    if (!failed)
        for (int64_t n = 0; n < images; n++)
            for (int64_t j = 0; j < networks; j++) {
                if (!j || of_network)
                    pad(x + j * of_network + n * of_image, s->in, s->height, s->width, padded,
                        plane, pitch, s->padding_y * pitch + s->padding_x);
                correlate(padded, s->in, plane, pitch, s->rows, s->columns, w + j * s->out * taps,
                          b + j * s->out, s->out, maps, length);
                REAL *to = y + (j * images + n) * size;
                uint8_t *choice = index ? index + (j * images + n) * size : NULL;
                if (choice && quarter)
                    choose_quarter(s, maps, length, pitch, to, choice, larger, place,
                                   larger + length, place + length);
                else if (choice)
                    choose_any(s, maps, length, pitch, to, choice, place);
                else
                    for (int64_t o = 0; o < s->out; o++)
                        for (int64_t r = 0; r < s->out_height; r++, to += s->out_width)
                            memcpy(to, maps + o * length + r * pitch,
                                   sizeof(REAL) * (size_t)s->out_width);
            }
    free(padded);
    free(maps);
    free(larger);
    free(place);
    return failed;
}

static int many_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
                       const uint8_t *index, const REAL *w, REAL *x) {
    /* A correlation of the gradient, with margins, and the kernels the other way round. */
    const int64_t above = s->rows - 1 - s->padding_y, left = s->columns - 1 - s->padding_x;
    const int64_t pitch = s->out_width + 2 * left;
    const int64_t plane = (s->out_height + 2 * above) * pitch;
    const int64_t length = up(s->height * pitch), taps = s->rows * s->columns;
    const int64_t size = index ? s->out * s->pooled_height * s->pooled_width
                               : s->out * s->out_height * s->out_width;
    REAL *maps = room(s->out * plane + length), *result = room((s->in + OUTPUTS) * length);
    REAL *turned = room(s->in * s->out * taps);
    const int failed = !maps || !result || !turned;
    if (!failed)
        for (int64_t j = 0; j < networks; j++) {
            for (int64_t o = 0; o < s->out; o++)
                for (int64_t c = 0; c < s->in; c++)
                    for (int64_t k = 0; k < taps; k++)
                        turned[(c * s->out + o) * taps + taps - 1 - k] =
                            w[((j * s->out + o) * s->in + c) * taps + k];
            for (int64_t n = 0; n < images; n++) {
                const int64_t at = (j * images + n) * size;
                if (index) memset(maps, 0, sizeof(REAL) * (size_t)(s->out * plane));
                put_back(s, g + at, index ? index + at : NULL, maps, plane, pitch,
                         above * pitch + left);
                correlate(maps, s->out, plane, pitch, s->rows, s->columns, turned, NULL, s->in,
                          result, length);
                REAL *to = x + (j * images + n) * s->in * s->height * s->width;
                for (int64_t c = 0; c < s->in; c++)
                    for (int64_t r = 0; r < s->height; r++, to += s->width)
                        memcpy(to, result + c * length + r * pitch,
                               sizeof(REAL) * (size_t)s->width);
            }
        }
    free(maps);
    free(result);
    free(turned);
    return failed;
}

/* Σ over a chunk of images of g[o][p] x[p + k], for some outputs and columns k. */
INLINE void products(const int outputs, const int columns, int64_t count, const REAL *x,
                     int64_t x_image, const REAL *g, int64_t g_image, int64_t length, REAL *w,
                     int64_t of_output) {
    vec sum[GRADIENTS][TAPS];
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++) sum[o][k] = (vec){0};
    for (int64_t n = 0; n < count; n++, x += x_image, g += g_image)
        for (int64_t p = 0; p < length; p += LANES) {
            vec gradient[GRADIENTS];
#pragma GCC unroll 8
            for (int o = 0; o < outputs; o++) gradient[o] = load(g + o * length + p);
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++) {
                const vec pixels = load(x + p + k);
#pragma GCC unroll 8
                for (int o = 0; o < outputs; o++) sum[o][k] += gradient[o] * pixels;
            }
        }
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++) {
            w[o * of_output + k] += total(sum[o][k]);
        }
}

#define PRODUCTS count, x, x_image, g, g_image, length, w, of_output
INLINE void products_of(const int outputs, int columns, int64_t count, const REAL *x,
                        int64_t x_image, const REAL *g, int64_t g_image, int64_t length, REAL *w,
                        int64_t of_output) {
    switch (columns) {
        case 1: products(outputs, 1, PRODUCTS); break;
        case 2: products(outputs, 2, PRODUCTS); break;
        case 3: products(outputs, 3, PRODUCTS); break;
        case 4: products(outputs, 4, PRODUCTS); break;
        default: products(outputs, 5, PRODUCTS);
    }
}

static int many_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x0,
                        int64_t of_network, int64_t of_image, const REAL *g0, REAL *w0, REAL *b) {
    const int64_t pitch = (s->width + 2 * s->padding_x + 1) / 2 * 2;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch;
    const int64_t length = up(s->out_height * pitch);
    const int64_t x_image = s->in * plane, g_image = s->out * length;
    const int64_t map = s->out_height * s->out_width;
    const int64_t of_output = s->in * s->rows * s->columns;
    REAL *padded = room(CHUNK * x_image + length), *maps = room(CHUNK * g_image);
    const int failed = !padded || !maps;
    memset(w0, 0, sizeof(REAL) * (size_t)(networks * s->out * of_output));
    memset(b, 0, sizeof(REAL) * (size_t)(networks * s->out));
    for (int64_t first = 0; !failed && first < images; first += CHUNK)
        for (int64_t j = 0; j < networks; j++) {
            const int64_t count = images - first < CHUNK ? images - first : CHUNK;
            for (int64_t n = 0; n < count; n++) {
                if (!j || of_network)
                    pad(x0 + j * of_network + (first + n) * of_image, s->in, s->height, s->width,
                        padded + n * x_image, plane, pitch, s->padding_y * pitch + s->padding_x);
                const REAL *from = g0 + (j * images + first + n) * s->out * map;
                pad(from, s->out, s->out_height, s->out_width, maps + n * g_image, length, pitch,
                    0);
                for (int64_t o = 0; o < s->out; o++)
                    for (int64_t i = 0; i < map; i++) b[j * s->out + o] += *from++;
            }
            for (int64_t o = 0; o < s->out; o += GRADIENTS)
                for (int64_t c = 0; c < s->in; c++)
                    for (int64_t r = 0; r < s->rows; r++)
                        for (int64_t k = 0; k < s->columns; k += TAPS) {
                            const REAL *x = padded + c * plane + r * pitch + k;
                            const REAL *g = maps + o * length;
                            REAL *w = w0 + (((j * s->out + o) * s->in + c) * s->rows + r) *
                                               s->columns + k;
                            const int64_t left = s->columns - k;
                            const int columns = (int)(left < TAPS ? left : TAPS);
                            switch (s->out - o) {
                                case 1: products_of(1, columns, PRODUCTS); break;
#if GRADIENTS > 2
                                case 2: products_of(2, columns, PRODUCTS); break;
                                case 3: products_of(3, columns, PRODUCTS); break;
#endif
                                default: products_of(GRADIENTS, columns, PRODUCTS);
                            }
                        }
        }
    free(padded);
    free(maps);
    return failed;
}

/* --- The three maps. `index` holds the selection, one number for each pooled pixel; without it
 * there is no pooling. `choose` makes the selection; otherwise it is given. */

int forward(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *w, const REAL *b, REAL *y, uint8_t *index, int choose) {
    if (index && !choose)
        return few_forward(s, networks, images, x, of_network, of_image, w, b, y, index);
    return many_forward(s, networks, images, x, of_network, of_image, w, b, y, index);
}

int images(const Shape *s, int64_t networks, int64_t count, const REAL *g, const uint8_t *index,
           const REAL *w, REAL *x) {
    /* A row of the kernel that does not fill a vector is not worth the trouble. */
    if (index && s->columns * s->in >= LANES)
        return few_images(s, networks, count, g, index, w, x);
    return many_images(s, networks, count, g, index, w, x);
}

int weights(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *g, const uint8_t *index, REAL *w, REAL *b) {
    if (index)
        return few_weights(s, networks, images, x, of_network, of_image, g, index, w, b);
    return many_weights(s, networks, images, x, of_network, of_image, g, w, b);
}
