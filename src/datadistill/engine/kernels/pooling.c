/* Max-pooling of images whose channels lie last in memory, with ReLU if wanted.
 *
 * Pooling selects one pixel of each window, or none where ReLU lets nothing through. Once they are
 * selected it is linear: `pool_select` and `pool_put_back` are each other's transpose, and
 * derivatives of any order need no more. Channels are treated side by side.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define WHOLE __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0))
#define NOTHING (-1)

typedef struct {
    int64_t images, channels, height, width;
    int64_t rows, columns; /* of a window */
    int64_t stride_y, stride_x, padding_y, padding_x;
    int64_t high, wide; /* of the result */
    int64_t relu;
} Pools;

#define CHANNELS for (int64_t c = 0; c < n->channels; c++)

/* The numbers first to last - 1 of what is within an image of a window that begins at `begin`. */
typedef struct {
    int64_t first, last;
} Range;

static inline Range within(int64_t begin, int64_t window, int64_t size) {
    return (Range){begin < 0 ? -begin : 0, begin + window > size ? size - begin : window};
}

/* Visits the windows, and in each the pixels that it has: `pixel` is where one begins in memory,
 * `u` and `v` its row and column in the window. */
#define WINDOWS                                                                                  \
    for (int64_t image = 0, at = 0; image < n->images; image++)                                  \
        for (int64_t i = 0; i < n->high; i++)                                                    \
            for (int64_t j = 0; j < n->wide; j++, at += n->channels)
#define PIXELS                                                                                   \
    const int64_t top = i * n->stride_y - n->padding_y, left = j * n->stride_x - n->padding_x;   \
    const Range down = within(top, n->rows, n->height), right = within(left, n->columns, n->width); \
    for (int64_t u = down.first; u < down.last; u++)                                             \
        for (int64_t v = right.first, pixel = ((image * n->height + top + u) * n->width + left + \
                                               right.first) * n->channels;                       \
             v < right.last; v++, pixel += n->channels)

/* y[q] = the first largest pixel of window q, whose number in the window goes into `index`. */
void pool_choose(const Pools *n, const REAL *restrict x, REAL *restrict y, WHOLE *restrict index) {
    WINDOWS {
        REAL *restrict most = y + at;
        WHOLE *restrict found = index + at;
        int first = 1;
        PIXELS {
            const REAL *restrict from = x + pixel;
            const WHOLE number = (WHOLE)(u * n->columns + v);
            if (first) {
                memcpy(most, from, sizeof(REAL) * (size_t)n->channels);
                CHANNELS found[c] = number;
                first = 0;
                continue;
            }
            CHANNELS {
                /* What is not a number stays, as with torch. */
                const int more = from[c] > most[c] || from[c] != from[c];
                most[c] = more ? from[c] : most[c];
                found[c] = more ? number : found[c];
            }
        }
        if (n->relu) CHANNELS {
                const int dead = most[c] <= 0;
                most[c] = dead ? 0 : most[c];
                found[c] = dead ? NOTHING : found[c];
            }
    }
}

/* y[q] = the pixel of window q that is chosen. */
void pool_select(const Pools *n, const REAL *restrict x, const WHOLE *restrict index,
                 REAL *restrict y) {
    WINDOWS {
        REAL *restrict to = y + at;
        const WHOLE *restrict found = index + at;
        memset(to, 0, sizeof(REAL) * (size_t)n->channels);
        PIXELS {
            const REAL *restrict from = x + pixel;
            const WHOLE number = (WHOLE)(u * n->columns + v);
            CHANNELS to[c] = found[c] == number ? from[c] : to[c];
        }
    }
}

/* The transpose: each pixel is the sum of g over the windows that have chosen it. */
void pool_put_back(const Pools *n, const REAL *restrict g, const WHOLE *restrict index,
                   REAL *restrict x) {
    memset(x, 0, sizeof(REAL) * (size_t)(n->images * n->height * n->width * n->channels));
    WINDOWS {
        const REAL *restrict from = g + at;
        const WHOLE *restrict found = index + at;
        PIXELS {
            REAL *restrict to = x + pixel;
            const WHOLE number = (WHOLE)(u * n->columns + v);
            CHANNELS to[c] += found[c] == number ? from[c] : 0;
        }
    }
}
