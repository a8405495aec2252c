/* Convolutions of images of few channels, such as colours, with a stride of 1.
 *
 * Sums of some neighbouring pixels, or of some weights, stay in registers, each for vectors of maps. No
 * matrix of windows is made. Maps have their channels last in memory; there is a multiple of 16 of
 * them. Weights are (numbers of a window, maps).
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <stdint.h>
#include <string.h>

#include "blocks.h"

typedef struct {
    int64_t images, channels, height, width;
    int64_t maps, rows, columns;         /* of the kernel */
    int64_t padding_y, padding_x;
    int64_t high, wide;                  /* of the maps */
} Shape;

typedef struct {
    int64_t image, channel, y, x;        /* how far apart they are in memory */
} Apart;

#define PITCH (s->wide + s->columns - 1) /* of a padded image */
#define PLANE ((s->high + s->rows - 1) * PITCH)
#define EACH_IMAGE for (int64_t n = 0; n < s->images; n++)
#define MAPS(y, i, j) ((y) + ((n * s->high + (i)) * s->wide + (j)) * s->maps)

/* One image (channels, rows, columns) with zeros around it. */
static void padded(const Shape *s, const Apart *a, const REAL *x, REAL *to) {
    memset(to, 0, sizeof(REAL) * (size_t)(s->channels * PLANE));
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t y = 0; y < s->height; y++) {
            const REAL *from = x + c * a->channel + y * a->y;
            REAL *row = to + c * PLANE + (y + s->padding_y) * PITCH + s->padding_x;
            for (int64_t z = 0; z < s->width; z++) row[z] = from[z * a->x];
        }
}

INLINE void some_pixels(const int count, const int vectors, const Shape *s, const REAL *x,
                        const REAL *w, const REAL *bias, REAL *y) {
    Vector sums[ROWS][VECTORS];
    for (int i = 0; i < count; i++)
        for (int v = 0; v < vectors; v++) sums[i][v] = load(bias + v * LANES);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t r = 0; r < s->rows; r++) {
            const REAL *from = x + c * PLANE + r * PITCH;
            for (int64_t k = 0; k < s->columns; k++, w += s->maps)
                for (int i = 0; i < count; i++)
                    for (int v = 0; v < vectors; v++)
                        sums[i][v] += from[k + i] * load(w + v * LANES);
        }
    for (int i = 0; i < count; i++)
        for (int v = 0; v < vectors; v++) store(y + i * s->maps + v * LANES, sums[i][v]);
}

INLINE void all_pixels(const int vectors, const Shape *s, const REAL *x, const REAL *w,
                       const REAL *bias, REAL *y) {
    for (int64_t i = 0; i < s->high; i++) {
        int64_t j = 0;
#define SOME(count)                                                                        \
    for (; j + (count) <= s->wide; j += (count))                                           \
        some_pixels(count, vectors, s, x + i * PITCH + j, w, bias, y + (i * s->wide + j) * s->maps);
        SOME(ROWS)
        SOME(2)
        SOME(1)
#undef SOME
    }
}

/* y = w * x + b, with room for a padded image. */
void direct_forward(const Shape *s, const Apart *a, const REAL *x, const REAL *w,
                    const REAL *bias, REAL *y, REAL *room) {
    EACH_IMAGE {
        int64_t m = 0;
        padded(s, a, x + n * a->image, room);
        for (; m + VECTORS * LANES <= s->maps; m += VECTORS * LANES)
            all_pixels(VECTORS, s, room, w + m, bias + m, MAPS(y, 0, 0) + m);
        for (; m < s->maps; m += LANES)
            all_pixels(1, s, room, w + m, bias + m, MAPS(y, 0, 0) + m);
    }
}

/* Adds to some numbers of the windows what one image has of the gradient. */
INLINE void some_weights(const int count, const int vectors, const Shape *s, int64_t first,
                         const REAL *x, const REAL *g, REAL *w) {
    Vector sums[ROWS][VECTORS];
    const REAL *from[ROWS];
    for (int i = 0; i < count; i++) {
        const int64_t number = first + i, channel = number / (s->rows * s->columns);
        const int64_t r = number / s->columns % s->rows, k = number % s->columns;
        from[i] = x + channel * PLANE + r * PITCH + k;
        for (int v = 0; v < vectors; v++) sums[i][v] = load(w + number * s->maps + v * LANES);
    }
    for (int64_t row = 0; row < s->high; row++)
        for (int64_t j = 0; j < s->wide; j++, g += s->maps)
            for (int i = 0; i < count; i++)
                for (int v = 0; v < vectors; v++)
                    sums[i][v] += from[i][row * PITCH + j] * load(g + v * LANES);
    for (int i = 0; i < count; i++)
        for (int v = 0; v < vectors; v++)
            store(w + (first + i) * s->maps + v * LANES, sums[i][v]);
}

INLINE void all_weights(const int vectors, const Shape *s, const REAL *x, const REAL *g, REAL *w) {
    const int64_t numbers = s->channels * s->rows * s->columns;
    int64_t first = 0;
#define SOME(count)                                                                        \
    for (; first + (count) <= numbers; first += (count))                                   \
        some_weights(count, vectors, s, first, x, g, w);
    SOME(ROWS)
    SOME(2)
    SOME(1)
#undef SOME
}

/* The gradient w of the weights where g is that of the maps; w is all zeros before. There is room for
 * a padded image. */
void direct_weights(const Shape *s, const Apart *a, const REAL *x, const REAL *g, REAL *w,
                    REAL *room) {
    EACH_IMAGE {
        int64_t m = 0;
        padded(s, a, x + n * a->image, room);
        for (; m + VECTORS * LANES <= s->maps; m += VECTORS * LANES)
            all_weights(VECTORS, s, room, MAPS(g, 0, 0) + m, w + m);
        for (; m < s->maps; m += LANES) all_weights(1, s, room, MAPS(g, 0, 0) + m, w + m);
    }
}
