/* Local response normalisation, the channels last in memory, with its first two derivatives.
 *
 *     y = x q   with s = k + a B(x x), q = s^-beta, and B the sums over neighbouring channels
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t pixels, channels;
    int64_t before, after; /* neighbours of a channel that count */
    double a, beta, k;
} Response;

#define INLINE static inline __attribute__((always_inline))

INLINE REAL power(const int quick, REAL s, REAL beta) {
    if (!quick) return (REAL)pow((double)s, -(double)beta);
    const REAL root = 1 / (sizeof(REAL) == 4 ? (REAL)sqrtf((float)s) : (REAL)sqrt((double)s));
    return root * (sizeof(REAL) == 4 ? (REAL)sqrtf((float)root) : (REAL)sqrt((double)root));
}

/* The sums of `count` neighbours; `padded` has zeros at both ends. */
INLINE void sums(int64_t channels, int64_t count, const REAL *restrict padded, REAL *restrict to) {
    for (int64_t c = 0; c < channels; c++) to[c] = padded[c];
    for (int64_t d = 1; d < count; d++)
        for (int64_t c = 0; c < channels; c++) to[c] += padded[c + d];
}

#define CHANNELS for (int64_t c = 0; c < n->channels; c++)

/* `room` has zeros around two times `channels` numbers, and as many more. */
#define BANDS(room)                                                                        \
    const int64_t count = n->before + n->after + 1;                                        \
    REAL *restrict near = (room) + n->before, *restrict far = (room) + n->channels + count + n->after; \
    REAL *restrict t = far - n->after + n->channels + count, *restrict z = t + n->channels; \
    const REAL *const of_near = near - n->before, *const of_far = far - n->after;          \
    (void)of_near, (void)of_far, (void)far, (void)near, (void)t, (void)z

INLINE void forward(const int quick, const Response *n, const REAL *restrict x, REAL *restrict y,
                    REAL *restrict s, REAL *restrict room) {
    BANDS(room);
    const REAL a = (REAL)n->a, k = (REAL)n->k, beta = (REAL)n->beta;
    for (int64_t p = 0; p < n->pixels; p++, x += n->channels, y += n->channels, s += n->channels) {
        CHANNELS near[c] = x[c] * x[c];
        sums(n->channels, count, of_near, t);
        CHANNELS {
            s[c] = k + a * t[c];
            y[c] = x[c] * power(quick, s[c], beta);
        }
    }
}

/* dx = g q - 2 beta a x z   with z = B'(g x q / s). */
INLINE void back(const int quick, const Response *n, const REAL *restrict g, const REAL *restrict x,
                 const REAL *restrict s, REAL *restrict dx, REAL *restrict room) {
    BANDS(room);
    const REAL beta = (REAL)n->beta, two = 2 * beta * (REAL)n->a;
    for (int64_t p = 0; p < n->pixels; p++) {
        CHANNELS {
            const REAL q = power(quick, s[c], beta);
            dx[c] = g[c] * q;
            far[c] = dx[c] * x[c] / s[c];
        }
        sums(n->channels, count, of_far, z);
        CHANNELS dx[c] -= two * x[c] * z[c];
        g += n->channels, x += n->channels, s += n->channels, dx += n->channels;
    }
}

/* The transpose of the derivative of `back`, applied to v in place of dx. With t = B(v x),
 *     dg = v q - 2 beta a x t q / s,
 *     dx = - 2 beta a (v z + g t q / s) + 2 a x B'(beta q / s (2 a (beta + 1) g x t / s - v g)).
 */
INLINE void twice(const int quick, const Response *n, const REAL *restrict v,
                  const REAL *restrict g, const REAL *restrict x, const REAL *restrict s,
                  REAL *restrict dg, REAL *restrict dx, REAL *restrict room) {
    BANDS(room);
    const REAL beta = (REAL)n->beta, a = (REAL)n->a, two = 2 * beta * a;
    for (int64_t p = 0; p < n->pixels; p++) {
        CHANNELS {
            dg[c] = power(quick, s[c], beta);
            near[c] = v[c] * x[c];
            far[c] = g[c] * x[c] * dg[c] / s[c];
        }
        sums(n->channels, count, of_near, t);
        sums(n->channels, count, of_far, z);
        CHANNELS {
            const REAL q = dg[c], r = q / s[c];
            dg[c] = v[c] * q - two * x[c] * t[c] * r;
            dx[c] = -two * (v[c] * z[c] + g[c] * t[c] * r);
            far[c] = beta * r * (2 * a * (beta + 1) * g[c] * x[c] * t[c] / s[c] - v[c] * g[c]);
        }
        sums(n->channels, count, of_far, z);
        CHANNELS dx[c] += 2 * a * x[c] * z[c];
        v += n->channels, g += n->channels, x += n->channels, s += n->channels;
        dg += n->channels, dx += n->channels;
    }
}

#define QUICK (n->beta == 0.75)

void response_forward(const Response *n, const REAL *x, REAL *y, REAL *s, REAL *room) {
    if (QUICK)
        forward(1, n, x, y, s, room);
    else
        forward(0, n, x, y, s, room);
}

void response_back(const Response *n, const REAL *g, const REAL *x, const REAL *s, REAL *dx,
                   REAL *room) {
    if (QUICK)
        back(1, n, g, x, s, dx, room);
    else
        back(0, n, g, x, s, dx, room);
}

void response_twice(const Response *n, const REAL *v, const REAL *g, const REAL *x, const REAL *s,
                    REAL *dg, REAL *dx, REAL *room) {
    if (QUICK)
        twice(1, n, v, g, x, s, dg, dx, room);
    else
        twice(0, n, v, g, x, s, dg, dx, room);
}
