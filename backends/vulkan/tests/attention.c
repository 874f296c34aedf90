#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "draw.h"
#include "values.h"

static float *draw_numbers(const char *name, size_t count, bool whole) {
  const DflashRandom random = dflash_random_stream(11, name);
  float *x = test_memory(count, sizeof *x);
  for (size_t i = 0; i < count; i++)
    x[i] = whole ? (float)dflash_random_below(random, i, 17) - 8.0f : test_draw(random, i);
  return x;
}

static size_t row_of(const Attention *a) { return (size_t)a->sizes.kv_heads * a->sizes.head_dim; }
static size_t queries_of(const Attention *a) { return (size_t)a->sizes.rows * a->heads; }
static bool owns(const Attention *a, uint32_t key) { return key >= a->sizes.len; }

/* Row `key` of K or V with the block's own rows behind the context. */
static const float *key_row(const Attention *a, bool values, uint32_t key, uint32_t head) {
  const size_t at = head / a->sizes.rep * a->sizes.head_dim;
  if (owns(a, key)) return (values ? a->own_v : a->own_k) + (key - a->sizes.len) * row_of(a) + at;
  return (values ? a->v : a->k) + key * row_of(a) + at;
}

static bool sees(const Attention *a, uint32_t row, uint32_t key) {
  return owns(a, key) || (key >= a->visible[1 + row] && key < a->visible[0]);
}

static const float *query_row(const Attention *a, uint32_t row, uint32_t head) {
  return a->q + ((size_t)row * a->heads + head) * a->sizes.head_dim;
}

/* q . k; *size: sum |q k| */
static double multiply(const Attention *a, const float *q, const float *k, double *size) {
  double sum = 0;
  *size = 0;
  for (uint32_t i = 0; i < a->sizes.head_dim; i++) {
    sum += (double)q[i] * k[i];
    *size += fabs((double)q[i] * k[i]);
  }
  return sum;
}

/* The scale that makes the largest score 500. */
static float loud_scale(const Attention *a) {
  double largest = 1, size;
  for (uint32_t row = 0; row < a->sizes.rows; row++)
    for (uint32_t head = 0; head < a->heads; head++)
      for (uint32_t key = 0; key < a->sizes.len + a->sizes.rows; key++) {
        const double product = fabs(multiply(a, query_row(a, row, head), key_row(a, false, key, head), &size));
        if (sees(a, row, key) && product > largest) largest = product;
      }
  return (float)(500 / largest);
}

static void hide(const Attention *a, float *rows) {
  for (uint32_t key = 0; key < a->sizes.len; key++)
    if (key < a->visible[1] || key >= a->visible[0])
      for (size_t i = 0; i < row_of(a); i++) rows[key * row_of(a) + i] = NAN;
}

Attention attention_open(const AttentionSizes *sizes) {
  Attention a = {.sizes = *sizes, .heads = sizes->kv_heads * sizes->rep, .parts = sizes->splits + 1};
  const bool whole = sizes->loud;
  a.q = draw_numbers("q", queries_of(&a) * sizes->head_dim, whole);
  a.k = draw_numbers("k", sizes->len * row_of(&a), whole);
  a.v = draw_numbers("v", sizes->len * row_of(&a), false);
  a.own_k = draw_numbers("own k", sizes->rows * row_of(&a), whole);
  a.own_v = draw_numbers("own v", sizes->rows * row_of(&a), false);
  a.visible = test_memory(1 + sizes->rows, sizeof *a.visible);
  a.visible[0] = sizes->end;
  for (uint32_t row = 0; row < sizes->rows; row++) {
    const uint32_t begin = sizes->begin + sizes->step * row;
    a.visible[1 + row] = begin < sizes->end ? begin : sizes->end;
  }
  hide(&a, a.k);
  hide(&a, a.v);
  a.scale = whole ? loud_scale(&a) : (float)(1 / sqrt(sizes->head_dim));
  a.sums = test_memory(a.parts * queries_of(&a) * 2, sizeof(float));
  a.mixes = test_memory(a.parts * queries_of(&a) * sizes->head_dim, sizeof(float));
  a.y = test_memory(queries_of(&a) * sizes->head_dim, sizeof(float));
  return a;
}

void attention_close(Attention *a) {
  free(a->q);
  free(a->k);
  free(a->v);
  free(a->own_k);
  free(a->own_v);
  free(a->visible);
  free(a->sums);
  free(a->mixes);
  free(a->y);
}

static TestArray array_of(void *data, size_t count) { return (TestArray){data, (count > 0 ? count : 1) * 4}; }

/* Rows first .. first + rows of the context, whose parts go to part_first on; `last`: and the block's own. */
typedef struct Segment {
  uint32_t first, rows, splits, part_first;
  bool last;
} Segment;

static void run_segment(TestKernels *kernels, Attention *a, const uint32_t *constants, const Segment *segment) {
  const AttentionSizes *s = &a->sizes;
  const size_t width = s->head_dim, queries = queries_of(a), row = row_of(a);
  const uint32_t tiles = (s->rows * s->rep + constants[1] - 1) / constants[1];
  const AttendPush push = {.rows = s->rows,
                           .heads = a->heads,
                           .kv_heads = s->kv_heads,
                           .splits = segment->splits,
                           .scale = a->scale,
                           .row_first = segment->first,
                           .row_count = segment->rows,
                           .part_first = segment->part_first,
                           .parts = a->parts};
  const TestArray arrays[] = {array_of(a->q, queries * width),
                              array_of(a->k + segment->first * row, segment->rows * row),
                              array_of(a->v + segment->first * row, segment->rows * row),
                              array_of(a->own_k, s->rows * row),
                              array_of(a->own_v, s->rows * row),
                              array_of(a->visible, 1 + s->rows),
                              array_of(a->sums, a->parts * queries * 2),
                              array_of(a->mixes, a->parts * queries * width)};
  test_launch(kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_ATTEND,
                                     .constants = constants,
                                     .constant_count = VULKAN_ATTEND_CONSTANTS,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {s->kv_heads, segment->splits + segment->last, tiles}});
}

