#include "time/sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "time/clock.h"

enum { DEFAULT_MIN = 32, DEFAULT_MAX = 1 << 20 };

static DflashStatus check_options(const DflashSampleOptions *options, int64_t channels, DflashError *error) {
  if (channels < 1)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "sampling: %lld channels; at least 1 is needed",
                            (long long)channels);
  if (!(options->confidence >= 0) || !(options->budget_s >= 0))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "sampling: confidence %g, budget %g s; both must be 0 or more", options->confidence,
                            options->budget_s);
  if (options->warmup < 0 || options->min_samples < 0 || options->max_samples < 0)
    return dflash_error_set(
        error, DFLASH_INVALID_ARGUMENT, "sampling: warm-up %lld, samples %lld to %lld; none may be negative",
        (long long)options->warmup, (long long)options->min_samples, (long long)options->max_samples);
  return DFLASH_OK;
}

/* Room for one more sample in every channel. */
static DflashStatus reserve(DflashSamples *samples, int64_t most, DflashError *error) {
  if (samples->n < samples->capacity) return DFLASH_OK;
  int64_t capacity = samples->capacity == 0 ? 64 : 2 * samples->capacity, total;
  if (capacity > most) capacity = most;
  double *values = NULL;
  if (dflash_mul_i64(capacity, samples->channels, &total)) values = dflash_alloc((size_t)total, sizeof *values);
  if (!values)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "sampling: no memory for %lld samples of %lld channels",
                            (long long)capacity, (long long)samples->channels);
  for (int64_t c = 0; c < samples->channels && samples->n > 0; c++)
    memcpy(values + c * capacity, dflash_samples_channel(samples, c), (size_t)samples->n * sizeof *values);
  free(samples->values);
  samples->values = values;
  samples->capacity = capacity;
  return DFLASH_OK;
}

static DflashStatus take_sample(DflashSampleFn fn, void *context, double *numbers, DflashSamples *out,
                                DflashError *error) {
  DflashStatus status = fn(context, numbers, error);
  if (status != DFLASH_OK) return status;
  for (int64_t c = 0; c < out->channels; c++) {
    if (!isfinite(numbers[c]))
      return dflash_error_set(error, DFLASH_NONFINITE, "sampling: sample %lld of channel %lld is %g", (long long)out->n,
                              (long long)c, numbers[c]);
    out->values[c * out->capacity + out->n] = numbers[c];
  }
  out->n++;
  return DFLASH_OK;
}

static bool is_precise(const DflashSamples *samples, double confidence) {
  DflashStatistics statistics;
  dflash_statistics(samples->values, samples->n, &statistics);
  return statistics.has_interval && statistics.half_width <= confidence;
}

static DflashStatus collect(const DflashSampleOptions *options, DflashSampleFn fn, void *context, double *numbers,
                            DflashSamples *out, DflashError *error) {
  int64_t most = options->max_samples ? options->max_samples : DEFAULT_MAX;
  int64_t look = options->min_samples ? options->min_samples : DEFAULT_MIN;
  uint64_t begin = dflash_clock_ns();
  for (;;) {
    DflashStatus status = reserve(out, most, error);
    if (status == DFLASH_OK) status = take_sample(fn, context, numbers, out, error);
    if (status != DFLASH_OK) return status;
    out->elapsed_s = (double)(dflash_clock_ns() - begin) / 1e9;
    bool looks = out->n == look;
    if (looks && look <= INT64_MAX / 2) look *= 2;
    if (looks && is_precise(out, options->confidence))
      out->stopped_by = DFLASH_STOP_CONFIDENCE;
    else if (out->elapsed_s >= options->budget_s)
      out->stopped_by = DFLASH_STOP_BUDGET;
    else if (out->n >= most)
      out->stopped_by = DFLASH_STOP_COUNT;
    else
      continue;
    return DFLASH_OK;
  }
}

DflashStatus dflash_sample(const DflashSampleOptions *options, int64_t channels, DflashSampleFn fn, void *context,
                           DflashSamples *out, DflashError *error) {
  *out = (DflashSamples){0};
  DflashStatus status = check_options(options, channels, error);
  if (status != DFLASH_OK) return status;
  out->channels = channels;
  double *numbers = dflash_alloc((size_t)channels, sizeof *numbers);
  if (!numbers) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "sampling: no memory for its channels");
  for (int64_t i = 0; i < options->warmup && status == DFLASH_OK; i++) status = fn(context, numbers, error);
  if (status == DFLASH_OK) status = collect(options, fn, context, numbers, out, error);
  free(numbers);
  if (status != DFLASH_OK) dflash_samples_close(out);
  return status;
}

const double *dflash_samples_channel(const DflashSamples *samples, int64_t channel) {
  return samples->values + channel * samples->capacity;
}

void dflash_samples_close(DflashSamples *samples) {
  free(samples->values);
  *samples = (DflashSamples){0};
}
