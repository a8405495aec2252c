/* The gradient of the mean cross-entropy of layers one after the other, and its products with some
 * u, in one call each: convolutions with max-pooling and ReLU, and linear layers.
 *
 * Products are made by a tangent along u, forwards and backwards: with δ the gradient of a layer's
 * result, and a dot for the tangent of anything, the gradient of W is δᵀx, so ⟨u, ∇ℓ⟩ has the
 * gradient δ̇ᵀx + δᵀẋ.
 */

#include "vectors.h"
#include "rows.h"

int forward(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *w, const REAL *b, REAL *y, uint8_t *index, int choose);
int images(const Shape *s, int64_t networks, int64_t count, const REAL *g, const uint8_t *index,
           const REAL *w, REAL *x);
int weights(const Shape *s, int64_t networks, int64_t images, const REAL *x, int64_t of_network,
            int64_t of_image, const REAL *g, const uint8_t *index, REAL *w, REAL *b);

#define NARROW_MAPS 1024 /* at most, of a convolution */

typedef struct {
    const Shape *shape; /* of a convolution; NULL for a linear layer */
    int64_t in, out;    /* numbers of an example */
    int64_t pools;      /* whether a convolution selects pixels */
    int64_t relu;       /* whether ReLU follows that the layer does not contain */
} Layer;

typedef struct {
    int64_t layers, networks, images;
    const Layer *layer;
    const REAL *x; /* inputs, of which only networks and images may lie anywhere */
    int64_t of_network, of_image;
} Batch;

/* What belongs to one network: an address for each layer. */
typedef struct {
    REAL **w, **b;
} Weights;

INLINE int64_t size_of(const Layer *l) {
    const Shape *s = l->shape;
    return s ? s->out * s->in * s->rows * s->columns : l->in * l->out;
}

INLINE int64_t biases_of(const Layer *l) { return l->shape ? l->shape->out : l->out; }

/* Where a layer's numbers lie among those that are kept of all layers: results of layer 0 of all
 * networks and images, then of layer 1, … */
static int64_t before(const Batch *c, int64_t layer) {
    int64_t numbers = 0;
    for (int64_t l = 0; l < layer; l++) numbers += c->layer[l].out;
    return numbers * c->networks * c->images;
}

/* The place of network j in weights, biases or their gradients; NULL where there are none. */
INLINE REAL *place(REAL **trees, int64_t l, int64_t j, int64_t size) {
    return trees[l] ? trees[l] + j * size : NULL;
}

static const REAL zeros[NARROW_MAPS];

#define OF(kept, l, j) ((kept) + before(c, l) + (j) * c->images * c->layer[l].out)

static void clear(REAL *numbers, int64_t count) {
    memset(numbers, 0, sizeof(REAL) * (size_t)count);
}

static void add_to(REAL *sums, const REAL *more, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] += more[i];
}

/* The gradient of ReLU's input, where y is its result. */
static void masked(REAL *g, const REAL *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) g[i] = y[i] > 0 ? g[i] : 0;
}

/* Images one after the other, of a linear layer's input: it may read them as rows. */
static const REAL *rows_of(const Batch *c, int64_t l, int64_t j, const REAL *kept, REAL *room) {
    if (l) return OF(kept, l - 1, j);
    const REAL *x = c->x + j * c->of_network;
    const int64_t in = c->layer[0].in;
    if (c->of_image == in) return x;
    for (int64_t n = 0; n < c->images; n++)
        memcpy(room + n * in, x + n * c->of_image, sizeof(REAL) * (size_t)in);
    return room;
}

/* y = w·x + b, or its sum with what is there. */
static int apply(const Batch *c, int64_t l, const REAL *x, int64_t of_image, const REAL *w,
                 const REAL *b, REAL *y, uint8_t *index, int choose) {
    const Layer *own = c->layer + l;
    if (own->shape)
        return forward(own->shape, 1, c->images, x, 0, of_image, w, b ? b : zeros, y, index,
                       choose || !index);
    for (int64_t n = 0; n < c->images; n++) {
        if (b) memcpy(y + n * own->out, b, sizeof(REAL) * (size_t)own->out);
        else clear(y + n * own->out, own->out);
    }
    add_forward(c->images, own->in, own->out, x, w, y);
    return 0;
}

