/* Embeddings and context rows: normal about means that differ by channel, a few channels far out, and tapped layers
 * of different size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "golden/cases.h"
#include "golden/exact.h"

typedef struct Fill {
  DflashRandom stream;
  const float *means; /* [width] */
  float *out;
  int64_t hidden, width;
  float size, offset; /* the offset of all means, in sizes */
} Fill;

/* Later taps are larger, as the residual stream of a deep model is. */
static float part_size(const Fill *fill, int64_t part) { return fill->size * (float)(1 + part % 5); }

static void fill_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Fill *f = context;
  (void)worker;
  for (int64_t row = begin; row < end; row++)
    for (int64_t at = 0; at < f->width; at += f->hidden) {
      float *out = f->out + row * f->width + at;
      dflash_draw_normal(f->stream, (uint64_t)(row * f->width + at), (size_t)f->hidden, part_size(f, at / f->hidden),
                         out);
      for (int64_t i = 0; i < f->hidden; i++) out[i] += f->means[at + i];
    }
}

/* Means deviate by 0.3 of the size; one channel in 512, at least one, by 8 sizes. The model's, not the case's: all
 * rows share them, and the far channels are the same in every tap. */
static void fill_means(const Fill *f, uint64_t seed, const char *name, float *means) {
  DflashRandom stream = dflash_random_stream(seed, name), far = dflash_random_stream(seed, "channels/far");
  for (int64_t at = 0; at < f->width; at += f->hidden) {
    float size = part_size(f, at / f->hidden);
    dflash_draw_normal(stream, (uint64_t)at, (size_t)f->hidden, 0.3f * size, means + at);
    for (int64_t i = 0; i <= f->hidden / 512; i++) {
      uint32_t channel = dflash_random_below(far, (uint64_t)i, (uint32_t)f->hidden);
      means[at + channel] = i % 2 ? 8.0f * size : -8.0f * size;
    }
    for (int64_t i = 0; i < f->hidden; i++) means[at + i] += f->offset * size;
  }
}

static DflashStatus fill_normal(Fill *fill, uint64_t seed, const char *channels, int64_t rows, DflashPool *pool,
                                DflashError *error) {
  float *means = dflash_alloc((size_t)fill->width, sizeof *means);
  if (!means) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a row of inputs");
  fill_means(fill, seed, channels, means);
  fill->means = means;
  dflash_pool_run(pool, rows, 1 + 16384 / fill->width, fill_rows, fill);
  free(means);
  return DFLASH_OK;
}

DflashRandom dflash_case_stream(uint64_t seed, const char *name, const char *part) {
  char text[128];
  snprintf(text, sizeof text, "cases/%s/%s", name, part);
  return dflash_random_stream(seed, text);
}

static void put_zeros(const DflashGeometry *g, DflashCase *c) {
  int64_t last = c->sizes.rows - 1, group = g->hidden < 32 ? g->hidden : 32;
  memset(c->h + g->hidden, 0, (size_t)g->hidden * sizeof *c->h);
  memset(c->h + last * g->hidden, 0, (size_t)group * sizeof *c->h);
  int64_t width = dflash_geometry_tap_width(g);
  if (c->tap_rows > 1) memset(c->taps + width, 0, (size_t)width * sizeof *c->taps);
}

static void put_outliers(const DflashGeometry *g, DflashCase *c) {
  c->h[g->hidden + g->hidden / 3] = 7e4f;
  int64_t width = dflash_geometry_tap_width(g);
  if (c->tap_rows > 0) c->taps[(c->tap_rows / 2) * width + width / 3] = -1e4f;
}

/* The largest power of two that is not above sqrt(eps), between 2^-60 and 1. */
static float scale_of_eps(double eps) {
  double scale = 1.0;
  while (scale > 0x1p-60 && scale * scale > eps) scale *= 0.5;
  return (float)scale;
}

/* Each row is half the size of the one before, from four scales to a sixteenth of one, then over again: eps is
 * less than the first one's mean square and more than a hundred times the last one's. */
static void shrink_rows(float *data, int64_t rows, int64_t width, float scale) {
  enum { SCALES = 7 };
  for (int64_t row = 0; row < rows; row++) {
    const float factor = 4.0f * scale / (float)(1 << row % SCALES);
    for (int64_t i = 0; i < width; i++) data[row * width + i] *= factor;
  }
}

