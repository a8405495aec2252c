/* What Winograd's convolutions by 3 × 3 kernels need beside matrix products.
 *
 * F(2 × 2, 3 × 3): maps are computed in tiles of 2 × 2 pixels, each from a window of 4 × 4. A window
 * d and a kernel w become 4 × 4 numbers each, B'dB and GwG'. A tile is A'mA of their 16 products m,
 * where 36 would be needed otherwise. Gradients take the transposes: AyA' of a tile, G'qG of sums.
 * Images and maps have their channels last in memory. Numbers are (16, tiles, channels).
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <stdint.h>

typedef struct {
    int64_t height, width;       /* of the images that windows are taken from */
    int64_t padding_y, padding_x;
    int64_t high, wide;          /* of the maps that tiles make up */
} Tiling;

#define CHANNELS _Pragma("GCC ivdep") for (int64_t c = 0; c < channels; c++)
#define TILES                                                                              \
    const int64_t down = (n->high + 1) / 2, along = (n->wide + 1) / 2;                     \
    for (int64_t tile = begin; tile < end; tile++)
#define AT                                                                                 \
    const int64_t image = tile / (down * along);                                           \
    const int64_t y0 = tile / along % down * 2, x0 = tile % along * 2;
#define NUMBERS for (int i = 0; i < 16; i++)

/* The numbers B'dB of some windows; `zeros` are as many as there are channels. */
void winograd_windows(const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                      const REAL *x, const REAL *zeros, REAL *u) {
    TILES {
        AT;
        const REAL *d[16];
        REAL *to[16];
        NUMBERS {
            const int64_t y = y0 - n->padding_y + i / 4, z = x0 - n->padding_x + i % 4;
            const int inside = y >= 0 && y < n->height && z >= 0 && z < n->width;
            d[i] = inside ? x + ((image * n->height + y) * n->width + z) * channels : zeros;
            to[i] = u + (i * (end - begin) + tile - begin) * channels;
        }
#define COLUMN(k)                                                                          \
    const REAL a##k = d[k][c] - d[8 + k][c], b##k = d[4 + k][c] + d[8 + k][c];             \
    const REAL c##k = d[8 + k][c] - d[4 + k][c], e##k = d[4 + k][c] - d[12 + k][c];
#define ROW(i, v)                                                                          \
    to[i][c] = v##0 - v##2, to[i + 1][c] = v##1 + v##2, to[i + 2][c] = v##2 - v##1,        \
             to[i + 3][c] = v##1 - v##3;
        CHANNELS {
            COLUMN(0) COLUMN(1) COLUMN(2) COLUMN(3)
            ROW(0, a) ROW(4, b) ROW(8, c) ROW(12, e)
        }
#undef COLUMN
#undef ROW
    }
}

/* The numbers AyA' of some tiles of maps. */
void winograd_tiles(const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                    const REAL *maps, const REAL *zeros, REAL *u) {
    TILES {
        AT;
        const REAL *g[4];
        REAL *to[16];
        for (int i = 0; i < 4; i++) {
            const int64_t y = y0 + i / 2, z = x0 + i % 2;
            const int inside = y < n->high && z < n->wide;
            g[i] = inside ? maps + ((image * n->high + y) * n->wide + z) * channels : zeros;
        }
        NUMBERS to[i] = u + (i * (end - begin) + tile - begin) * channels;
#define ROW(i, left, right)                                                                \
    to[i][c] = (left), to[i + 1][c] = (left) + (right), to[i + 2][c] = (left) - (right),   \
             to[i + 3][c] = -(right);
        CHANNELS {
            const REAL g0 = g[0][c], g1 = g[1][c], g2 = g[2][c], g3 = g[3][c];
            ROW(0, g0, g1) ROW(4, g0 + g2, g1 + g3) ROW(8, g0 - g2, g1 - g3) ROW(12, -g2, -g3)
        }
#undef ROW
    }
}

