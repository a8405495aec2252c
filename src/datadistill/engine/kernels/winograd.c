/* Winograd's convolutions by 3 × 3 and 5 × 5 kernels.
 *
 * Maps are computed in tiles of 2 × 2 pixels, each from a window of S × S, where S = 4 or 6. A window
 * d and a kernel w become S × S numbers each, B'dB and GwG'. A tile is A'mA of their products m: 16
 * or 36 of them, where 36 or 100 would be needed otherwise. Gradients take the transposes: AyA' of a
 * tile, G'qG of sums. The points are 0, ±1, ∞, and ±2 for S = 6.
 * Images and maps have their channels last in memory. Numbers are (S·S, tiles, channels). Channels
 * are multiples of 16. Some tiles are computed at a time: what they need stays in the cache.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <stdint.h>

#include "blocks.h"

#define MOST 6

typedef struct {
    int64_t kernel;              /* 3 or 5 */
    int64_t height, width;       /* of the images that windows are taken from */
    int64_t padding_y, padding_x;
    int64_t high, wide;          /* of the maps that tiles make up */
} Tiling;

/* In one direction, numbers are `apart` of each other. B'd: */
INLINE void window(const int s, const int apart, Vector *d) {
#define D(i) d[(i)*apart]
    const Vector d0 = D(0), d1 = D(1), d2 = D(2), d3 = D(3);
    if (s == 4) {
        D(0) = d0 - d2, D(1) = d1 + d2, D(2) = d2 - d1, D(3) = d1 - d3;
    } else {
        const Vector d4 = D(4), d5 = D(5);
        const Vector even = d4 - 4 * d2, odd = d3 - 4 * d1, less = d4 - d2, twice = 2 * (d3 - d1);
        D(0) = 4 * d0 - 5 * d2 + d4;
        D(1) = even + odd, D(2) = even - odd, D(3) = less + twice, D(4) = less - twice;
        D(5) = 4 * d1 - 5 * d3 + d5;
    }
}

/* Ay: */
INLINE void tile_numbers(const int s, const int apart, Vector *d) {
    const Vector y0 = D(0), y1 = D(1);
    D(1) = y0 + y1, D(2) = y0 - y1;
    if (s == 4)
        D(3) = -y1;
    else
        D(3) = y0 + 2 * y1, D(4) = y0 - 2 * y1, D(5) = y1;
}

/* A'm: */
INLINE void tile_of(const int s, const int apart, Vector *d) {
    const Vector sum = D(0) + D(1) + D(2), other = D(1) - D(2);
    if (s == 4)
        D(0) = sum, D(1) = other - D(3);
    else
        D(0) = sum + (D(3) + D(4)), D(1) = other + 2 * (D(3) - D(4)) + D(5);
}

/* Gw: */
INLINE void kernel_numbers(const int s, const int apart, Vector *d) {
    const Vector w0 = D(0), w1 = D(1), w2 = D(2);
    if (s == 4) {
        const Vector even = (w0 + w2) / 2, odd = w1 / 2;
        D(1) = even + odd, D(2) = even - odd, D(3) = w2;
    } else {
        const Vector w3 = D(3), w4 = D(4), even = (w0 + w2 + w4) / 6, odd = (w1 + w3) / 6;
        const Vector far = (w0 + 4 * w2 + 16 * w4) / 24, more = (w1 + 4 * w3) / 12;
        D(0) = w0 / 4, D(1) = -even - odd, D(2) = odd - even;
        D(3) = far + more, D(4) = far - more, D(5) = w4;
    }
}

/* G'q: */
INLINE void kernel_of(const int s, const int apart, Vector *d) {
    const Vector sum = D(1) + D(2), less = D(1) - D(2);
    if (s == 4) {
        D(0) += sum / 2, D(1) = less / 2, D(2) = sum / 2 + D(3);
    } else {
        const Vector far = D(3) + D(4), more = D(3) - D(4);
        D(0) = D(0) / 4 - sum / 6 + far / 24;
        D(1) = more / 12 - less / 6;
        D(2) = (far - sum) / 6;
        D(3) = more / 3 - less / 6;
        D(4) = 2 * far / 3 - sum / 6 + D(5);
    }
#undef D
}

/* Both ways: columns of a block of `rows` × `columns` numbers, then all rows of what they make. */
#define BOTH(function, d, columns, rows)                                                   \
    for (int one = 0; one < (columns); one++) function(s, MOST, (d) + one);                \
    for (int one = 0; one < (rows); one++) function(s, 1, (d) + MOST * one);

#define TILES                                                                              \
    const int64_t down = (n->high + 1) / 2, along = (n->wide + 1) / 2;                     \
    for (int64_t tile = begin; tile < end; tile++)
