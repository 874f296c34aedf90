#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/random.h"
#include "time/sample.h"

typedef struct Source {
  int64_t calls, fail_at, nan_at;
  double spread;
  long nap_ns;
} Source;

static DflashStatus draw(void *context, double *channels, DflashError *error) {
  Source *source = context;
  int64_t call = source->calls++;
  if (call == source->fail_at) return dflash_error_set(error, DFLASH_DEVICE_LOST, "lost");
  if (source->nap_ns) nanosleep(&(struct timespec){.tv_nsec = source->nap_ns}, NULL);
  double noise = dflash_random_u32((DflashRandom){1, 2}, (uint64_t)call) / 4294967296.0 - 0.5;
  channels[0] = call == source->nan_at ? NAN : 100 + source->spread * noise;
  channels[1] = (double)call;
  return DFLASH_OK;
}

static Source plain(double spread) { return (Source){.fail_at = -1, .nan_at = -1, .spread = spread}; }

static void stops_by_confidence_at_a_look(void **state) {
  (void)state;
  DflashSamples samples;
  DflashSampleOptions options = {.confidence = 0.01, .budget_s = 60};
  Source source = plain(0.1);
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.stopped_by, DFLASH_STOP_CONFIDENCE);
  assert_int_equal(samples.n, 32);
  dflash_samples_close(&samples);

  source = plain(100);
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.stopped_by, DFLASH_STOP_CONFIDENCE);
  assert_true(samples.n > 32 && (samples.n & (samples.n - 1)) == 0);
  DflashStatistics s;
  dflash_statistics(dflash_samples_channel(&samples, 0), samples.n, &s);
  assert_true(s.half_width <= 0.01);
  dflash_samples_close(&samples);
}

static void keeps_every_sample_in_order(void **state) {
  (void)state;
  DflashSamples samples;
  Source source = plain(100);
  DflashSampleOptions options = {.confidence = 0, .budget_s = INFINITY, .warmup = 3, .max_samples = 1000};
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.stopped_by, DFLASH_STOP_COUNT);
  assert_int_equal(samples.n, 1000);
  assert_int_equal(source.calls, 1003);
  const double *order = dflash_samples_channel(&samples, 1);
  for (int i = 0; i < 1000; i++) assert_true(order[i] == i + 3);
  dflash_samples_close(&samples);
  assert_null(samples.values);
  dflash_samples_close(&samples);
}

static void stops_by_budget(void **state) {
  (void)state;
  DflashSamples samples;
  Source source = plain(100);
  source.nap_ns = 1000000;
  DflashSampleOptions options = {.confidence = 1e-9, .budget_s = 0.02};
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.stopped_by, DFLASH_STOP_BUDGET);
  assert_true(samples.elapsed_s >= 0.02);
  assert_in_range(samples.n, 1, 20);
  dflash_samples_close(&samples);
  options.budget_s = 0;
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.n, 1);
  dflash_samples_close(&samples);
}

static void looks_start_at_min_samples(void **state) {
  (void)state;
  DflashSamples samples;
  Source source = plain(0);
  DflashSampleOptions options = {.confidence = 0.01, .budget_s = 60, .min_samples = 2};
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.n, 8); /* 2 and 4 give no interval */
  dflash_samples_close(&samples);
  options.min_samples = 5000;
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, NULL), DFLASH_OK);
  assert_int_equal(samples.n, 5000);
  dflash_samples_close(&samples);
}

static void failures_leave_nothing(void **state) {
  (void)state;
  DflashSamples samples;
  DflashError error = {0};
  DflashSampleOptions options = {.confidence = 0.01, .budget_s = 60, .warmup = 2};
  for (int64_t at = 0; at < 34; at += 3) {
    Source source = plain(1);
    source.fail_at = at;
    assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, &error), DFLASH_DEVICE_LOST);
    assert_string_equal(error.message, "lost");
    assert_null(samples.values);
  }
  Source source = plain(1);
  source.nan_at = 7;
  assert_int_equal(dflash_sample(&options, 2, draw, &source, &samples, &error), DFLASH_NONFINITE);
  assert_non_null(strstr(error.message, "sample 5 of channel 0"));
  assert_null(samples.values);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  static const DflashSampleOptions bad[] = {
      {.confidence = NAN, .budget_s = 1}, {.confidence = -1, .budget_s = 1}, {.confidence = 1, .budget_s = NAN},
      {.confidence = 1, .budget_s = -1},  {.budget_s = 1, .warmup = -1},     {.budget_s = 1, .min_samples = -1},
      {.budget_s = 1, .max_samples = -1},
  };
  DflashSamples samples;
  Source source = plain(1);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(dflash_sample(&bad[i], 2, draw, &source, &samples, NULL), DFLASH_INVALID_ARGUMENT);
  DflashSampleOptions good = {.confidence = 0.01, .budget_s = 1};
  assert_int_equal(dflash_sample(&good, 0, draw, &source, &samples, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_sample(&good, INT64_MAX / 4, draw, &source, &samples, NULL), DFLASH_OUT_OF_MEMORY);
  assert_int_equal(source.calls, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stops_by_confidence_at_a_look),
      cmocka_unit_test(keeps_every_sample_in_order),
      cmocka_unit_test(stops_by_budget),
      cmocka_unit_test(looks_start_at_min_samples),
      cmocka_unit_test(failures_leave_nothing),
      cmocka_unit_test(bad_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
