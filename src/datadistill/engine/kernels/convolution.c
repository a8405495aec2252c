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

#include <pthread.h>
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
#define WIDEST 4  /* neighbouring pixels at once */
#define TAPS 5    /* columns of a kernel at once */
#define CHUNK 8   /* images of which a gradient is summed in registers */
#define NOTHING 255
#define ROOMS 5     /* arrays that one call needs at most */

#define WHOLE __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0))
typedef REAL vec __attribute__((vector_size(BYTES)));
typedef REAL loose __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
typedef WHOLE ints __attribute__((vector_size(BYTES)));
typedef WHOLE loose_ints __attribute__((vector_size(BYTES), aligned(sizeof(WHOLE)), may_alias));
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

INLINE vec load(const REAL *from) { return *(const loose *)from; }
INLINE void store(REAL *to, vec value) { *(loose *)to = value; }
INLINE ints pick(ints where, ints one, ints other) { return (where & one) | (~where & other); }
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

/* Memory of a thread's own that is kept from call to call: to ask the system for it takes longer
 * than many a call. */
typedef struct {
    void *memory[ROOMS];
    size_t bytes[ROOMS];
    int taken, failed;
} Rooms;

static pthread_key_t own_rooms;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *rooms) {
    for (int i = 0; i < ROOMS; i++) free(((Rooms *)rooms)->memory[i]);
    free(rooms);
}

static void make_key(void) { pthread_key_create(&own_rooms, give_back); }

/* This thread's rooms, all of them free. */
static Rooms *rooms(void) {
    pthread_once(&once, make_key);
    Rooms *own = pthread_getspecific(own_rooms);
    if (!own) {
        own = calloc(1, sizeof(Rooms));
        if (!own || pthread_setspecific(own_rooms, own)) return NULL;
    }
    own->taken = own->failed = 0;
    return own;
}

/* The next room, filled with zeros, and some behind. */
static void *room(Rooms *own, int64_t size) {
    const size_t bytes = sizeof(REAL) * (size_t)up(size + 2 * WIDEST * LANES);
    const int i = own->taken++;
    if (own->bytes[i] < bytes) {
        free(own->memory[i]);
        own->bytes[i] = bytes;
        if (posix_memalign(&own->memory[i], BYTES, bytes)) {
            own->memory[i] = NULL;
            own->bytes[i] = 0;
            own->failed = 1;
            return NULL;
        }
    }
    return memset(own->memory[i], 0, bytes);
}

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

/* --- Few pixels: where a selection leaves at most one pixel of a window, the pixels are listed
 * and each is treated by itself, on images with their channels innermost. A row of the kernel is
 * then one run of numbers, and a kernel some vectors at fixed distances. */

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
    int32_t *first;            /* number of each pooling window in the padded image */
    int32_t away[NOTHING + 1]; /* of the pixel that is chosen from there */
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
    made.first = room(own, made.map);
    for (int64_t i = 0; !own->failed && i < count; i++)
        made.distance[i] = i / row * pitch * s->in + i % row * LANES;
    for (int64_t q = 0; !own->failed && q < made.map; q++)
        made.first[q] = (int32_t)((q / s->pooled_width * pitch + q % s->pooled_width) *
                                  s->stride * s->in);
    for (int64_t u = 0; u < s->pool; u++)
        for (int64_t v = 0; v < s->pool; v++)
            made.away[u * s->pool + v] =
                (int32_t)(((u - s->margin) * pitch + v - s->margin) * s->in);
    return made;
}

/* Lists the pixels of one map that are chosen. */
INLINE int64_t list(const Few *f, const uint8_t *index) {
    int64_t count = 0;
    for (int64_t q = 0; q < f->map; q++) {
        const uint8_t chosen = index[q];
        f->pixels[count] = q << 32 | (uint32_t)(f->first[q] + f->away[chosen]);
        count += chosen != NOTHING;
    }
    return count;
}

