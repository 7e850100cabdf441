/* One step of a GRU and of an LSTM, forwards and back.

   Dims: K recurrences, B batch, R rows (K times B), H state features, G gate features (3H or 4H).

   `steps.py` has the equations. The given and the recurrent have one summand or two, a gradient of
   the state up to three. */

#include "kernels.h"

/* GRU. `saved` has o, i, n and r_n of each row, (R, 4H); without a backward pass it is nothing, and
   there is one summand each. */

typedef struct {
    whole threads, rows, batch, size;
    Placed given, more, recurrent, bias, hidden, after;
    float *saved;
} Gru;

static inline __attribute__((always_inline)) void gru_row(
    whole H, const float *given, const float *more, const float *recurrent, const float *bias,
    const float *before,
    numbers after, numbers saved)
{
#pragma omp simd
    for (whole i = 0; i < H; i++) {
        whole u = H + i, c = 2 * H + i;
        float reset = sigmoid(given[i] + plus(more, i) + (recurrent[i] + plus(bias, i)));
        float update = sigmoid(given[u] + plus(more, u) + (recurrent[u] + plus(bias, u)));
        float passed = recurrent[c] + plus(bias, c);
        float fresh = tangent(given[c] + plus(more, c) + reset * passed);
        after[i] = fresh + update * (before[i] - fresh);
        if (saved) {
            saved[i] = reset;
            saved[u] = update;
            saved[c] = fresh;
            saved[3 * H + i] = passed;
        }
    }
}

static void gru_rows(const void *data, whole begin, whole end)
{
    const Gru *one = data;
    for (whole row = begin; row < end; row++) {
        whole batch = one->batch, H = one->size;
        const float *given = at(&one->given, row, batch), *more = at(&one->more, row, batch);
        const float *recurrent = at(&one->recurrent, row, batch);
        const float *bias = at(&one->bias, row, batch);
        const float *before = at(&one->hidden, row, batch);
        float *after = at(&one->after, row, batch), *saved = one->saved + row * 4 * H;
        if (!one->saved) gru_row(H, given, 0, recurrent, 0, before, after, 0);
        else if (more && bias) gru_row(H, given, more, recurrent, bias, before, after, saved);
        else if (more) gru_row(H, given, more, recurrent, 0, before, after, saved);
        else if (bias) gru_row(H, given, 0, recurrent, bias, before, after, saved);
        else gru_row(H, given, 0, recurrent, 0, before, after, saved);
    }
}

void gru(const Gru *one) { spread(gru_rows, one, one->rows, 4 * one->size, one->threads); }

typedef struct {
    whole threads, rows, batch, size;
    Placed output, passed, kept, hidden, d_given, d_recurrent;
    const float *saved;
    float *d_hidden;
} GruBack;

/* δh' of a row, the sum of one to three, into `total`. */
static inline void summed(whole H, const float *output, const float *passed, const float *kept,
                          numbers total)
{
    if (passed && kept)
        for (whole i = 0; i < H; i++) total[i] = output[i] + passed[i] + kept[i];
    else if (passed)
        for (whole i = 0; i < H; i++) total[i] = output[i] + passed[i];
    else
        for (whole i = 0; i < H; i++) total[i] = output[i];
}

static inline void gru_row_back(
    whole H, const float *saved, const float *before, numbers d_given, numbers d_recurrent,
    numbers d_hidden)
{
#pragma omp simd
    for (whole i = 0; i < H; i++) {
        float reset = saved[i], update = saved[H + i], fresh = saved[2 * H + i],
            passed = saved[3 * H + i];
        float d_after = d_hidden[i], kept = d_after * update;
        float d_new = (d_after - kept) * (1.0f - fresh * fresh);
        float d_reset = d_new * passed * (reset - reset * reset);
        float d_update = d_after * (before[i] - fresh) * (update - update * update);
        d_hidden[i] = kept;
        d_given[i] = d_recurrent[i] = d_reset;
        d_given[H + i] = d_recurrent[H + i] = d_update;
        d_given[2 * H + i] = d_new;
        d_recurrent[2 * H + i] = d_new * reset;
    }
}

static void gru_rows_back(const void *data, whole begin, whole end)
{
    const GruBack *one = data;
    for (whole row = begin; row < end; row++) {
        whole batch = one->batch, H = one->size;
        float *d_hidden = one->d_hidden + row * H;
        const float *passed = at(&one->passed, row, batch), *kept = at(&one->kept, row, batch);
        summed(H, at(&one->output, row, batch), passed, kept, d_hidden);
        gru_row_back(
            H, one->saved + row * 4 * H, at(&one->hidden, row, batch),
            at(&one->d_given, row, batch),
            at(&one->d_recurrent, row, batch), d_hidden);
    }
}

void gru_back(const GruBack *one)
{
    spread(gru_rows_back, one, one->rows, 2 * one->size, one->threads);
}

