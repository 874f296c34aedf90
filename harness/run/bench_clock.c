#include "run/bench_clock.h"

#include "base/error.h"

DflashStatus dflash_bench_check_call(const DflashBenchCase *bench, const DflashCallTime *time, DflashError *error) {
  bool host = bench->clock == DFLASH_CLOCK_HOST;
  double told = time->device_ns + time->context_ns;
  double most = host ? time->wall_ns + 2 * (double)bench->resolution_ns + 1e3 : 1.01 * time->wall_ns + 1e5;
  if (bench->resolution_ns == 0)
    return dflash_error_set(error, DFLASH_INTERNAL, "the backend's clock has a resolution of 0 ns; valid: at least 1");
  if (time->device_ns > 0 && told <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INTERNAL, "the backend's clock is not believable: %.0f ns in a call of %.0f",
                          told, time->wall_ns);
}

DflashStatus dflash_bench_check_spans(const DflashBenchCase *bench, double device_ns, DflashError *error) {
  bool host = bench->clock == DFLASH_CLOCK_HOST;
  double end = device_ns + 2 * (double)bench->resolution_ns + (host ? 0 : 0.01 * device_ns);
  for (uint32_t i = 0; i < bench->span_count; i++) {
    const DflashSpan *span = &bench->spans[i];
    if (dflash_stage_row(span->stage) == NULL)
      return dflash_error_set(error, DFLASH_INTERNAL, "span %u is of stage %d, which is none", i, span->stage);
    if (span->end_ns < span->begin_ns || (double)span->end_ns > end)
      return dflash_error_set(error, DFLASH_INTERNAL, "span %u (%s) goes from %llu to %llu ns in a block of %.0f", i,
                              dflash_stage_row(span->stage)->name, (unsigned long long)span->begin_ns,
                              (unsigned long long)span->end_ns, device_ns);
    if (i == 0) continue;
    if (span->begin_ns < span[-1].begin_ns || (host && span->begin_ns < span[-1].end_ns))
      return dflash_error_set(error, DFLASH_INTERNAL, "span %u (%s) begins at %llu ns, before span %u %s", i,
                              dflash_stage_row(span->stage)->name, (unsigned long long)span->begin_ns, i - 1,
                              span->begin_ns < span[-1].begin_ns ? "begins" : "ends");
  }
  return DFLASH_OK;
}

DflashStatus dflash_bench_check_cover(const DflashBenchCase *bench, double device_ns, double wall_ns,
                                      DflashError *error) {
  if (bench->clock != DFLASH_CLOCK_HOST || device_ns > 0.8 * wall_ns - 2e4) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INTERNAL, "the backend's clock is not believable: %.0f ns in calls of %.0f",
                          device_ns, wall_ns);
}

static bool has_span(const DflashBenchCase *bench, const DflashStageInfo *info) {
  for (uint32_t i = 0; i < bench->span_count; i++) {
    const DflashSpan *span = &bench->spans[i];
    const DflashStageRow *row = dflash_stage_row(span->stage);
    int64_t layer = row != NULL && row->scope == DFLASH_SCOPE_LAYER ? span->layer : 0;
    if (row == NULL || layer < 0 || layer >= bench->run.session->geometry->layers) continue;
    if (dflash_case_info(&bench->run, span->stage, layer)->dispatch == info->dispatch) return true;
  }
  return false;
}

DflashStatus dflash_bench_check_whole(const DflashBenchCase *bench, DflashError *error) {
  int32_t stage;
  int64_t layer;
  char label[64];
  for (int64_t i = 0; dflash_stage_walk(bench->run.session->geometry, i, &stage, &layer); i++) {
    if (dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT) continue;
    if (has_span(bench, dflash_case_info(&bench->run, stage, layer))) continue;
    return dflash_error_set(error, DFLASH_INTERNAL, "%s is in no span of the stamped block, nor is its dispatch",
                            dflash_stage_label(stage, layer, label));
  }
  return DFLASH_OK;
}

/* Samples that are all one number, though the calls around them differ and the clock could tell. */
static bool stands_still(const DflashBenchCase *bench) {
  const double *device = dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_DEVICE);
  const double *wall = dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_WALL);
  bool moved = false;
  for (int64_t i = 1; i < bench->samples.n; i++) {
    if (device[i] != device[0]) return false;
    moved |= wall[i] != wall[0];
  }
  return bench->samples.n >= 6 && moved && device[0] > 1000.0 * (double)bench->resolution_ns;
}

DflashStatus dflash_bench_check_samples(const DflashBenchCase *bench, DflashError *error) {
  DflashStatistics device, wall;
  dflash_statistics(dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_DEVICE), bench->samples.n, &device);
  dflash_statistics(dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_WALL), bench->samples.n, &wall);
  if (stands_still(bench))
    return dflash_error_set(error, DFLASH_INTERNAL, "the backend's clock stands still: %.0f ns in each of %lld calls",
                            device.median, (long long)bench->samples.n);
  return dflash_bench_check_cover(bench, device.median, wall.median, error);
}
