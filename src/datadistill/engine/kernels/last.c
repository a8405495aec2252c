/* Normalisation of images whose channels lie last in memory, and means over their windows.
 *
 * As in normalisation.c, with sums for all channels side by side. A block is what is normalised
 * together: the pixels of an image (group normalisation) or of all (batch normalisation). Its
 * channels are normalised in groups.
 *
 * Compile with -DREAL=float or -DREAL=double.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t blocks, pixels, channels, groups;
} Blocks;

#define CHANNELS for (int64_t c = 0; c < n->channels; c++)
#define BLOCKS                                                                             \
    for (int64_t block = 0, from = 0, row = 0; block < n->blocks;                          \
         block++, from += n->pixels * n->channels, row += n->groups)
#define PIXELS for (int64_t p = 0, at = from; p < n->pixels; p++, at += n->channels)
#define GROUPS for (int64_t group = 0, each = n->channels / n->groups; group < n->groups; group++)
#define MEMBERS for (int64_t c = group * each; c < (group + 1) * each; c++)

static void clear(REAL *sums, int64_t count) { memset(sums, 0, sizeof(REAL) * (size_t)count); }

/* `room` is 2 times `channels`. */
void last_forward(const Blocks *n, const REAL *restrict x, const REAL *restrict w,
                  const REAL *restrict b, double eps, REAL *restrict out, REAL *restrict means,
                  REAL *restrict rs, REAL *restrict room) {
    REAL *restrict sums = room, *restrict more = room + n->channels;
    const REAL count = (REAL)(n->pixels * (n->channels / n->groups));
    BLOCKS {
        clear(sums, n->channels);
        PIXELS CHANNELS sums[c] += x[at + c];
        GROUPS {
            REAL total = 0;
            MEMBERS total += sums[c];
            means[row + group] = total / count;
            MEMBERS sums[c] = means[row + group];
        }
        clear(more, n->channels);
        PIXELS CHANNELS more[c] += (x[at + c] - sums[c]) * (x[at + c] - sums[c]);
        GROUPS {
            REAL total = 0;
            MEMBERS total += more[c];
            const REAL r = (REAL)(1 / sqrt((double)(total / count) + eps));
            rs[row + group] = r;
            MEMBERS more[c] = r * w[c];
        }
        PIXELS CHANNELS out[at + c] = (x[at + c] - sums[c]) * more[c] + b[c];
    }
}

/* `room` is 6 times `channels`. */
void last_back(const Blocks *n, const REAL *restrict g, const REAL *restrict x,
               const REAL *restrict means, const REAL *restrict rs, const REAL *restrict w,
               REAL *restrict dx, REAL *restrict dw, REAL *restrict db, REAL *restrict room) {
    REAL *restrict mean = room, *restrict r = mean + n->channels, *restrict one = r + n->channels,
                   *restrict other = one + n->channels, *restrict h = other + n->channels,
                   *restrict hy = h + n->channels;
    const REAL count = (REAL)(n->pixels * (n->channels / n->groups));
    clear(dw, n->channels);
    clear(db, n->channels);
    BLOCKS {
        GROUPS MEMBERS {
            mean[c] = means[row + group];
            r[c] = rs[row + group];
        }
        clear(one, 2 * n->channels);
        PIXELS CHANNELS {
            one[c] += g[at + c];
            other[c] += g[at + c] * ((x[at + c] - mean[c]) * r[c]);
        }
        CHANNELS {
            dw[c] += other[c];
            db[c] += one[c];
        }
        GROUPS {
            REAL of_h = 0, of_hy = 0;
            MEMBERS {
                of_h += one[c] * w[c];
                of_hy += other[c] * w[c];
            }
            MEMBERS {
                h[c] = of_h / count;
                hy[c] = of_hy / count;
            }
        }
        PIXELS CHANNELS {
            const REAL y = (x[at + c] - mean[c]) * r[c];
            dx[at + c] = r[c] * (g[at + c] * w[c] - h[c] - y * hy[c]);
        }
    }
}