#define AT                                                                                 \
    const int64_t image = tile / (down * along);                                           \
    const int64_t y0 = tile / along % down * 2, x0 = tile % along * 2;
#define CHANNELS for (int64_t c = 0; c < channels; c += LANES)
#define BLOCK(size)                                                                        \
    for (int i = 0; i < (size); i++)                                                       \
        for (int k = 0; k < (size); k++)
#define NUMBER(u) ((u) + (i * s + k) * apart + (tile - begin) * channels + c)

INLINE void windows(const int s, const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                    const REAL *x, REAL *u, int64_t apart) {
    TILES {
        AT;
        const REAL *from[MOST * MOST];
        BLOCK(s) {
            const int64_t y = y0 - n->padding_y + i, z = x0 - n->padding_x + k;
            const int inside = y >= 0 && y < n->height && z >= 0 && z < n->width;
            from[MOST * i + k] =
                inside ? x + ((image * n->height + y) * n->width + z) * channels : 0;
        }
        CHANNELS {
            Vector d[MOST * MOST];
            BLOCK(s) {
                const REAL *own = from[MOST * i + k];
                d[MOST * i + k] = own ? load(own + c) : (Vector){0};
            }
            BOTH(window, d, s, s)
            BLOCK(s) store(NUMBER(u), d[MOST * i + k]);
        }
    }
}

INLINE void tiles(const int s, const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                  const REAL *maps, REAL *u, int64_t apart) {
    TILES {
        AT;
        CHANNELS {
            Vector d[MOST * MOST];
            BLOCK(2) {
                const int inside = y0 + i < n->high && x0 + k < n->wide;
                const int64_t at = (image * n->high + y0 + i) * n->wide + x0 + k;
                d[MOST * i + k] = inside ? load(maps + at * channels + c) : (Vector){0};
            }
            BOTH(tile_numbers, d, 2, s)
            BLOCK(s) store(NUMBER(u), d[MOST * i + k]);
        }
    }
}

INLINE void maps_of(const int s, const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                    const REAL *u, int64_t apart, const REAL *bias, REAL *maps) {
    TILES {
        AT;
        CHANNELS {
            Vector d[MOST * MOST];
            BLOCK(s) d[MOST * i + k] = load(NUMBER(u));
            BOTH(tile_of, d, s, 2)
            BLOCK(2) {
                const int64_t at = (image * n->high + y0 + i) * n->wide + x0 + k;
                if (y0 + i < n->high && x0 + k < n->wide)
                    store(maps + at * channels + c, d[MOST * i + k] + load(bias + c));
            }
        }
    }
}

INLINE void kernels(const int s, int64_t maps, int64_t channels, int turned, const REAL *w,
                    REAL *v) {
    const int size = s - 1;
    const int64_t count = maps * channels, columns = turned ? channels : maps;
    for (int64_t at = 0; at < count; at += LANES) {
        const int64_t row = at / columns, column = at % columns;
        const REAL *from = w + (turned ? at : column * channels + row) * size * size;
        const int64_t apart = (turned ? 1 : channels) * size * size;
        Vector d[MOST * MOST];
        BLOCK(size) {
            const int number = turned ? size * size - 1 - (i * size + k) : i * size + k;
            for (int64_t lane = 0; lane < LANES; lane++)
                d[MOST * i + k][lane] = from[lane * apart + number];
        }
        BOTH(kernel_numbers, d, size, s)
        BLOCK(s) store(v + (i * s + k) * count + at, d[MOST * i + k]);
    }
}

INLINE void kernels_of(const int s, int64_t count, const REAL *q, REAL *w) {
    const int size = s - 1;
    for (int64_t at = 0; at < count; at += LANES) {
        Vector d[MOST * MOST];
        BLOCK(s) d[MOST * i + k] = load(q + (i * s + k) * count + at);
        BOTH(kernel_of, d, s, size)
        BLOCK(size) for (int64_t lane = 0; lane < LANES; lane++)
            w[(at + lane) * size * size + i * size + k] = d[MOST * i + k][lane];
    }
}

/* c += a·b or c = a·b for one block of c: `rows` of them, and `vectors` along each. Sums begin at zero
 * either way: errors of a few short sums are smaller than those of a long one. */
INLINE void block(const int rows, const int vectors, int add, int64_t inner, const REAL *a,
                  int64_t row, int64_t next, const REAL *b, REAL *c, int64_t columns) {
    Vector sums[ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < vectors; k++) sums[i][k] = (Vector){0};
    for (int64_t at = 0; at < inner; at++, a += next, b += columns)
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < vectors; k++) sums[i][k] += a[i * row] * load(b + k * LANES);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < vectors; k++) {
            REAL *to = c + i * columns + k * LANES;
            store(to, add ? load(to) + sums[i][k] : sums[i][k]);
        }
}