/* The gradient of a layer's inputs. */
static int inputs(const Batch *c, int64_t l, const REAL *g, const uint8_t *index, const REAL *w,
                  REAL *x) {
    const Layer *own = c->layer + l;
    if (own->shape) return images(own->shape, 1, c->images, g, index, w, x);
    clear(x, c->images * own->in);
    add_sums(c->images, own->out, own->in, g, own->out, 1, w, x);
    return 0;
}

/* Adds the gradients of a layer's weights and biases, where they are wanted; `room` is for those
 * of one convolution. */
static int add_weights(const Batch *c, int64_t l, const REAL *x, int64_t of_image, const REAL *g,
                       const uint8_t *index, REAL *w, REAL *b, REAL *room) {
    const Layer *own = c->layer + l;
    const int64_t count = size_of(own);
    if (!w && !b) return 0;
    if (own->shape) {
        if (weights(own->shape, 1, c->images, x, 0, of_image, g, index, room, room + count))
            return 1;
        if (w) add_to(w, room, count);
        if (b) add_to(b, room + count, biases_of(own));
        return 0;
    }
    if (w) add_sums(own->out, c->images, own->in, g, 1, own->out, x, w);
    for (int64_t n = 0; b && n < c->images; n++) add_to(b, g + n * own->out, own->out);
    return 0;
}

static int64_t most(const Batch *c, int inputs_too) {
    int64_t most = 1;
    for (int64_t l = 0; l < c->layers; l++) {
        const Layer *own = c->layer + l;
        const int64_t numbers[] = {own->in * c->images * inputs_too, own->out * c->images,
                                   own->shape ? size_of(own) + biases_of(own) : 0};
        for (int i = 0; i < 3; i++) most = numbers[i] > most ? numbers[i] : most;
    }
    return most;
}

/* Results of all layers, and which pixels were selected. */
int chain_forward(const Batch *c, REAL **w, REAL **b, REAL *kept, uint8_t *index) {
    Rooms *own = rooms();
    if (!own) return 1;
    REAL *room_for_rows = room(own, c->images * c->layer[0].in);
    for (int64_t j = 0; !own->failed && j < c->networks; j++)
        for (int64_t l = 0; l < c->layers; l++) {
            const Layer *layer = c->layer + l;
            const REAL *x = l ? OF(kept, l - 1, j) : c->x + j * c->of_network;
            if (!layer->shape) x = rows_of(c, l, j, kept, room_for_rows);
            REAL *y = OF(kept, l, j);
            if (apply(c, l, x, l ? layer->in : c->of_image, w[l] + j * size_of(layer),
                      place(b, l, j, biases_of(layer)), y, layer->pools ? OF(index, l, j) : NULL, 1))
                return 1;
            if (layer->relu)
                for (int64_t i = 0; i < c->images * layer->out; i++) y[i] = y[i] > 0 ? y[i] : 0;
        }
    return own->failed;
}

/* Adds the gradients of weights and biases, with δ of the last layer in its place among `deltas`;
 * those of the others are left there. */
int chain_back(const Batch *c, REAL **w, REAL *kept, uint8_t *index, REAL *deltas, REAL **gw,
               REAL **gb) {
    Rooms *own = rooms();
    if (!own) return 1;
    REAL *gradients = room(own, most(c, 0)), *for_rows = room(own, c->images * c->layer[0].in);
    for (int64_t j = 0; !own->failed && j < c->networks; j++)
        for (int64_t l = c->layers - 1; l >= 0; l--) {
            const Layer *layer = c->layer + l;
            const int64_t size = size_of(layer);
            const REAL *x = l ? OF(kept, l - 1, j) : c->x + j * c->of_network;
            if (!layer->shape) x = rows_of(c, l, j, kept, for_rows);
            REAL *g = OF(deltas, l, j);
            const uint8_t *chosen = layer->pools ? OF(index, l, j) : NULL;
            if (layer->relu) masked(g, OF(kept, l, j), c->images * layer->out);
            if (add_weights(c, l, x, l ? layer->in : c->of_image, g, chosen, place(gw, l, j, size),
                            place(gb, l, j, biases_of(layer)), gradients) ||
                (l && inputs(c, l, g, chosen, w[l] + j * size, OF(deltas, l - 1, j))))
                return 1;
        }
    return own->failed;
}

