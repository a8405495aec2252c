/* Normalisation by mean and variance, with its first two derivatives, each in two passes.
 *
 * A row is what is normalised together: `segments` runs of `length` numbers, `step` apart. Its
 * numbers become y = (x - mean) r with r = 1 / sqrt(variance + eps), and then y w + b. The weights
 * are one for each number of a row (`wide`), or one for each segment.
 *
 *     back(g) = r (h - <h> - y <h y>)  with h = g w, and <> the mean over a row
 *
 * is the gradient of x. It is its own transpose; its derivative with respect to x is in `twice`.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define WIDTH 16 /* sums side by side, which a compiler turns into vectors */

typedef struct {
    int64_t rows, apart;             /* how many, and how far apart they begin */
    int64_t segments, step, length;
    int64_t wide;
    int64_t period, first, next;     /* the weight of segment s of row r: r % period * first + s * next */
    int64_t weights;                 /* how many */
} Rows;

#define EACH_SEGMENT(k)                                                                    \
    for (int64_t s = 0, k = row % n->period * n->first; s < n->segments; s++, k += n->next)

/* Runs `sums` for each number of a segment; `lane` tells which of WIDTH sums it goes into. */
#define EACH_NUMBER(sums)                                                                  \
    do {                                                                                   \
        int64_t i = 0;                                                                     \
        for (; i + WIDTH <= n->length; i += WIDTH)                                         \
            for (int64_t lane = 0; lane < WIDTH; lane++) {                                 \
                const int64_t at = i + lane;                                               \
                sums                                                                       \
            }                                                                              \
        for (int64_t lane = 0; i + lane < n->length; lane++) {                             \
            const int64_t at = i + lane;                                                   \
            sums                                                                           \
        }                                                                                  \
    } while (0)

static inline REAL all(const REAL *sums) {
    REAL total = 0;
    for (int lane = 0; lane < WIDTH; lane++) total += sums[lane];
    return total;
}

void norm_forward(const Rows *n, const REAL *restrict x, const REAL *restrict w,
                  const REAL *restrict b, double eps, REAL *restrict out,
                  REAL *restrict means, REAL *restrict rs) {
    const REAL count = (REAL)(n->segments * n->length);
    for (int64_t row = 0; row < n->rows; row++) {
        const int64_t begin = row * n->apart;
        REAL sums[WIDTH] = {0}, squares[WIDTH] = {0};
        EACH_SEGMENT(k) {
            const REAL *restrict from = x + begin + s * n->step;
            EACH_NUMBER(sums[lane] += from[at];);
        }
        const REAL mean = all(sums) / count;
        EACH_SEGMENT(k) {
            const REAL *restrict from = x + begin + s * n->step;
            EACH_NUMBER(squares[lane] += (from[at] - mean) * (from[at] - mean););
        }
        const REAL r = (REAL)(1 / sqrt((double)(all(squares) / count) + eps));
        means[row] = mean;
        rs[row] = r;
        EACH_SEGMENT(k) {
            const REAL *restrict from = x + begin + s * n->step;
            REAL *restrict to = out + begin + s * n->step;
            if (n->wide)
                EACH_NUMBER(to[at] = (from[at] - mean) * r * w[at] + b[at];);
            else
                EACH_NUMBER(to[at] = (from[at] - mean) * r * w[k] + b[k];);
        }
    }
}

void norm_back(const Rows *n, const REAL *restrict g, const REAL *restrict x,
               const REAL *restrict means, const REAL *restrict rs, const REAL *restrict w,
               REAL *restrict dx, REAL *restrict dw, REAL *restrict db) {
    const REAL count = (REAL)(n->segments * n->length);
    memset(dw, 0, n->weights * sizeof(REAL));
    memset(db, 0, n->weights * sizeof(REAL));
    for (int64_t row = 0; row < n->rows; row++) {
        const int64_t begin = row * n->apart;
        const REAL mean = means[row], r = rs[row];
        REAL h = 0, hy = 0;
        EACH_SEGMENT(k) {
            const REAL *restrict xs = x + begin + s * n->step, *restrict gs = g + begin + s * n->step;
            REAL one[WIDTH] = {0}, other[WIDTH] = {0};
            if (n->wide) {
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r; one[lane] += gs[at] * w[at];
                            other[lane] += gs[at] * w[at] * y; dw[at] += gs[at] * y;
                            db[at] += gs[at];);
                h += all(one);
                hy += all(other);
            } else {
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r; one[lane] += gs[at];
                            other[lane] += gs[at] * y;);
                const REAL gone = all(one), gy = all(other);
                h += gone * w[k];
                hy += gy * w[k];
                dw[k] += gy;
                db[k] += gone;
            }
        }
        h /= count;
        hy /= count;
        EACH_SEGMENT(k) {
            const REAL *restrict xs = x + begin + s * n->step, *restrict gs = g + begin + s * n->step;
            REAL *restrict to = dx + begin + s * n->step;
            if (n->wide)
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r;
                            to[at] = r * (gs[at] * w[at] - h - y * hy););
            else
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r;
                            to[at] = r * (gs[at] * w[k] - h - y * hy););
        }
    }
}

