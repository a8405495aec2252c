/* Means over windows of images that do not overlap, and their transpose.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t planes, height, width; /* of the images: what is left over at their ends has no window */
    int64_t rows, columns;         /* of a window */
} Windows;

#define INLINE static inline __attribute__((always_inline))

INLINE void add(const int64_t columns, const REAL *restrict x, int64_t count, REAL *restrict y) {
    for (int64_t j = 0; j < count; j++) {
        REAL sum = 0;
        for (int64_t k = 0; k < columns; k++) sum += x[j * columns + k];
        y[j] += sum;
    }
}

INLINE void repeat(const int64_t columns, const REAL *restrict g, int64_t count, REAL scale,
                   REAL *restrict x) {
    for (int64_t j = 0; j < count; j++)
        for (int64_t k = 0; k < columns; k++) x[j * columns + k] = scale * g[j];
}

void average(const Windows *w, const REAL *restrict x, REAL *restrict y) {
    const int64_t high = w->height / w->rows, wide = w->width / w->columns;
    const REAL scale = 1 / (REAL)(w->rows * w->columns);
    for (int64_t plane = 0; plane < w->planes; plane++, x += w->height * w->width)
        for (int64_t i = 0; i < high; i++, y += wide) {
            memset(y, 0, sizeof(REAL) * (size_t)wide);
            for (int64_t r = 0; r < w->rows; r++) {
                const REAL *row = x + (i * w->rows + r) * w->width;
                if (w->columns == 2)
                    add(2, row, wide, y);
                else
                    add(w->columns, row, wide, y);
            }
            for (int64_t j = 0; j < wide; j++) y[j] *= scale;
        }
}

void spread_out(const Windows *w, const REAL *restrict g, REAL *restrict x) {
    const int64_t high = w->height / w->rows, wide = w->width / w->columns;
    const int64_t left = w->width - wide * w->columns;
    const REAL scale = 1 / (REAL)(w->rows * w->columns);
    for (int64_t plane = 0; plane < w->planes; plane++) {
        for (int64_t i = 0; i < high; i++, g += wide) {
            const REAL *first = x;
            if (w->columns == 2)
                repeat(2, g, wide, scale, x);
            else
                repeat(w->columns, g, wide, scale, x);
            memset(x + wide * w->columns, 0, sizeof(REAL) * (size_t)left);
            x += w->width;
            for (int64_t r = 1; r < w->rows; r++, x += w->width)
                memcpy(x, first, sizeof(REAL) * (size_t)w->width);
        }
        const int64_t below = (w->height - high * w->rows) * w->width;
        memset(x, 0, sizeof(REAL) * (size_t)below);
        x += below;
    }
}