/* Labels (networks, images, classes), or (networks, images) of class indices. */
typedef struct {
    const REAL *soft;
    const int64_t *hard;
} Labels;

INLINE REAL label(const Labels *y, int64_t n, int64_t classes, int64_t k) {
    return y->soft ? y->soft[n * classes + k] : y->hard[n] == k;
}

INLINE REAL exponential(REAL x) { return sizeof(REAL) == 4 ? __builtin_expf(x) : __builtin_exp(x); }

static void softmax(const REAL *z, int64_t classes, REAL *p) {
    REAL largest = z[0], sum = 0;
    for (int64_t k = 1; k < classes; k++) largest = z[k] > largest ? z[k] : largest;
    for (int64_t k = 0; k < classes; k++) sum += p[k] = exponential(z[k] - largest);
    for (int64_t k = 0; k < classes; k++) p[k] /= sum;
}

INLINE REAL of_all(const Labels *y, int64_t n, int64_t classes) {
    REAL sum = 0;
    for (int64_t k = 0; y->soft && k < classes; k++) sum += label(y, n, classes, k);
    return y->soft ? sum : 1;
}

/* The gradient of the mean cross-entropy: δ = (p Σy − y) / N. */
static void cross_entropy(const Batch *c, const REAL *z, const Labels *y, REAL *delta) {
    const int64_t classes = c->layer[c->layers - 1].out;
    for (int64_t n = 0; n < c->networks * c->images; n++, z += classes, delta += classes) {
        const REAL sum = of_all(y, n, classes);
        softmax(z, classes, delta);
        for (int64_t k = 0; k < classes; k++)
            delta[k] = (sum * delta[k] - label(y, n, classes, k)) / (REAL)c->images;
    }
}

/* Turns the tangent ż of one network's logits z into that of δ: Σy (diag p − ppᵀ) ż / N. The labels
 * get the gradient of ⟨δ, ż⟩: (p·ż − ż) / N. */
static void cross_entropy_tangent(const Batch *c, int64_t j, const REAL *z, const Labels *y,
                                  REAL *tangent, REAL *of_labels, REAL *p) {
    const int64_t classes = c->layer[c->layers - 1].out;
    for (int64_t i = 0; i < c->images; i++, z += classes, tangent += classes) {
        const int64_t n = j * c->images + i;
        const REAL sum = of_all(y, n, classes) / (REAL)c->images;
        REAL mean = 0;
        softmax(z, classes, p);
        for (int64_t k = 0; k < classes; k++) mean += p[k] * tangent[k];
        for (int64_t k = 0; k < classes; k++) {
            if (of_labels) of_labels[n * classes + k] = (mean - tangent[k]) / (REAL)c->images;
            tangent[k] = sum * p[k] * (tangent[k] - mean);
        }
    }
}

/* The gradient of the mean cross-entropy, added to what is there. */
int chain_gradient(const Batch *c, REAL **w, REAL **b, const Labels *y, REAL *kept, uint8_t *index,
                   REAL *deltas, REAL **gw, REAL **gb) {
    if (chain_forward(c, w, b, kept, index)) return 1;
    cross_entropy(c, OF(kept, c->layers - 1, 0), y, OF(deltas, c->layers - 1, 0));
    return chain_back(c, w, kept, index, deltas, gw, gb);
}