/* The transpose of the derivative of norm_back, applied to v, vw and vb in place of dx, dw and db.
 *
 * With S = <v h> - <v> <h> - <v y> <h y> and c = -r (v <h y> + h <v y>) + vw g,
 *     dg = w back(v) + vw y + vb,   dx = back(c) - r r S y,   dw = sum g back(v)
 * where back is here without w.
 */
void norm_twice(const Rows *n, const REAL *restrict v, const REAL *restrict vw,
                const REAL *restrict vb, const REAL *restrict g, const REAL *restrict x,
                const REAL *restrict means, const REAL *restrict rs, const REAL *restrict w,
                REAL *restrict dg, REAL *restrict dx, REAL *restrict dw) {
    const REAL count = (REAL)(n->segments * n->length);
    memset(dw, 0, n->weights * sizeof(REAL));
    for (int64_t row = 0; row < n->rows; row++) {
        const int64_t begin = row * n->apart;
        const REAL mean = means[row], r = rs[row];
        REAL v1 = 0, vy = 0, h1 = 0, hy = 0, vh = 0, e1 = 0, ey = 0; /* e = vw g */
        EACH_SEGMENT(k) {
            const int64_t from = begin + s * n->step;
            const REAL *restrict xs = x + from, *restrict gs = g + from, *restrict vs = v + from;
            REAL a[WIDTH] = {0}, b[WIDTH] = {0}, c[WIDTH] = {0}, d[WIDTH] = {0}, e[WIDTH] = {0};
            if (n->wide) {
                REAL f[WIDTH] = {0}, o[WIDTH] = {0};
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r; const REAL h = gs[at] * w[at];
                            const REAL u = vw[at] * gs[at]; a[lane] += vs[at];
                            b[lane] += vs[at] * y; c[lane] += h; d[lane] += h * y;
                            e[lane] += vs[at] * h; f[lane] += u; o[lane] += u * y;);
                h1 += all(c), hy += all(d), vh += all(e), e1 += all(f), ey += all(o);
            } else {
                EACH_NUMBER(const REAL y = (xs[at] - mean) * r; a[lane] += vs[at];
                            b[lane] += vs[at] * y; c[lane] += gs[at]; d[lane] += gs[at] * y;
                            e[lane] += vs[at] * gs[at];);
                const REAL g1 = all(c), gy = all(d);
                h1 += g1 * w[k], hy += gy * w[k], vh += all(e) * w[k];
                e1 += g1 * vw[k], ey += gy * vw[k];
            }
            v1 += all(a), vy += all(b);
        }
        v1 /= count, vy /= count, h1 /= count, hy /= count, vh /= count, e1 /= count, ey /= count;
        const REAL c1 = -r * (v1 * hy + h1 * vy) + e1, cy = -2 * r * vy * hy + ey;
        const REAL bend = r * r * (vh - v1 * h1 - vy * hy);
        EACH_SEGMENT(k) {
            const int64_t from = begin + s * n->step;
            const REAL *restrict xs = x + from, *restrict gs = g + from, *restrict vs = v + from;
            REAL *restrict to_g = dg + from, *restrict to_x = dx + from;
#define BOTH(w, vw, vb, sum)                                                               \
    EACH_NUMBER(const REAL y = (xs[at] - mean) * r; const REAL back = r * (vs[at] - v1 - y * vy); \
                const REAL c = (vw) * gs[at] - r * (vs[at] * hy + gs[at] * (w) * vy);       \
                to_g[at] = (w) * back + (vw) * y + (vb);                                   \
                to_x[at] = r * (c - c1 - y * cy) - bend * y; sum += gs[at] * back;)
            if (n->wide) {
                BOTH(w[at], vw[at], vb[at], dw[at]);
            } else {
                REAL sums[WIDTH] = {0};
                const REAL one = w[k], two = vw[k], three = vb[k];
                BOTH(one, two, three, sums[lane]);
                dw[k] += all(sums);
            }
#undef BOTH
        }
    }
}
