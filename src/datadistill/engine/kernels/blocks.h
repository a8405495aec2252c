/* Vectors of neighbouring channels, and how many sums of them the registers hold. */

#pragma once

#include <stdint.h>

#if defined(__AVX512F__)
#define BYTES 64
#define VECTORS 4
#elif defined(__AVX__)
#define BYTES 32
#define VECTORS 2
#else
#define BYTES 16
#define VECTORS 2
#endif
#define ROWS 6 /* of VECTORS vectors each */

#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

typedef REAL Vector __attribute__((vector_size(BYTES)));
typedef REAL Anywhere __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));

INLINE Vector load(const REAL *from) { return *(const Anywhere *)from; }
INLINE void store(REAL *to, Vector value) { *(Anywhere *)to = value; }
