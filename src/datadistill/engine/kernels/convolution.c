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

#include "vectors.h"
#include "few.h"

#if defined(__AVX512F__)
#define OUTPUTS 8
#define SUMS 24
#define GRADIENTS 4
#else
#define OUTPUTS 4
#define SUMS 12
#define GRADIENTS 2
#endif

#define WIDEST 4  /* neighbouring pixels at once */
#define TAPS 5    /* columns of a kernel at once */
#define CHUNK 8   /* images of which a gradient is summed in registers */

/* --- Images side by side: pixel p of image n is number p·LANES + n, so that a processor's vector
 * holds one pixel of as many images as it takes. */

#ifdef __clang__
/* Exchanges rows and columns of a square. */
INLINE void transpose(vec *square) {
    for (int64_t i = 0; i < LANES; i++)
        for (int64_t l = 0; l < i; l++) {
            const REAL one = square[i][l];
            square[i][l] = square[l][i];
            square[l][i] = one;
        }
}
#else
/* The same for squares of squares, of which the inner ones stay as they are. */
INLINE void exchange(const int half, vec *square) {
    ints upper, lower;
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++) {
        upper[l] = (WHOLE)(l & half ? LANES + l - half : l);
        lower[l] = (WHOLE)(l & half ? LANES + l : l + half);
    }
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        if (!(l & half)) {
            const vec one = square[l], other = square[l + half];
            square[l] = __builtin_shuffle(one, other, upper);
            square[l + half] = __builtin_shuffle(one, other, lower);
        }
}

INLINE void transpose(vec *square) {
    if (LANES > 8) exchange(8, square);
    if (LANES > 4) exchange(4, square);
    if (LANES > 2) exchange(2, square);
    exchange(1, square);
}
#endif

/* Puts `count` images of `size` numbers side by side, with zeros for those that are not there. */
static void side_by_side(const REAL *from, int64_t of_image, int64_t count, int64_t size,
                         REAL *to) {
    int64_t p = 0;
    for (; p + LANES <= size; p += LANES) {
        vec square[BYTES / sizeof(REAL)];
#pragma GCC unroll 16
        for (int64_t n = 0; n < LANES; n++)
            square[n] = n < count ? load(from + n * of_image + p) : (vec){0};
        transpose(square);
#pragma GCC unroll 16
        for (int64_t l = 0; l < LANES; l++) store(to + (p + l) * LANES, square[l]);
    }
    for (; p < size; p++)
        for (int64_t n = 0; n < LANES; n++)
            to[p * LANES + n] = n < count ? from[n * of_image + p] : 0;
}

/* And back, one after the other. */
static void one_by_one(const REAL *from, int64_t count, int64_t size, REAL *to) {
    int64_t p = 0;
    for (; p + LANES <= size; p += LANES) {
        vec square[BYTES / sizeof(REAL)];
#pragma GCC unroll 16
        for (int64_t l = 0; l < LANES; l++) square[l] = load(from + (p + l) * LANES);
        transpose(square);
#pragma GCC unroll 16
        for (int64_t n = 0; n < LANES; n++)
            if (n < count) store(to + n * size + p, square[n]);
    }
    for (; p < size; p++)
        for (int64_t n = 0; n < count; n++) to[n * size + p] = from[p * LANES + n];
}

INLINE void transpose_at(REAL *at) {
    vec square[BYTES / sizeof(REAL)];
#pragma GCC unroll 16
    for (int64_t l = 0; l < LANES; l++) square[l] = load(at + l * LANES);
    transpose(square);
#pragma GCC unroll 16
    for (int64_t l = 0; l < LANES; l++) store(at + l * LANES, square[l]);
}

/* Selections likewise: one byte for each number. */
static void choices_side_by_side(const uint8_t *from, int64_t count, int64_t size, WHOLE *to) {
    int64_t p = 0;
    for (; p + LANES <= size; p += LANES) {
        WHOLE *part = to + p * LANES;
        for (int64_t n = 0; n < count; n++)
            for (int64_t l = 0; l < LANES; l++) part[n * LANES + l] = from[n * size + p + l];
        transpose_at((REAL *)part);
    }
    for (; p < size; p++)
        for (int64_t n = 0; n < count; n++) to[p * LANES + n] = from[n * size + p];
}

static void choices_one_by_one(WHOLE *from, int64_t count, int64_t size, uint8_t *to) {
    int64_t p = 0;
    for (; p + LANES <= size; p += LANES) {
        WHOLE *part = from + p * LANES;
        transpose_at((REAL *)part);
        for (int64_t n = 0; n < count; n++)
            for (int64_t l = 0; l < LANES; l++)
                to[n * size + p + l] = (uint8_t)part[n * LANES + l];
    }
    for (; p < size; p++)
        for (int64_t n = 0; n < count; n++) to[n * size + p] = (uint8_t)from[p * LANES + n];
}