/* LSTM. `saved` has i, f, n, o and tanh m' of each row, (R, 5H); nothing without a gradient. */

typedef struct {
    whole threads, rows, batch, size;
    Placed given, more, recurrent, bias, memory, after;
    float *cell, *saved;
} Lstm;

static inline __attribute__((always_inline)) void lstm_row(
    whole H, const float *given, const float *more, const float *recurrent, const float *bias,
    const float *before,
    numbers after, numbers cell, numbers saved)
{
#pragma omp simd
    for (whole i = 0; i < H; i++) {
        whole f = H + i, c = 2 * H + i, o = 3 * H + i;
        float enter = sigmoid(given[i] + plus(more, i) + (recurrent[i] + plus(bias, i)));
        float forget = sigmoid(given[f] + plus(more, f) + (recurrent[f] + plus(bias, f)));
        float fresh = tangent(given[c] + plus(more, c) + (recurrent[c] + plus(bias, c)));
        float output = sigmoid(given[o] + plus(more, o) + (recurrent[o] + plus(bias, o)));
        float kept = forget * before[i] + enter * fresh, shown = tangent(kept);
        after[i] = output * shown;
        cell[i] = kept;
        if (saved) {
            saved[i] = enter;
            saved[f] = forget;
            saved[c] = fresh;
            saved[o] = output;
            saved[4 * H + i] = shown;
        }
    }
}

static void lstm_rows(const void *data, whole begin, whole end)
{
    const Lstm *one = data;
    for (whole row = begin; row < end; row++) {
        whole batch = one->batch, H = one->size;
        const float *given = at(&one->given, row, batch), *more = at(&one->more, row, batch);
        const float *recurrent = at(&one->recurrent, row, batch);
        const float *bias = at(&one->bias, row, batch);
        const float *before = at(&one->memory, row, batch);
        float *after = at(&one->after, row, batch), *cell = one->cell + row * H,
            *saved = one->saved + row * 5 * H;
        if (!one->saved) lstm_row(H, given, 0, recurrent, 0, before, after, cell, 0);
        else if (more && bias)
            lstm_row(H, given, more, recurrent, bias, before, after, cell, saved);
        else if (more) lstm_row(H, given, more, recurrent, 0, before, after, cell, saved);
        else if (bias) lstm_row(H, given, 0, recurrent, bias, before, after, cell, saved);
        else lstm_row(H, given, 0, recurrent, 0, before, after, cell, saved);
    }
}

void lstm(const Lstm *one) { spread(lstm_rows, one, one->rows, 6 * one->size, one->threads); }

typedef struct {
    whole threads, rows, batch, size;
    Placed output, passed, memory, d_memory, d_given;
    const float *saved;
    float *d_before;
} LstmBack;

static inline __attribute__((always_inline)) void lstm_row_back(
    whole H, const float *output, const float *passed, const float *before, const float *d_memory,
    const float *saved,
    numbers d_given, numbers d_before)
{
#pragma omp simd
    for (whole i = 0; i < H; i++) {
        float enter = saved[i], forget = saved[H + i], fresh = saved[2 * H + i],
            out = saved[3 * H + i];
        float shown = saved[4 * H + i], d_after = output[i] + plus(passed, i);
        float d_cell = plus(d_memory, i) + d_after * out * (1.0f - shown * shown);
        d_given[i] = d_cell * fresh * (enter - enter * enter);
        d_given[H + i] = d_cell * before[i] * (forget - forget * forget);
        d_given[2 * H + i] = d_cell * enter * (1.0f - fresh * fresh);
        d_given[3 * H + i] = d_after * shown * (out - out * out);
        d_before[i] = d_cell * forget;
    }
}

static void lstm_rows_back(const void *data, whole begin, whole end)
{
    const LstmBack *one = data;
    for (whole row = begin; row < end; row++) {
        whole batch = one->batch, H = one->size;
        const float *output = at(&one->output, row, batch), *passed = at(&one->passed, row, batch);
        const float *before = at(&one->memory, row, batch);
        const float *d_memory = at(&one->d_memory, row, batch);
        const float *saved = one->saved + row * 5 * H;
        float *d_given = at(&one->d_given, row, batch), *d_before = one->d_before + row * H;
        if (passed && d_memory)
            lstm_row_back(H, output, passed, before, d_memory, saved, d_given, d_before);
        else if (passed) lstm_row_back(H, output, passed, before, 0, saved, d_given, d_before);
        else if (d_memory) lstm_row_back(H, output, 0, before, d_memory, saved, d_given, d_before);
        else lstm_row_back(H, output, 0, before, 0, saved, d_given, d_before);
    }
}

void lstm_back(const LstmBack *one)
{
    spread(lstm_rows_back, one, one->rows, 3 * one->size, one->threads);
}
