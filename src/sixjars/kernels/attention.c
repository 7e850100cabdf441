/* A step of additive attention and the softmax cross entropy, forwards and back; the log softmax.

   Dims: B batch, R rows (B, or those of search), S source positions, A attention features,
         D source features, V vocabulary. `steps.py` and `output_loss.py` have the equations. */

#include "kernels.h"

/* Additive attention. With g = 1 / (1 + e^2q e^2k), tanh(q + k) = 1 - 2g, 1 - tanh² = 4 (g - g²),
   and e = -2 V_attᵀ g without a term that is the same for all j. Where a key is too large for that,
   g - ½ = -tanh(q + k) / 2 takes the place of g. */

typedef struct {
    /* R, R / B, S, A, D; whether keys are e^2k */
    whole threads, rows, of_each, positions, size, width, raised;
    Placed query, weights, context;
    const float *keys, *memory, *score;
    const uint8_t *mask;
    float *scratch; /* (R, A) */
} Attend;

/* The query as a factor or a summand, for all positions. */
static inline void opened(whole A, const float *query, whole raised, numbers q)
{
    if (raised)
#pragma omp simd
        for (whole a = 0; a < A; a++) {
            float kept = query[a] < -42.0f ? -42.0f : query[a] > 42.0f ? 42.0f : query[a];
            q[a] = exponential(2.0f * kept);
        }
    else
        memcpy(q, query, (size_t)A * sizeof *q);
}

static inline float scored(whole A, const float *q, const float *key, const float *score,
                           whole raised)
{
    float total = 0.0f;
    if (raised)
#pragma omp simd reduction(+ : total)
        for (whole a = 0; a < A; a++) total += score[a] / (1.0f + q[a] * key[a]);
    else
#pragma omp simd reduction(+ : total)
        for (whole a = 0; a < A; a++) total -= 0.5f * score[a] * tangent(q[a] + key[a]);
    return -2.0f * total;
}

/* Scores to weights: a softmax over the positions where the mask holds, zero elsewhere. */
static inline void normalized(whole S, const uint8_t *mask, numbers weights)
{
    float highest = -INFINITY, total = 0.0f;
    for (whole s = 0; s < S; s++) highest = mask[s] && weights[s] > highest ? weights[s] : highest;
    for (whole s = 0; s < S; s++) {
        weights[s] = mask[s] ? exponential(weights[s] - highest) : 0.0f;
        total += weights[s];
    }
    float share = total == 0.0f ? 0.0f : 1.0f / total;
    for (whole s = 0; s < S; s++) weights[s] *= share;
}

static void attend_rows(const void *data, whole begin, whole end)
{
    const Attend *one = data;
    whole S = one->positions, A = one->size, D = one->width;
    for (whole row = begin; row < end; row++) {
        whole source = row / one->of_each;
        const float *keys = one->keys + source * S * A, *memory = one->memory + source * S * D;
        const uint8_t *mask = one->mask + source * S;
        float *q = one->scratch + row * A, *weights = at(&one->weights, row, one->rows);
        numbers context = at(&one->context, row, one->rows);
        opened(A, at(&one->query, row, one->rows), one->raised, q);
        for (whole s = 0; s < S; s++)
            weights[s] = mask[s] ? scored(A, q, keys + s * A, one->score, one->raised) : 0.0f;
        normalized(S, mask, weights);
        memset(context, 0, (size_t)D * sizeof *context);
        for (whole s = 0; s < S; s++) {
            const float *h = memory + s * D;
            float weight = weights[s];
            if (!mask[s]) continue;
            for (whole d = 0; d < D; d++) context[d] += weight * h[d];
        }
    }
}

void attend(const Attend *one)
{
    spread(attend_rows, one, one->rows, one->positions * one->size, one->threads);
}

typedef struct {
    whole threads, rows, positions, size, width, raised;
    Placed query, weights, d_context, d_weights, d_query;
    const float *keys, *memory, *score;
    const uint8_t *mask;
    /* (B, A), (B, S), and sums over steps (B, S, A) and (B, A) */
    float *scratch, *d_scores, *d_keys, *d_score;
} AttendBack;

/* δe of a row, from δc and other gradients of the weights. */
static inline void scores_back(
    whole S, whole D, const float *memory, const uint8_t *mask, const float *weights,
    const float *d_context,
    const float *d_weights, numbers d_scores)
{
    float mean = 0.0f;
    for (whole s = 0; s < S; s++) {
        const float *h = memory + s * D;
        float total = 0.0f;
        if (mask[s]) {
#pragma omp simd reduction(+ : total)
            for (whole d = 0; d < D; d++) total += h[d] * d_context[d];
        }
        d_scores[s] = total + plus(d_weights, s);
        mean += weights[s] * d_scores[s];
    }
    for (whole s = 0; s < S; s++) d_scores[s] = weights[s] * (d_scores[s] - mean);
}