/* Copies planes into the middle of larger ones, which are zero already. */
static void pad(const REAL *from, int64_t planes, int64_t height, int64_t width, int64_t lanes,
                REAL *to, int64_t plane, int64_t pitch, int64_t first) {
    for (int64_t c = 0; c < planes; c++)
        for (int64_t r = 0; r < height; r++)
            memcpy(to + (c * plane + first + r * pitch) * lanes,
                   from + (c * height + r) * width * lanes, sizeof(REAL) * (size_t)(width * lanes));
}

/* One block of outputs: y[o][p] = bias[o] + Σ w[o][c][r][k] x[c][p + r·pitch + k]. */
INLINE void block(const int outputs, const int pixels, const REAL *x, int64_t in, int64_t plane,
                  int64_t pitch, int64_t rows, int64_t columns, const REAL *w, const REAL *bias,
                  REAL *y, int64_t map) {
    vec sum[OUTPUTS][WIDEST];
    const int64_t taps = in * rows * columns;
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++) sum[o][p] = (bias ? bias[o] : 0) - (vec){0};
    for (int64_t c = 0; c < in; c++)
        for (int64_t r = 0; r < rows; r++) {
            const REAL *row = x + (c * plane + r * pitch) * LANES;
            const REAL *tap = w + (c * rows + r) * columns;
            for (int64_t k = 0; k < columns; k++, row += LANES, tap++) {
                vec pixel[WIDEST];
#pragma GCC unroll 8
                for (int p = 0; p < pixels; p++) pixel[p] = load(row + p * LANES);
#pragma GCC unroll 8
                for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
                    for (int p = 0; p < pixels; p++) sum[o][p] += tap[o * taps] * pixel[p];
            }
        }
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++) store(y + (o * map + p) * LANES, sum[o][p]);
}

#define ARGUMENTS x, in, plane, pitch, rows, columns, w, bias, y, map
INLINE void blocks(const int outputs, int pixels, const REAL *x, int64_t in, int64_t plane,
                   int64_t pitch, int64_t rows, int64_t columns, const REAL *w, const REAL *bias,
                   REAL *y, int64_t map) {
    switch (pixels) {
        case 1: block(outputs, 1, ARGUMENTS); break;
        case 2: block(outputs, 2, ARGUMENTS); break;
        case 3: block(outputs, 3, ARGUMENTS); break;
        default: block(outputs, 4, ARGUMENTS);
    }
}