/* The sum of those pixels, in four parts, as an addition has to wait for the one before. */
INLINE REAL sum(const REAL *g, const Pixel *pixels, int64_t count) {
    REAL part[4] = {0};
    int64_t p = 0;
    for (; p + 4 <= count; p += 4)
        for (int i = 0; i < 4; i++) part[i] += g[pooled(pixels[p + i])];
    for (; p < count; p++) part[0] += g[pooled(pixels[p])];
    return part[0] + part[1] + (part[2] + part[3]);
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

/* Where a pixel does not keep all registers busy, the next one has sums of its own. */
INLINE void gather(const int vectors, const int64_t *distance, const REAL *x, REAL *w,
                   const Pixel *pixels, int64_t count, const REAL *g) {
    const int more = vectors <= SOME / 2 ? vectors : 0;
    vec kernel[SOME], second[SOME];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) kernel[v] = load(w + v * LANES);
#pragma GCC unroll 16
    for (int v = 0; v < more; v++) second[v] = (vec){0};
    int64_t p = 0;
    for (; more && p + 1 < count; p += 2) {
        const REAL *from = x + window(pixels[p]), *next = x + window(pixels[p + 1]);
        const REAL value = g[pooled(pixels[p])], other = g[pooled(pixels[p + 1])];
#pragma GCC unroll 16
        for (int v = 0; v < more; v++) {
            kernel[v] += value * load(from + distance[v]);
            second[v] += other * load(next + distance[v]);
        }
    }
    for (; p < count; p++) {
        const REAL *from = x + window(pixels[p]);
        const REAL value = g[pooled(pixels[p])];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) kernel[v] += value * load(from + distance[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < more; v++) kernel[v] += second[v];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) store(w + v * LANES, kernel[v]);
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

static int few_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                       int64_t of_network, int64_t of_image, const REAL *w, const REAL *b,
                       REAL *y, const uint8_t *index) {
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
 * wherever in the window a pixel is, the part that it touches is the same. */
typedef struct {
    const REAL *kernel; /* the number of it, and of its zeros, that meets the part's first */
    REAL value;
} Touch;

typedef struct {
    int64_t pitch, map;
    int64_t before;         /* numbers of room in front of the image */
    int64_t size;           /* numbers of the image with all its room */
    int64_t of_row, of_map; /* numbers of a kernel's row and of a kernel, with their zeros */
    int64_t count;          /* vectors of a part of the image */
    int64_t *distance;      /* of each from the part's first number, and in a kernel, in turn */
    REAL *image, *kernels;
    Touch *touches;
    int64_t first[NOTHING + 1]; /* number of a kernel that meets the part's first number */
} Spread;

static Spread spread(const Shape *s, Rooms *own) {
    const int64_t pitch = s->width + 2 * s->padding_x, side = s->pool - 1;
    const int64_t row = up((s->columns + side) * s->in), across = row / LANES;
    Spread made = {
        .pitch = pitch,
        .map = s->pooled_height * s->pooled_width,
        .before = s->margin * (pitch + 1) * s->in,
        .of_row = row + side * s->in,
        .count = (s->rows + side) * across,
    };
    made.of_map = (s->rows + 2 * side) * made.of_row;
    made.size = (s->height + 2 * s->padding_y) * pitch * s->in + 2 * made.before + row;
    made.image = room(own, made.size);
    made.kernels = room(own, s->out * made.of_map);
    made.touches = room(own, (int64_t)(sizeof(Touch) / sizeof(REAL)) * (s->out + 1));
    made.distance = room(own, (int64_t)(2 * sizeof(int64_t) / sizeof(REAL)) * made.count);
    for (int64_t i = 0; !own->failed && i < made.count; i++) {
        made.distance[2 * i] = i / across * pitch * s->in + i % across * LANES;
        made.distance[2 * i + 1] = i / across * made.of_row + i % across * LANES;
    }
    for (int64_t u = 0; u <= side; u++)
        for (int64_t v = 0; v <= side; v++)
            made.first[u * s->pool + v] = (side - u) * made.of_row + (side - v) * s->in;
    return made;
}

/* Kernels (out, in, rows, columns) of one network, their channels innermost, among zeros. */
static void among_zeros(const Shape *s, const Spread *f, const REAL *w) {
    REAL *first = f->kernels + (s->pool - 1) * (f->of_row + s->in);
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++)
            for (int64_t r = 0; r < s->rows; r++)
                for (int64_t k = 0; k < s->columns; k++)
                    first[o * f->of_map + r * f->of_row + k * s->in + c] = *w++;
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

static int few_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
                      const uint8_t *index, const REAL *w, REAL *x) {
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

static int few_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                       int64_t of_network, int64_t of_image, const REAL *g, const uint8_t *index,
                       REAL *w, REAL *b) {
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
                b[j * s->out + o] += sum(g, f.pixels, count);
                PARTS(gather, f.image, f.kernels + o * f.count * LANES, g)
            }
        }
        from_vectors(s, f.kernels, w + j * f.taps, f.count);
    }
    return own->failed;
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

int forward(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *w, const REAL *b, REAL *y, uint8_t *index, int choose) {
    if (index && !choose)
        return few_forward(s, networks, images, x, of_network, of_image, w, b, y, index);
    return many_forward(s, networks, images, x, of_network, of_image, w, b, y, index);
}

int images(const Shape *s, int64_t networks, int64_t count, const REAL *g, const uint8_t *index,
           const REAL *w, REAL *x) {
    if (index)
        return few_images(s, networks, count, g, index, w, x);
    return many_images(s, networks, count, g, index, w, x);
}

int weights(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *g, const uint8_t *index, REAL *w, REAL *b) {
    if (index)
        return few_weights(s, networks, images, x, of_network, of_image, g, index, w, b);
    return many_weights(s, networks, images, x, of_network, of_image, g, w, b);
}