/* Add the gradients of a position to δq, δV_att and δk, each up to a factor that all share. */
static inline void position_back(
    whole A, float d, const float *q, const float *key, whole raised,
    numbers d_query, numbers d_key, numbers d_score)
{
    if (raised)
#pragma omp simd
        for (whole a = 0; a < A; a++) {
            float g = 1.0f / (1.0f + q[a] * key[a]), own = d * g, slope = own - own * g;
            d_score[a] += own;
            d_key[a] += slope;
            d_query[a] += slope;
        }
    else
#pragma omp simd
        for (whole a = 0; a < A; a++) {
            float tanh = tangent(q[a] + key[a]), slope = 0.25f * d * (1.0f - tanh * tanh);
            d_score[a] -= 0.5f * d * tanh;
            d_key[a] += slope;
            d_query[a] += slope;
        }
}

static void attend_rows_back(const void *data, whole begin, whole end)
{
    const AttendBack *one = data;
    whole S = one->positions, A = one->size, D = one->width;
    for (whole row = begin; row < end; row++) {
        const float *keys = one->keys + row * S * A, *score = one->score;
        float *q = one->scratch + row * A, *d_scores = one->d_scores + row * S;
        float *d_query = at(&one->d_query, row, one->rows);
        opened(A, at(&one->query, row, one->rows), one->raised, q);
        scores_back(
            S, D, one->memory + row * S * D, one->mask + row * S, at(&one->weights, row, one->rows),
            at(&one->d_context, row, one->rows), at(&one->d_weights, row, one->rows), d_scores);
        memset(d_query, 0, (size_t)A * sizeof *d_query);
        for (whole s = 0; s < S; s++)
            if (d_scores[s] != 0.0f)
                position_back(
                    A, d_scores[s], q, keys + s * A, one->raised, d_query,
                    one->d_keys + (row * S + s) * A,
                    one->d_score + row * A);
        for (whole a = 0; a < A; a++) d_query[a] *= 4.0f * score[a];
    }
}

void attend_back(const AttendBack *one)
{
    spread(attend_rows_back, one, one->rows, one->positions * one->size, one->threads);
}

/* Softmax cross entropy: the smoothed loss of each row times its factor, and the plain one; δz
   overwrites z. */

typedef struct {
    whole threads, rows, vocabulary;
    double smoothing;
    float *logits; /* (R, V) */
    const whole *truth;
    const float *factor;
    float *loss, *plain;
} Entropy;

static void entropy_rows(const void *data, whole begin, whole end)
{
    const Entropy *one = data;
    whole V = one->vocabulary;
    float smoothing = (float)one->smoothing;
    for (whole row = begin; row < end; row++) {
        float *z = one->logits + row * V, f = one->factor[row];
        float highest = -INFINITY, total = 0.0f, sum = 0.0f;
        whole truth = one->truth[row];
        float own = z[truth];
#pragma omp simd reduction(max : highest) reduction(+ : sum)
        for (whole v = 0; v < V; v++) {
            highest = z[v] > highest ? z[v] : highest;
            sum += z[v];
        }
#pragma omp simd reduction(+ : total)
        for (whole v = 0; v < V; v++) {
            float share = exponential(z[v] - highest);
            z[v] = share;
            total += share;
        }
        float most = highest + logf(total), times = f / total, less = f * smoothing / (float)V;
        one->plain[row] = most - own;
        /* The sum may be infinite. */
        float spread = smoothing == 0.0f ? 0.0f : smoothing * (most - sum / (float)V);
        one->loss[row] = f * ((1.0f - smoothing) * (most - own) + spread);
        for (whole v = 0; v < V; v++) z[v] = z[v] * times - less;
        z[truth] -= f * (1.0f - smoothing);
    }
}

void entropy(const Entropy *one)
{
    spread(entropy_rows, one, one->rows, one->vocabulary, one->threads);
}

/* Log softmax of each row, in its place. */

typedef struct {
    whole threads, rows, vocabulary;
    float *logits; /* (R, V) */
} LogSoftmax;

static void log_softmax_rows(const void *data, whole begin, whole end)
{
    const LogSoftmax *one = data;
    whole V = one->vocabulary;
    for (whole row = begin; row < end; row++) {
        float *z = one->logits + row * V, highest = -INFINITY, total = 0.0f;
#pragma omp simd reduction(max : highest)
        for (whole v = 0; v < V; v++) highest = z[v] > highest ? z[v] : highest;
#pragma omp simd reduction(+ : total)
        for (whole v = 0; v < V; v++) total += exponential(z[v] - highest);
        float most = logf(total);
        for (whole v = 0; v < V; v++) z[v] = (z[v] - highest) - most;
    }
}

void log_softmax(const LogSoftmax *one)
{
    spread(log_softmax_rows, one, one->rows, one->vocabulary, one->threads);
}
