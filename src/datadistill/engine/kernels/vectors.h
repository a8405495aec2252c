/* What the kernels for convolutions share: vectors, the shape of a convolution, and memory.
 *
 * With NARROW, vectors are half as long as the processor's, but of 16 bytes at least.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LONGEST 64
#elif defined(__AVX__)
#define LONGEST 32
#else
#define LONGEST 16
#endif

#define SHORTER (LONGEST > 16 ? LONGEST / 2 : 16)
#ifdef NARROW
#define BYTES SHORTER
#else
#define BYTES LONGEST
#endif

#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define BEHIND (8 * LANES) /* numbers of room behind an array, which vectors may reach */
#define NOTHING 255 /* where no pixel of a pooling window is chosen */
#define ROOMS 5 /* arrays that one call needs at most */

#define WHOLE __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0))
typedef REAL vec __attribute__((vector_size(BYTES)));
typedef REAL loose __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
typedef WHOLE ints __attribute__((vector_size(BYTES)));
typedef WHOLE loose_ints __attribute__((vector_size(BYTES), aligned(sizeof(WHOLE)), may_alias));
#define INLINE static inline __attribute__((always_inline))

typedef struct {
    int64_t in, height, width;       /* channels and size of an input image */
    int64_t out, out_height, out_width;
    int64_t rows, columns;           /* of the kernel */
    int64_t padding_y, padding_x;
    int64_t pool, stride, margin;    /* size, stride and padding of the pooling windows */
    int64_t pooled_height, pooled_width;
    int64_t relu;
} Shape;

INLINE vec load(const REAL *from) { return *(const loose *)from; }
INLINE void store(REAL *to, vec value) { *(loose *)to = value; }
INLINE ints pick(ints where, ints one, ints other) { return (where & one) | (~where & other); }
typedef REAL quarter __attribute__((vector_size(16)));

/* The sum of a vector's numbers. */
INLINE REAL total(vec value) {
    union {
        vec whole;
        quarter parts[BYTES / 16];
    } split = {value};
    quarter sum = split.parts[0];
#pragma GCC unroll 4
    for (int i = 1; i < BYTES / 16; i++) sum += split.parts[i];
    REAL result = 0;
#pragma GCC unroll 4
    for (int64_t lane = 0; lane < (int64_t)(16 / sizeof(REAL)); lane++) result += sum[lane];
    return result;
}

INLINE int64_t up(int64_t size) { return (size + LANES - 1) / LANES * LANES; }

/* Memory of a thread's own that is kept from call to call: to ask the system for it takes longer
 * than many a call. */
typedef struct {
    void *memory[ROOMS];
    size_t bytes[ROOMS];
    int taken, failed;
} Rooms;

static pthread_key_t own_rooms;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *rooms) {
    for (int i = 0; i < ROOMS; i++) free(((Rooms *)rooms)->memory[i]);
    free(rooms);
}

static void make_key(void) { pthread_key_create(&own_rooms, give_back); }

/* This thread's rooms, all of them free. */
static Rooms *rooms(void) {
    pthread_once(&once, make_key);
    Rooms *own = pthread_getspecific(own_rooms);
    if (!own) {
        own = calloc(1, sizeof(Rooms));
        if (!own || pthread_setspecific(own_rooms, own)) return NULL;
    }
    own->taken = own->failed = 0;
    return own;
}

/* The next room, filled with zeros, and some behind. */
static void *room(Rooms *own, int64_t size) {
    const size_t bytes = sizeof(REAL) * (size_t)up(size) + BEHIND;
    const int i = own->taken++;
    if (own->bytes[i] < bytes) {
        free(own->memory[i]);
        own->bytes[i] = bytes;
        if (posix_memalign(&own->memory[i], BYTES, bytes)) {
            own->memory[i] = NULL;
            own->bytes[i] = 0;
            own->failed = 1;
            return NULL;
        }
    }
    return memset(own->memory[i], 0, bytes);
}