/* One network's tangents of the results of all layers, along u. */
static int tangents(const Batch *c, int64_t j, REAL **w, REAL **u, REAL **ub, REAL *kept,
                    uint8_t *index, REAL *tangent, REAL *room, REAL *for_rows) {
    const REAL *input_tangent = NULL;
    for (int64_t l = 0; l < c->layers; l++) {
        const Layer *layer = c->layer + l;
        const int64_t size = size_of(layer), count = c->images * layer->out;
        const REAL *x = l ? OF(kept, l - 1, j) : c->x + j * c->of_network;
        if (!layer->shape) x = rows_of(c, l, j, kept, for_rows);
        uint8_t *chosen = layer->pools ? OF(index, l, j) : NULL;
        if (apply(c, l, x, l ? layer->in : c->of_image, u[l] + j * size,
                  place(ub, l, j, biases_of(layer)), tangent, chosen, 0))
            return 1;
        if (l && layer->shape) {
            if (apply(c, l, input_tangent, layer->in, w[l] + j * size, NULL, room, chosen, 0))
                return 1;
            add_to(tangent, room, count);
        } else if (l) {
            add_forward(c->images, layer->in, layer->out, input_tangent, w[l] + j * size, tangent);
        }
        if (layer->relu) masked(tangent, OF(kept, l, j), count);
        input_tangent = tangent;
        tangent += count;
    }
    return 0;
}

/* The gradients of ⟨u, ∇ℓ⟩, added to what is there but for those of inputs and labels. */
int chain_products(const Batch *c, REAL **w, const Labels *y, REAL *kept, uint8_t *index,
                   REAL *deltas, REAL **u, REAL **ub, REAL **hw, REAL **hb, REAL *of_inputs,
                   REAL *of_labels) {
    Rooms *own = rooms();
    if (!own) return 1;
    const int64_t largest = most(c, 1), last = c->layers - 1;
    const int64_t all = before(c, c->layers) / c->networks;
    REAL *tangent = room(own, all + c->layer[last].out), *gradient = room(own, 2 * largest);
    REAL *other = room(own, 2 * largest), *for_rows = room(own, c->images * c->layer[0].in);
    for (int64_t j = 0; !own->failed && j < c->networks; j++) {
        if (tangents(c, j, w, u, ub, kept, index, tangent, other, for_rows)) return 1;
        REAL *t = tangent + all - c->images * c->layer[last].out;
        cross_entropy_tangent(c, j, OF(kept, last, j), y, t, of_labels, tangent + all);
        REAL *moving = t; /* the tangent of δ */
        for (int64_t l = last; l >= 0; l--) {
            const Layer *layer = c->layer + l;
            const int64_t size = size_of(layer), in = c->images * layer->in;
            const REAL *x = l ? OF(kept, l - 1, j) : c->x + j * c->of_network;
            const int64_t of_image = l ? layer->in : c->of_image;
            if (!layer->shape) x = rows_of(c, l, j, kept, for_rows);
            const uint8_t *chosen = layer->pools ? OF(index, l, j) : NULL;
            const REAL *g = OF(deltas, l, j);
            if (layer->relu) masked(moving, OF(kept, l, j), c->images * layer->out);
            if (add_weights(c, l, x, of_image, moving, chosen, place(hw, l, j, size),
                            place(hb, l, j, biases_of(layer)), other))
                return 1;
            if (l) {
                t -= in;
                if (add_weights(c, l, t, layer->in, g, chosen, place(hw, l, j, size), NULL, other))
                    return 1;
            }
            REAL *next = !l ? of_inputs + j * in : gradient + (moving == gradient ? largest : 0);
            if (inputs(c, l, moving, chosen, w[l] + j * size, next)) return 1;
            if (layer->shape) {
                if (inputs(c, l, g, chosen, u[l] + j * size, other)) return 1;
                add_to(next, other, in);
            } else {
                add_sums(c->images, layer->out, layer->in, g, layer->out, 1, u[l] + j * size, next);
            }
            moving = next;
        }
    }
    return own->failed;
}
