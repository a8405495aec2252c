/* The three maps of a convolution with a selection, in longest and in shorter vectors. */

int few_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                int64_t of_network, int64_t of_image, const REAL *w, const REAL *b, REAL *y,
                const uint8_t *index);
int few_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
               const uint8_t *index, const REAL *w, REAL *x);
int few_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                int64_t of_network, int64_t of_image, const REAL *g, const uint8_t *index, REAL *w,
                REAL *b);
int narrow_forward(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                   int64_t of_network, int64_t of_image, const REAL *w, const REAL *b, REAL *y,
                   const uint8_t *index);
int narrow_images(const Shape *s, int64_t networks, int64_t images, const REAL *g,
                  const uint8_t *index, const REAL *w, REAL *x);
int narrow_weights(const Shape *s, int64_t networks, int64_t images, const REAL *x,
                   int64_t of_network, int64_t of_image, const REAL *g, const uint8_t *index,
                   REAL *w, REAL *b);
