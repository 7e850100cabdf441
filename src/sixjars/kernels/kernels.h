/* Threads, exponentials and the rows of tensors, for the kernels of a CPU.

   Dims: K recurrences, B batch.

   Everything is a 32-bit float. Every row is computed by itself, in the same order with any number
   of threads. Each kernel gets one record, which Python packs: all fields have 8 bytes. No option
   may let the compiler assume that numbers are finite: a loss that is NaN must stay one. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef int64_t whole;
typedef float *restrict numbers;

/* Threads: those of the OpenMP that torch has loaded, if it has one. A second OpenMP in a process
   could be very slow. */

#ifdef __linux__
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));
extern int omp_get_num_threads(void) __attribute__((weak));
extern int omp_get_thread_num(void) __attribute__((weak));
#endif

typedef void (*Work)(const void *, whole, whole);
typedef struct {
    Work work;
    const void *given;
    whole rows;
} Shared;

#ifdef __linux__
static void share(void *data)
{
    const Shared *all = data;
    whole parts = omp_get_num_threads(), part = omp_get_thread_num();
    all->work(all->given, all->rows * part / parts, all->rows * (part + 1) / parts);
}
#endif

/* The fewest numbers to compute for which a second thread costs less than it gains. */
enum { FEWEST = 1 << 13 };

static void spread(Work work, const void *given, whole rows, whole each, whole threads)
{
#ifdef __linux__
    int loaded = GOMP_parallel && omp_get_num_threads && omp_get_thread_num;
    if (threads > 1 && rows > 1 && rows * each >= FEWEST && loaded) {
        Shared all = {work, given, rows};
        GOMP_parallel(share, &all, (unsigned)threads, 0);
        return;
    }
#endif
    work(given, 0, rows);
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2, e^r = 1 + r + r² p(r); relative error below 2e-7. */
static inline float exponential(float x)
{
    float kept = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    /* NaN is no whole number */
    float whole_part = kept == kept ? kept * 1.44269504f + 127.5f : 0.0f;
    int32_t n = (int32_t)whole_part;
    float times = (float)(n - 127);
    float r = kept - times * 0.693359375f + times * 2.12194440e-4f;
    float p = 0.0416685283f + r * (0.00837013481f + r * 0.00138116623f);
    p = 0.499999926f + r * (0.166665087f + r * p);
    uint32_t bits = (uint32_t)n << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    float made = (1.0f + (r + r * r * p)) * power;
    return x < -87.0f ? 0.0f : made;
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

/* By a polynomial where 1 - 2 / (1 + e^2x) would lose digits. */
static inline float tangent(float x)
{
    float z = x * x, large = 1.0f - 2.0f / (1.0f + exponential(2.0f * x));
    float p = -0.0537434981f + z * (0.0206505872f + z * -0.00571704495f);
    p = -0.333332839f + z * (0.133314913f + z * p);
    return z < 0.390625f ? x + x * z * p : large;
}

/* A tensor (K, B, …) or (B, …) with its strides of K and B; its features lie side by side. */
typedef struct {
    float *first;
    whole outer, inner;
} Placed;

static inline float *at(const Placed *one, whole row, whole batch)
{
    return one->first ? one->first + (row / batch) * one->outer + (row % batch) * one->inner : 0;
}

static inline float plus(const float *more, whole i) { return more ? more[i] : 0.0f; }