/* Tiles of maps from their products: A'mA + b. */
void winograd_maps(const Tiling *n, int64_t channels, int64_t begin, int64_t end,
                   const REAL *products, const REAL *bias, REAL *maps) {
    TILES {
        AT;
        const REAL *m[16];
        NUMBERS m[i] = products + (i * (end - begin) + tile - begin) * channels;
        REAL *to = maps + ((image * n->high + y0) * n->wide + x0) * channels;
        /* What lies beyond the maps is written where something else comes later. */
        const int64_t right = x0 + 1 < n->wide ? channels : 0;
        const int64_t below = y0 + 1 < n->high ? n->wide * channels : 0;
        REAL *last = to + below + right, *under = to + below, *beside = to + right;
#define COLUMN(k)                                                                          \
    const REAL s##k = m[k][c] + m[4 + k][c] + m[8 + k][c];                                 \
    const REAL t##k = m[4 + k][c] - m[8 + k][c] - m[12 + k][c];
        CHANNELS {
            COLUMN(0) COLUMN(1) COLUMN(2) COLUMN(3)
            last[c] = t1 - t2 - t3 + bias[c];
            under[c] = t0 + t1 + t2 + bias[c];
            beside[c] = s1 - s2 - s3 + bias[c];
            to[c] = s0 + s1 + s2 + bias[c];
        }
#undef COLUMN
    }
}

/* The numbers GwG' of `count` kernels, (16, count); those of the turned kernels if wanted. */
void winograd_kernels(int64_t count, int64_t turned, const REAL *restrict w, REAL *restrict v) {
    REAL *to[16];
    NUMBERS {
        const int row = i / 4, column = i % 4; /* turned, the first and the last change places */
        const int other = (row % 3 ? row : 3 - row) * 4 + (column % 3 ? column : 3 - column);
        to[i] = v + (turned ? other : i) * count;
    }
    const REAL half = (REAL)0.5;
#define COLUMN(k)                                                                          \
    const REAL a##k = own[k], e##k = own[6 + k];                                           \
    const REAL b##k = half * (own[k] + own[3 + k] + own[6 + k]);                           \
    const REAL c##k = half * (own[k] - own[3 + k] + own[6 + k]);
#define ROW(i, v)                                                                          \
    to[i][n] = v##0, to[i + 1][n] = half * (v##0 + v##1 + v##2),                           \
    to[i + 2][n] = half * (v##0 - v##1 + v##2), to[i + 3][n] = v##2;
    _Pragma("GCC ivdep") for (int64_t n = 0; n < count; n++) {
        const REAL *own = w + 9 * n;
        COLUMN(0) COLUMN(1) COLUMN(2)
        ROW(0, a) ROW(4, b) ROW(8, c) ROW(12, e)
    }
#undef COLUMN
#undef ROW
}

/* The transpose: G'qG. */
void winograd_kernels_back(int64_t count, const REAL *restrict q, REAL *restrict w) {
    const REAL half = (REAL)0.5;
#define COLUMN(k)                                                                          \
    const REAL p##k = half * (q[(4 + k) * count + n] + q[(8 + k) * count + n]);            \
    const REAL a##k = q[k * count + n] + p##k;                                             \
    const REAL b##k = half * (q[(4 + k) * count + n] - q[(8 + k) * count + n]);            \
    const REAL c##k = p##k + q[(12 + k) * count + n];
#define ROW(i, v)                                                                          \
    to[i] = v##0 + half * (v##1 + v##2), to[i + 1] = half * (v##1 - v##2),                 \
    to[i + 2] = half * (v##1 + v##2) + v##3;
    for (int64_t n = 0; n < count; n++) {
        REAL *to = w + 9 * n;
        COLUMN(0) COLUMN(1) COLUMN(2) COLUMN(3)
        ROW(0, a) ROW(3, b) ROW(6, c)
    }
#undef COLUMN
#undef ROW
}