static void run_mix(TestKernels *kernels, Attention *a) {
  const AttentionSizes *s = &a->sizes;
  const size_t width = s->head_dim, queries = queries_of(a);
  const uint32_t threads = vulkan_mix_threads(&kernels->device.traits);
  const MixPush push = {s->rows, a->heads, s->head_dim, a->parts};
  const TestArray arrays[] = {array_of(a->sums, a->parts * queries * 2), array_of(a->mixes, a->parts * queries * width),
                              array_of(a->y, queries * width)};
  test_launch(kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_MIX,
                                     .constants = &threads,
                                     .constant_count = 1,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {a->heads, s->rows, 1}});
}

static void poison(Attention *a) {
  memset(a->sums, 0xff, a->parts * queries_of(a) * 2 * sizeof(float));
  memset(a->mixes, 0xff, a->parts * queries_of(a) * a->sizes.head_dim * sizeof(float));
  memset(a->y, 0xff, queries_of(a) * a->sizes.head_dim * sizeof(float));
}

void attention_constants(const TestKernels *kernels, const Attention *a, uint32_t *constants) {
  const DflashModel model = {
      .device.traits = kernels->device.traits,
      .geometry = {.heads = a->heads, .kv_heads = a->sizes.kv_heads, .head_dim = a->sizes.head_dim}};
  vulkan_attend_constants(&model, a->sizes.rows, constants);
}

void attention_run_with(TestKernels *kernels, Attention *a, const uint32_t *constants) {
  poison(a);
  run_segment(kernels, a, constants, &(Segment){0, a->sizes.len, a->sizes.splits, 0, true});
  run_mix(kernels, a);
}

void attention_run(TestKernels *kernels, Attention *a) {
  uint32_t constants[VULKAN_ATTEND_CONSTANTS];
  attention_constants(kernels, a, constants);
  attention_run_with(kernels, a, constants);
}

void attention_run_segments(TestKernels *kernels, Attention *a, uint32_t rows, uint32_t splits, bool reversed) {
  const AttentionSizes *s = &a->sizes;
  const Segment segments[] = {{0, rows, splits, 0, false}, {rows, s->len - rows, s->splits - splits, splits, true}};
  uint32_t constants[VULKAN_ATTEND_CONSTANTS];
  attention_constants(kernels, a, constants);
  poison(a);
  run_segment(kernels, a, constants, &segments[reversed]);
  run_segment(kernels, a, constants, &segments[!reversed]);
  run_mix(kernels, a);
}

/* Scores of all keys, -infinity where nothing is seen. Returns the largest that is a number; *off: what f32 may be off.
 */
static double score_keys(const Attention *a, uint32_t row, uint32_t head, double *scores, double *off) {
  double largest = -INFINITY;
  *off = 0;
  for (uint32_t key = 0; key < a->sizes.len + a->sizes.rows; key++) {
    double size;
    scores[key] = -INFINITY;
    if (!sees(a, row, key)) continue;
    const double product = multiply(a, query_row(a, row, head), key_row(a, false, key, head), &size);
    scores[key] = product * a->scale;
    if (scores[key] > largest) largest = scores[key];
    *off = fmax(*off, TEST_ROUNDING * a->scale * (a->sizes.loud ? fabs(product) : 2 * size));
  }
  return largest;
}

void attention_exact(const Attention *a, uint32_t row, uint32_t head, double *y, double *bound) {
  const uint32_t keys = a->sizes.len + a->sizes.rows, width = a->sizes.head_dim;
  double *scores = test_memory(keys, sizeof *scores), off, total = 0;
  const double largest = score_keys(a, row, head, scores, &off);
  memset(y, 0, width * sizeof *y);
  memset(bound, 0, width * sizeof *bound);
  for (uint32_t key = 0; key < keys; key++) {
    if (!sees(a, row, key)) continue;
    const double weight = exp(scores[key] - largest);
    const float *v = key_row(a, true, key, head);
    total += weight;
    for (uint32_t i = 0; i < width; i++) {
      y[i] += weight * v[i];
      bound[i] += weight * fabs((double)v[i]);
    }
  }
  for (uint32_t i = 0; i < width; i++) {
    y[i] /= total;
    bound[i] *= (2e-6 + 2 * off) / total;
  }
  free(scores);
}

static void check_element(double exact, double bound, float got) {
  if (isfinite(exact) && fabs(got - exact) <= bound) return;
  if (isnan(exact) && isnan(got)) return;
  if (isinf(exact) && (double)got == exact) return;
  fail_msg("%.9g instead of %.9g, %.3g of the bound", (double)got, exact, fabs(got - exact) / bound);
}

void attention_check(const Attention *a) {
  const uint32_t width = a->sizes.head_dim;
  double *exact = test_memory(width, sizeof *exact), *bound = test_memory(width, sizeof *bound);
  for (uint32_t row = 0; row < a->sizes.rows; row++)
    for (uint32_t head = 0; head < a->heads; head++) {
      attention_exact(a, row, head, exact, bound);
      for (uint32_t i = 0; i < width; i++)
        check_element(exact[i], bound[i], a->y[((size_t)row * a->heads + head) * width + i]);
    }
  free(exact);
  free(bound);
}