INLINE void blocks(const int vectors, int add, int64_t rows, int64_t inner, const REAL *a,
                   int64_t row, int64_t next, const REAL *b, REAL *c, int64_t columns) {
    for (; rows >= ROWS; rows -= ROWS, a += ROWS * row, c += ROWS * columns)
        block(ROWS, vectors, add, inner, a, row, next, b, c, columns);
    for (; rows >= 2; rows -= 2, a += 2 * row, c += 2 * columns)
        block(2, vectors, add, inner, a, row, next, b, c, columns);
    if (rows) block(1, vectors, add, inner, a, row, next, b, c, columns);
}

/* Matrices of numbers, `apart` of each other. In a matrix they are `row` and `next` apart: a row and
 * a column further. */
typedef struct {
    REAL *numbers;
    int64_t apart, row, next;
} Matrices;

/* `count` matrices c (rows × columns) = a·b, or c += a·b, where b is (inner × columns). Rows of b and
 * c are one after the other. */
static void products(int64_t count, int add, int64_t rows, int64_t inner, int64_t columns,
                     Matrices a, Matrices b, Matrices c) {
    for (int64_t i = 0; i < count; i++) {
        const REAL *left = a.numbers + i * a.apart, *right = b.numbers + i * b.apart;
        REAL *to = c.numbers + i * c.apart;
        int64_t at = 0;
        for (; at + VECTORS * LANES <= columns; at += VECTORS * LANES)
            blocks(VECTORS, add, rows, inner, left, a.row, a.next, right + at, to + at, columns);
        for (; at < columns; at += LANES)
            blocks(1, add, rows, inner, left, a.row, a.next, right + at, to + at, columns);
    }
}

#define EITHER(kernel, function, ...)                                                      \
    if ((kernel) == 3)                                                                     \
        function(4, __VA_ARGS__);                                                          \
    else                                                                                   \
        function(6, __VA_ARGS__);

/* The numbers GwG' of kernels (maps, channels, …) as (S·S, channels, maps), or those of kernels that
 * are turned round, as (S·S, maps, channels). */
void winograd_kernels(const Tiling *n, int64_t maps, int64_t channels, int64_t turned,
                      const REAL *w, REAL *v) {
    EITHER(n->kernel, kernels, maps, channels, (int)turned, w, v)
}

/* Where the numbers of `chunk` tiles begin, a cache line more than they take: if they were a power
 * of two apart, all numbers of a tile would need the same few lines of the cache. */
#define APART(channels) (chunk * (channels) + 64 / (int64_t)sizeof(REAL))

/* All maps of images x by the numbers v of kernels. There is room for the numbers of `chunk` tiles
 * of both. */
void winograd_convolution(const Tiling *n, int64_t all, int64_t chunk, int64_t channels,
                          int64_t maps, const REAL *x, REAL *v, const REAL *bias, REAL *y,
                          REAL *room) {
    const int64_t numbers = (n->kernel + 1) * (n->kernel + 1);
    const Matrices u = {room, APART(channels), channels, 1};
    const Matrices by = {v, channels * maps, maps, 1};
    const Matrices made = {room + numbers * u.apart, APART(maps), maps, 1};
    for (int64_t begin = 0; begin < all; begin += chunk) {
        const int64_t end = begin + chunk < all ? begin + chunk : all;
        EITHER(n->kernel, windows, n, channels, begin, end, x, u.numbers, u.apart)
        products(numbers, 0, end - begin, channels, maps, u, by, made);
        EITHER(n->kernel, maps_of, n, maps, begin, end, made.numbers, made.apart, bias, y)
    }
}

/* The gradient w of the kernels where g is that of the maps. There is room for the numbers of `chunk`
 * tiles of both, and for those of the kernels. */
void winograd_weights(const Tiling *n, int64_t all, int64_t chunk, int64_t channels, int64_t maps,
                      const REAL *x, const REAL *g, REAL *w, REAL *room) {
    const int64_t numbers = (n->kernel + 1) * (n->kernel + 1);
    const Matrices u = {room, APART(channels), channels, 1};
    const Matrices turned = {room + numbers * u.apart, APART(maps), 1, maps};
    const Matrices sums = {turned.numbers + numbers * turned.apart, maps * channels, channels, 1};
    for (int64_t begin = 0; begin < all; begin += chunk) {
        const int64_t end = begin + chunk < all ? begin + chunk : all;
        EITHER(n->kernel, windows, n, channels, begin, end, x, u.numbers, u.apart)
        EITHER(n->kernel, tiles, n, maps, begin, end, g, turned.numbers, turned.apart)
        products(numbers, begin > 0, maps, end - begin, channels, turned, u, sums);
    }
    EITHER(n->kernel, kernels_of, maps * channels, sums.numbers, w)
}