static void put_small_rows(const DflashGeometry *g, DflashCase *c) {
  const float scale = scale_of_eps(g->eps);
  shrink_rows(c->h, c->sizes.rows, g->hidden, scale);
  shrink_rows(c->taps, c->tap_rows, dflash_geometry_tap_width(g), scale);
}

static DflashStatus fill_exact(const DflashGeometry *g, const DflashWeights *weights, int flags, uint64_t seed,
                               DflashCase *c, DflashError *error) {
  int kind = flags & DFLASH_CASE_INTEGER ? DFLASH_EXACT_INTEGER : DFLASH_EXACT_24BIT;
  dflash_exact_embeddings(kind, g, dflash_case_stream(seed, c->name, "h"), c->sizes.rows, c->h);
  return dflash_exact_taps(kind, g, &weights->fc, dflash_case_stream(seed, c->name, "taps"), c->tap_rows, c->taps,
                           error);
}

static void scale_rows(float *data, int64_t rows, int64_t width, float scale) {
  for (int64_t i = 0; i < rows * width; i++) data[i] *= scale;
}

/* With s about the root of eps, a norm turns rows of this size into 2^-63 s and the gated product into denormals; every
 * fourth row is smaller still. */
static void put_quiet(const DflashGeometry *g, float *data, int64_t rows, int64_t width) {
  const float s = scale_of_eps(g->eps), usual = s * s * 0x1p-63f;
  for (int64_t row = 0; row < rows; row++) scale_rows(data + row * width, 1, width, row % 4 == 3 ? 0x1p-114f : usual);
}

/* Zero embeddings after the anchor; the first 32 channels of every context row. */
static void put_zero_groups(const DflashGeometry *g, DflashCase *c) {
  int64_t width = dflash_geometry_tap_width(g), group = g->hidden < 32 ? g->hidden : 32;
  memset(c->h + g->hidden, 0, (size_t)((c->sizes.rows - 1) * g->hidden) * sizeof *c->h);
  for (int64_t row = 0; row < c->tap_rows; row++) memset(c->taps + row * width, 0, (size_t)group * sizeof *c->taps);
}

static void put_stress(const DflashGeometry *g, int stress, DflashCase *c) {
  int64_t width = dflash_geometry_tap_width(g);
  if (stress & DFLASH_STRESS_LOUD) {
    scale_rows(c->h, c->sizes.rows, g->hidden, 16384.0f);
    scale_rows(c->taps, c->tap_rows, width, 4096.0f);
  }
  if (stress & DFLASH_STRESS_QUIET) {
    put_quiet(g, c->h, c->sizes.rows, g->hidden);
    put_quiet(g, c->taps, c->tap_rows, width);
  }
  if (stress & DFLASH_STRESS_ZEROS) put_zero_groups(g, c);
}

/* negative, clustered: large beside what the layers add, so that the last norm's output has a mean, too. */
static float offset_of(int stress) {
  if (stress & (DFLASH_STRESS_NEGATIVE | DFLASH_STRESS_CLUSTERED)) return 32.0f;
  return stress & DFLASH_STRESS_MEAN ? 2.0f : 0.0f;
}

DflashStatus dflash_case_fill(const DflashGeometry *geometry, const DflashWeights *weights, int flags, int stress,
                              uint64_t seed, DflashPool *pool, DflashCase *c, DflashError *error) {
  if (flags & DFLASH_CASE_EXACT) return fill_exact(geometry, weights, flags, seed, c, error);
  int64_t hidden = geometry->hidden;
  Fill h = {.stream = dflash_case_stream(seed, c->name, "h"), .out = c->h, .hidden = hidden, .size = 0.5f};
  Fill taps = {.stream = dflash_case_stream(seed, c->name, "taps"), .out = c->taps, .hidden = hidden, .size = 0.5f};
  h.width = hidden;
  h.offset = offset_of(stress);
  taps.width = dflash_geometry_tap_width(geometry);
  taps.offset = stress & DFLASH_STRESS_MEAN ? 2.0f : 0.0f;
  DflashStatus status = fill_normal(&h, seed, "channels/h", c->sizes.rows, pool, error);
  if (status == DFLASH_OK) status = fill_normal(&taps, seed, "channels/taps", c->tap_rows, pool, error);
  if (status != DFLASH_OK) return status;
  put_stress(geometry, stress, c);
  if (flags & DFLASH_CASE_ZERO_ROW) put_zeros(geometry, c);
  if (flags & DFLASH_CASE_OUTLIER) put_outliers(geometry, c);
  if (flags & DFLASH_CASE_SMALL) put_small_rows(geometry, c);
  return DFLASH_OK;
}