/* See norm_twice. `room` is 13 times `channels`. */
void last_twice(const Blocks *n, const REAL *restrict v, const REAL *restrict vw,
                const REAL *restrict vb, const REAL *restrict g, const REAL *restrict x,
                const REAL *restrict means, const REAL *restrict rs, const REAL *restrict w,
                REAL *restrict dg, REAL *restrict dx, REAL *restrict dw, REAL *restrict room) {
    REAL *restrict mean = room, *restrict r = mean + n->channels, *restrict s1 = r + n->channels,
                   *restrict sy = s1 + n->channels, *restrict g1 = sy + n->channels,
                   *restrict gy = g1 + n->channels, *restrict sg = gy + n->channels,
                   *restrict v1 = sg + n->channels, *restrict vy = v1 + n->channels,
                   *restrict hy = vy + n->channels, *restrict c1 = hy + n->channels,
                   *restrict cy = c1 + n->channels, *restrict bend = cy + n->channels;
    const REAL count = (REAL)(n->pixels * (n->channels / n->groups));
    clear(dw, n->channels);
    BLOCKS {
        GROUPS MEMBERS {
            mean[c] = means[row + group];
            r[c] = rs[row + group];
        }
        clear(s1, 5 * n->channels);
        PIXELS CHANNELS {
            const REAL y = (x[at + c] - mean[c]) * r[c];
            s1[c] += v[at + c];
            sy[c] += v[at + c] * y;
            g1[c] += g[at + c];
            gy[c] += g[at + c] * y;
            sg[c] += v[at + c] * g[at + c];
        }
        GROUPS {
            REAL a = 0, b = 0, h = 0, hs = 0, vh = 0, e1 = 0, ey = 0;
            MEMBERS {
                a += s1[c], b += sy[c], h += g1[c] * w[c], hs += gy[c] * w[c];
                vh += sg[c] * w[c], e1 += g1[c] * vw[c], ey += gy[c] * vw[c];
            }
            a /= count, b /= count, h /= count, hs /= count, vh /= count, e1 /= count, ey /= count;
            const REAL own = rs[row + group];
            MEMBERS {
                v1[c] = a, vy[c] = b, hy[c] = hs;
                c1[c] = -own * (a * hs + h * b) + e1;
                cy[c] = -2 * own * b * hs + ey;
                bend[c] = own * own * (vh - a * h - b * hs);
            }
        }
        clear(s1, n->channels);
        PIXELS CHANNELS {
            const REAL y = (x[at + c] - mean[c]) * r[c];
            const REAL back = r[c] * (v[at + c] - v1[c] - y * vy[c]);
            const REAL bent = vw[c] * g[at + c] - r[c] * (v[at + c] * hy[c] + g[at + c] * w[c] * vy[c]);
            dg[at + c] = w[c] * back + vw[c] * y + vb[c];
            dx[at + c] = r[c] * (bent - c1[c] - y * cy[c]) - bend[c] * y;
            s1[c] += g[at + c] * back;
        }
        CHANNELS dw[c] += s1[c];
    }
}

typedef struct {
    int64_t images, channels, height, width; /* what is left over at their ends has no window */
    int64_t rows, columns;                   /* of a window */
} Windows;

void last_average(const Windows *n, const REAL *restrict x, REAL *restrict y) {
    const int64_t high = n->height / n->rows, wide = n->width / n->columns;
    const REAL scale = 1 / (REAL)(n->rows * n->columns);
    for (int64_t image = 0; image < n->images; image++, x += n->height * n->width * n->channels)
        for (int64_t i = 0; i < high; i++)
            for (int64_t j = 0; j < wide; j++, y += n->channels) {
                clear(y, n->channels);
                for (int64_t r = 0; r < n->rows; r++)
                    for (int64_t k = 0; k < n->columns; k++) {
                        const REAL *restrict from =
                            x + ((i * n->rows + r) * n->width + j * n->columns + k) * n->channels;
                        CHANNELS y[c] += from[c];
                    }
                CHANNELS y[c] *= scale;
            }
}

void last_spread_out(const Windows *n, const REAL *restrict g, REAL *restrict x) {
    const int64_t high = n->height / n->rows, wide = n->width / n->columns;
    const REAL scale = 1 / (REAL)(n->rows * n->columns);
    if (high * n->rows != n->height || wide * n->columns != n->width)
        clear(x, n->images * n->height * n->width * n->channels);
    for (int64_t image = 0; image < n->images; image++, x += n->height * n->width * n->channels)
        for (int64_t i = 0; i < high; i++)
            for (int64_t j = 0; j < wide; j++, g += n->channels)
                for (int64_t r = 0; r < n->rows; r++)
                    for (int64_t k = 0; k < n->columns; k++) {
                        REAL *restrict to =
                            x + ((i * n->rows + r) * n->width + j * n->columns + k) * n->channels;
                        CHANNELS to[c] = scale * g[c];
                    }
}
