/* Convolutions with a selection whose maps lie in the lanes of one vector: for single numbers,
 * pooling windows of 2×2 side by side, kernels of few columns, and AVX-512.
 *
 * IN_LANES(call) returns the call's result where there is one for the shape `s`.
 */

#define JOIN(one, other) one##other
#define KIND(real) JOIN(NUMBERS_, real)
#define NUMBERS_float 1

#if KIND(REAL) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#include <immintrin.h>
#define WIDE 16   /* lanes */
#define COLUMNS 7 /* of a kernel, at most: with one more, a pooling window needs 8 pixels of a row */
#define IN_LANES(call) \
    if (s->pool == 2 && s->stride == 2 && !s->margin && s->columns <= COLUMNS) return call;
#define ROWS 7 /* of a kernel, at most, for the gradient of images */
#define IN_STRIPS(call) \
    if (s->rows <= ROWS) IN_LANES(call)

int lanes_forward(const Shape *s, int64_t networks, int64_t images, const float *x,
                  int64_t of_network, int64_t of_image, const float *w, const float *b, float *y,
                  const uint8_t *index);
int lanes_weights(const Shape *s, int64_t networks, int64_t images, const float *x,
                  int64_t of_network, int64_t of_image, const float *g, const uint8_t *index,
                  float *w, float *b);
int strips_images(const Shape *s, int64_t networks, int64_t images, const float *g,
                  const uint8_t *index, const float *w, float *x);

/* The first lanes of a vector, or all. */
INLINE __mmask16 first(int64_t count) {
    return count < WIDE ? (__mmask16)((1u << count) - 1) : (__mmask16)~0u;
}

/* Which of the numbers that are there choose a pixel. */
INLINE __mmask16 chosen(const uint8_t *index, __mmask16 there) {
    const __m128i choices = _mm_maskz_loadu_epi8(there, index);
    return _mm_mask_cmpneq_epi8_mask(there, choices, _mm_set1_epi8((char)NOTHING));
}
#else
#define IN_LANES(call)
#define IN_STRIPS(call)
#endif
