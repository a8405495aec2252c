/* All windows of images that a kernel moves over, as a matrix, and the transpose of that.
 *
 * Number k of a window is (channel, row, column) of the kernel, in this order: as in its weights.
 * The matrix has a window in each row (`apart` of the pixels is `channels * rows * columns`, of the
 * numbers 1) or in each column (the other way round). Images may lie in memory in any way.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t images, channels, height, width;
    int64_t rows, columns;               /* of the kernel */
    int64_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
    int64_t high, wide;                  /* of the maps: a window for each of their pixels */
    int64_t by_rows;                     /* whether a window is a row */
} Moves;

typedef struct {
    int64_t image, channel, y, x;        /* how far apart they are in memory */
} Apart;

#define INLINE static inline __attribute__((always_inline))

INLINE void move(const int gather, REAL *image, REAL *window) {
    if (gather)
        *window = *image;
    else
        *image += *window;
}

/* One window as a row: each pixel of the kernel for all channels. */
INLINE void by_rows(const int gather, const Moves *m, const Apart *a, const int64_t taps,
                    REAL *restrict x, REAL *restrict matrix) {
    for (int64_t n = 0; n < m->images; n++)
        for (int64_t i = 0; i < m->high; i++)
            for (int64_t j = 0; j < m->wide; j++, matrix += taps * m->channels)
                for (int64_t tap = 0; tap < taps; tap++) {
                    const int64_t y = i * m->stride_y - m->padding_y + tap / m->columns * m->dilation_y;
                    const int64_t z = j * m->stride_x - m->padding_x + tap % m->columns * m->dilation_x;
                    if (y >= 0 && y < m->height && z >= 0 && z < m->width) {
                        REAL *from = x + n * a->image + y * a->y + z * a->x;
                        if (a->channel == 1)
                            for (int64_t c = 0; c < m->channels; c++)
                                move(gather, from + c, matrix + c * taps + tap);
                        else
                            for (int64_t c = 0; c < m->channels; c++)
                                move(gather, from + c * a->channel, matrix + c * taps + tap);
                    } else if (gather) {
                        for (int64_t c = 0; c < m->channels; c++) matrix[c * taps + tap] = 0;
                    }
                }
}

/* One number of all windows as a row: neighbouring pixels lie side by side in both. */
INLINE void by_columns(const int gather, const Moves *m, const Apart *a, REAL *restrict x,
                       REAL *restrict matrix) {
    for (int64_t c = 0; c < m->channels; c++)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t k = 0; k < m->columns; k++) {
                const int64_t shift = k * m->dilation_x - m->padding_x;
                int64_t begin = 0, end = m->wide; /* the columns of the maps that are inside */
                while (begin < end && begin * m->stride_x + shift < 0) begin++;
                while (end > begin && (end - 1) * m->stride_x + shift >= m->width) end--;
                for (int64_t n = 0; n < m->images; n++)
                    for (int64_t i = 0; i < m->high; i++, matrix += m->wide) {
                        const int64_t y = i * m->stride_y - m->padding_y + r * m->dilation_y;
                        if (y < 0 || y >= m->height) {
                            if (gather) memset(matrix, 0, sizeof(REAL) * (size_t)m->wide);
                            continue;
                        }
                        REAL *from = x + n * a->image + c * a->channel + y * a->y + shift * a->x;
                        if (gather) {
                            for (int64_t j = 0; j < begin; j++) matrix[j] = 0;
                            for (int64_t j = end; j < m->wide; j++) matrix[j] = 0;
                        }
                        if (m->stride_x == 1 && a->x == 1)
                            for (int64_t j = begin; j < end; j++) move(gather, from + j, matrix + j);
                        else
                            for (int64_t j = begin; j < end; j++)
                                move(gather, from + j * m->stride_x * a->x, matrix + j);
                    }
            }
}

INLINE void move_all(const int gather, const Moves *m, const Apart *a, REAL *restrict x,
                     REAL *restrict matrix) {
    if (!m->by_rows)
        by_columns(gather, m, a, x, matrix);
    else if (m->rows * m->columns == 9)
        by_rows(gather, m, a, 9, x, matrix);
    else
        by_rows(gather, m, a, m->rows * m->columns, x, matrix);
}

/* The windows of x. */
void gather_windows(const Moves *m, const Apart *a, REAL *x, REAL *matrix) {
    move_all(1, m, a, x, matrix);
}

/* Adds windows up to x, which is all zeros before. */
void scatter_windows(const Moves *m, const Apart *a, REAL *x, REAL *matrix) {
    move_all(0, m, a, x, matrix);
}