/* One row of images (in, plane) correlated with kernels (out, in, rows, columns): y (out, map). */
static void correlate(const REAL *x0, int64_t in, int64_t plane, int64_t pitch, int64_t rows,
                      int64_t columns, const REAL *w0, const REAL *bias0, int64_t out, REAL *y0,
                      int64_t map, int64_t width) {
    for (int64_t o = 0; o < out; o += OUTPUTS) {
        /* As many sums at once as there are registers for. */
        const int64_t outputs = out - o < OUTPUTS ? out - o : OUTPUTS;
        const int64_t widest = SUMS / outputs < WIDEST ? SUMS / outputs : WIDEST;
        const int64_t parts = (width + widest - 1) / widest;
        const REAL *w = w0 + o * in * rows * columns, *bias = bias0 ? bias0 + o : NULL;
        for (int64_t part = 0; part < parts; part++) {
            const int64_t begin = width * part / parts, end = width * (part + 1) / parts;
            const REAL *x = x0 + begin * LANES;
            REAL *y = y0 + (o * map + begin) * LANES;
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

/* The pixels of a map's rows or columns that pooling window `i` has: numbers first to last - 1. */
typedef struct {
    int64_t first, last;
} Range;

INLINE Range within(int64_t begin, int64_t pool, int64_t size) {
    return (Range){begin < 0 ? -begin : 0, begin + pool > size ? size - begin : pool};
}

/* S: y[q] = the pixel of window q that is chosen; here chosen is the first largest. Makes row i
 * of the result; row r of the maps is row r % pool of `maps` (pool, out, width). */
INLINE void choose(const Shape *s, const int64_t pool, const int whole, const REAL *maps,
                   int64_t i, REAL *y, WHOLE *index) {
    const int64_t width = s->out_width, row = i * s->stride - s->margin;
    const Range all = {0, pool}, down = whole ? all : within(row, pool, s->out_height);
    for (int64_t c = 0; c < s->out; c++)
        for (int64_t j = 0; j < s->pooled_width; j++) {
            const int64_t column = j * s->stride - s->margin;
            const Range right = whole ? all : within(column, pool, width);
            vec most = {0};
            ints found = NOTHING - (ints){0};
            for (int64_t u = down.first; u < down.last; u++) {
                const REAL *from = maps + ((row + u) % pool * s->out + c) * width * LANES;
                for (int64_t v = right.first; v < right.last; v++) {
                    const vec value = load(from + (column + v) * LANES);
                    const ints more = (value > most) | (found == NOTHING);
                    most = (vec)pick(more, (ints)value, (ints)most);
                    found = pick(more, (WHOLE)(u * pool + v) - (ints){0}, found);
                }
            }
            const ints dead = (most <= 0) & (s->relu ? ~(ints){0} : (ints){0});
            const int64_t at = ((c * s->pooled_height + i) * s->pooled_width + j) * LANES;
            store(y + at, (vec)(~dead & (ints)most));
            *(loose_ints *)(index + at) = pick(dead, NOTHING - (ints){0}, found);
        }
}

/* S' g: puts g back where it was chosen, into maps that are zero. */
static void put_back(const Shape *s, const REAL *g, const WHOLE *index, REAL *maps, int64_t plane,
                     int64_t pitch) {
    const int64_t height = s->out_height, width = s->out_width;
    for (int64_t c = 0; c < s->out; c++, maps += plane * LANES)
        for (int64_t i = 0; i < s->pooled_height; i++)
            for (int64_t j = 0; j < s->pooled_width; j++, g += LANES, index += LANES) {
                const int64_t r = i * s->stride - s->margin, k = j * s->stride - s->margin;
                const Range down = within(r, s->pool, height), right = within(k, s->pool, width);
                const vec value = load(g);
                const ints chosen = *(const loose_ints *)index;
                for (int64_t u = down.first; u < down.last; u++)
                    for (int64_t v = right.first; v < right.last; v++) {
                        REAL *pixel = maps + ((r + u) * pitch + k + v) * LANES;
                        const ints here = chosen == (WHOLE)(u * s->pool + v);
                        store(pixel, load(pixel) + (vec)(here & (ints)value));
                    }
            }
}

/* --- Many pixels: whole maps of images side by side. */

/* The maps of images side by side, or what is chosen of them. */
static void forward_side_by_side(const Shape *s, const REAL *x, int64_t plane, int64_t pitch,
                                 const REAL *w, const REAL *b, REAL *maps, REAL *y, WHOLE *index) {
    int64_t done = 0; /* rows */
    const int64_t map = s->out_height * s->out_width;
    for (int64_t i = 0; i < (index ? s->pooled_height : s->out_height); i++) {
        const int64_t needed = index ? i * s->stride - s->margin + s->pool : i + 1;
        for (; done < needed && done < s->out_height; done++) {
            REAL *row = index ? maps + done % s->pool * s->out * s->out_width * LANES
                              : y + done * s->out_width * LANES;
            correlate(x + done * pitch * LANES, s->in, plane, pitch, s->rows, s->columns, w, b,
                      s->out, row, index ? s->out_width : map, s->out_width);
        }
        if (index && s->pool == 2 && !s->margin)
            choose(s, 2, 1, maps, i, y, index);
        else if (index)
            choose(s, s->pool, 0, maps, i, y, index);
    }
}

static int many_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                        int64_t of_network, int64_t of_image, const REAL *w, const REAL *b,
                        REAL *y, uint8_t *index) {
    const int64_t pitch = s->width + 2 * s->padding_x;
    const int64_t plane = (s->height + 2 * s->padding_y) * pitch;
    const int64_t image = s->in * s->height * s->width, taps = s->in * s->rows * s->columns;
    const int64_t size = s->out * (index ? s->pooled_height * s->pooled_width
                                         : s->out_height * s->out_width);
    Rooms *own = rooms();
    if (!own) return 1;
    REAL *plain = room(own, image * LANES), *padded = room(own, s->in * plane * LANES);
    REAL *maps = room(own, s->pool * s->out * s->out_width * LANES);
    REAL *result = room(own, size * LANES);
    WHOLE *choice = room(own, size * LANES);
    for (int64_t n = 0; !own->failed && n < images; n += LANES)
        for (int64_t j = 0; j < networks; j++) {
            const int64_t count = images - n < LANES ? images - n : LANES;
            if (!j || of_network) {
                side_by_side(x + j * of_network + n * of_image, of_image, count, image, plain);
                pad(plain, s->in, s->height, s->width, LANES, padded, plane, pitch,
                    s->padding_y * pitch + s->padding_x);
            }
            forward_side_by_side(s, padded, plane, pitch, w + j * s->out * taps, b + j * s->out,
                                 maps, result, index ? choice : NULL);
            one_by_one(result, count, size, y + (j * images + n) * size);
            if (index) choices_one_by_one(choice, count, size, index + (j * images + n) * size);
        }
    return own->failed;
}

static int many_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
                       const uint8_t *index, const REAL *w, REAL *x) {
    /* A correlation of the gradient, with margins, and the kernels the other way round. */
    const int64_t above = s->rows - 1 - s->padding_y, left = s->columns - 1 - s->padding_x;
    const int64_t pitch = s->out_width + 2 * left, first = above * pitch + left;
    const int64_t plane = (s->out_height + 2 * above) * pitch;
    const int64_t image = s->in * s->height * s->width, taps = s->rows * s->columns;
    const int64_t size = s->out * (index ? s->pooled_height * s->pooled_width
                                         : s->out_height * s->out_width);
    Rooms *own = rooms();
    if (!own) return 1;
    REAL *plain = room(own, size * LANES), *maps = room(own, s->out * plane * LANES);
    REAL *result = room(own, image * LANES), *turned = room(own, s->in * s->out * taps);
    WHOLE *choice = room(own, size * LANES);
    for (int64_t j = 0; !own->failed && j < networks; j++) {
        for (int64_t o = 0; o < s->out; o++)
            for (int64_t c = 0; c < s->in; c++)
                for (int64_t k = 0; k < taps; k++)
                    turned[(c * s->out + o) * taps + taps - 1 - k] =
                        w[((j * s->out + o) * s->in + c) * taps + k];
        for (int64_t n = 0; n < images; n += LANES) {
            const int64_t count = images - n < LANES ? images - n : LANES;
            const int64_t at = (j * images + n) * size;
            side_by_side(g + at, size, count, size, plain);
            if (index) {
                memset(maps, 0, sizeof(REAL) * (size_t)(s->out * plane * LANES));
                choices_side_by_side(index + at, count, size, choice);
                put_back(s, plain, choice, maps + first * LANES, plane, pitch);
            } else {
                pad(plain, s->out, s->out_height, s->out_width, LANES, maps, plane, pitch, first);
            }
            for (int64_t r = 0; r < s->height; r++)
                correlate(maps + r * pitch * LANES, s->out, plane, pitch, s->rows, s->columns,
                          turned, NULL, s->in, result + r * s->width * LANES,
                          s->height * s->width, s->width);
            one_by_one(result, count, image, x + (j * images + n) * image);
        }
    }
    return own->failed;
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
    Rooms *own = rooms();
    if (!own) return 1;
    REAL *padded = room(own, CHUNK * x_image + length), *maps = room(own, CHUNK * g_image);
    memset(w0, 0, sizeof(REAL) * (size_t)(networks * s->out * of_output));
    memset(b, 0, sizeof(REAL) * (size_t)(networks * s->out));
    for (int64_t first = 0; !own->failed && first < images; first += CHUNK)
        for (int64_t j = 0; j < networks; j++) {
            const int64_t count = images - first < CHUNK ? images - first : CHUNK;
            for (int64_t n = 0; n < count; n++) {
                if (!j || of_network)
                    pad(x0 + j * of_network + (first + n) * of_image, s->in, s->height, s->width, 1,
                        padded + n * x_image, plane, pitch, s->padding_y * pitch + s->padding_x);
                const REAL *from = g0 + (j * images + first + n) * s->out * map;
                pad(from, s->out, s->out_height, s->out_width, 1, maps + n * g_image, length,
                    pitch, 0);
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
    return own->failed;
}

/* --- The three maps. `index` holds the selection, one number for each pooled pixel; without it
 * there is no pooling. `choose` makes the selection; otherwise it is given. */

/* Whether a shorter vector has room for so many pixels of a row. */
static int narrow(const Shape *s, int64_t pixels) {
    return pixels * s->in * (int64_t)sizeof(REAL) <= SHORTER;
}

int forward(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *w, const REAL *b, REAL *y, uint8_t *index, int choose) {
    if (index && !choose)
        return (narrow(s, s->columns) ? narrow_forward : few_forward)(
            s, networks, images, x, of_network, of_image, w, b, y, index);
    return many_forward(s, networks, images, x, of_network, of_image, w, b, y, index);
}

int images(const Shape *s, int64_t networks, int64_t count, const REAL *g, const uint8_t *index,
           const REAL *w, REAL *x) {
    if (index)
        return (narrow(s, s->columns + s->pool - 1) ? narrow_images : few_images)(
            s, networks, count, g, index, w, x);
    return many_images(s, networks, count, g, index, w, x);
}

int weights(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *g, const uint8_t *index, REAL *w, REAL *b) {
    if (index)
        return (narrow(s, s->columns) ? narrow_weights : few_weights)(
            s, networks, images, x, of_network, of_image, g, index, w, b);
    return many_weights(s, networks, images, x, of_network, of_image, g, w, b);
}
