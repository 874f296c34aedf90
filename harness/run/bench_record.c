#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/bench_case.h"
#include "run/peers.h"
#include "store/environment.h"

static cJSON *statistics_object(const DflashBenchCase *bench, int64_t channel, DflashStatistics *out) {
  DflashStatistics s;
  dflash_statistics(dflash_samples_channel(&bench->samples, channel), bench->samples.n, &s);
  if (out != NULL) *out = s;
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "n", (double)s.n);
  cJSON_AddNumberToObject(object, "min", s.min);
  cJSON_AddNumberToObject(object, "median", s.median);
  cJSON_AddNumberToObject(object, "p95", s.p95);
  cJSON_AddNumberToObject(object, "mad", s.mad);
  if (s.has_interval) {
    cJSON_AddNumberToObject(object, "low", s.low);
    cJSON_AddNumberToObject(object, "high", s.high);
    cJSON_AddNumberToObject(object, "half_width", s.half_width);
  }
  dflash_record_number(object, "lag1", s.lag1);
  return object;
}

static bool has_span(const DflashBenchCase *bench, int32_t stage, int64_t layer) {
  const bool once = dflash_stage_row(stage)->scope == DFLASH_SCOPE_ONCE;
  for (uint32_t i = 0; i < bench->span_count; i++)
    if (bench->spans[i].stage == stage && (once || bench->spans[i].layer == layer)) return true;
  return false;
}

/* Bytes and operations of one span: its stage, and those that run fused in its dispatch and have no span of their own.
 */
static DflashWork stage_work(const DflashBenchCase *bench, int32_t stage, int64_t layer) {
  const DflashCaseRun *run = &bench->run;
  const DflashGeometry *g = run->session->geometry;
  const DflashStageInfo *own = dflash_case_info(run, stage, layer);
  DflashWork work = {0};
  int32_t other;
  int64_t at;
  for (int64_t i = 0; dflash_stage_walk(g, i, &other, &at); i++) {
    const DflashStageInfo *info = dflash_case_info(run, other, at);
    const bool same = other == stage && at == layer;
    if (info->dispatch != own->dispatch || (!same && has_span(bench, other, at))) continue;
    if (dflash_stage_row(other)->rows == DFLASH_ROWS_CONTEXT && other != stage) continue;
    work.bytes += (double)info->weight_bytes + (double)dflash_stage_activation_bytes(g, &run->c.sizes, other, at);
    work.operations += dflash_stage_operations(g, &run->c.sizes, other, at);
  }
  return work;
}

DflashWork dflash_bench_block_work(const DflashBenchCase *bench) {
  const DflashCaseRun *run = &bench->run;
  const DflashGeometry *g = run->session->geometry;
  DflashWork work = {0};
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    if (dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT) continue;
    work.bytes += (double)dflash_case_info(run, stage, layer)->weight_bytes +
                  (double)dflash_stage_activation_bytes(g, &run->c.sizes, stage, layer);
    work.operations += dflash_stage_operations(g, &run->c.sizes, stage, layer);
  }
  return work;
}

/* bandwidth, rate and their shares of this device's roofline; ns is a median. */
static void add_rates(const DflashBenchCase *bench, cJSON *object, DflashWork work, double ns) {
  cJSON_AddNumberToObject(object, "bytes", work.bytes);
  cJSON_AddNumberToObject(object, "operations", work.operations);
  double seconds = ns * 1e-9, read = 0, matrix = 0;
  if (ns <= 0) return;
  cJSON_AddNumberToObject(object, "bandwidth", work.bytes / seconds);
  cJSON_AddNumberToObject(object, "rate", work.operations / seconds);
  if (bench->read_rate > 0)
    cJSON_AddNumberToObject(object, "share_read", read = work.bytes / seconds / bench->read_rate);
  if (bench->matrix_rate > 0)
    cJSON_AddNumberToObject(object, "share_matrix", matrix = work.operations / seconds / bench->matrix_rate);
  if (read <= 0 && matrix <= 0) return;
  cJSON_AddNumberToObject(object, "share", read > matrix ? read : matrix);
  cJSON_AddStringToObject(object, "bound", read > matrix ? "read" : "matrix");
}

static void add_library(const DflashBenchCase *bench, cJSON *object, int32_t stage, int64_t layer, double min_ns) {
  DflashSession *s = bench->run.session;
  uint64_t ns = 0;
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  if (s->cases != NULL || s->options->no_roofline || context) return;
  if (!dflash_stage_is_matrix(stage) || !DFLASH_BACKEND_HAS(s->backend, library_time)) return;
  int64_t rows = dflash_stage_rows(s->geometry, &bench->run.c.sizes, stage);
  if (s->backend->library_time(s->model, stage, layer, rows, &ns, NULL) != DFLASH_OK || ns == 0) return;
  cJSON_AddNumberToObject(object, "library_ns", (double)ns);
  if (min_ns > 0) cJSON_AddNumberToObject(object, "library_share", (double)ns / min_ns);
}

static void add_fused(const DflashBenchCase *bench, cJSON *object, int32_t stage, int64_t layer) {
  const DflashCaseRun *run = &bench->run;
  cJSON *fused = NULL;
  int32_t other;
  int64_t at;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &other, &at); i++) {
    bool same = other == stage && at == layer;
    if (same || dflash_case_info(run, other, at)->dispatch != dflash_case_info(run, stage, layer)->dispatch) continue;
    char label[64];
    if (fused == NULL) fused = cJSON_AddArrayToObject(object, "fused");
    cJSON_AddItemToArray(fused, cJSON_CreateString(dflash_stage_label(other, at, label)));
  }
}

static cJSON *stage_object(const DflashBenchCase *bench, uint32_t i) {
  const DflashSpan *span = &bench->spans[i];
  const DflashStageRow *row = dflash_stage_row(span->stage);
  DflashStatistics s;
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "stage", row->name);
  if (row->scope == DFLASH_SCOPE_LAYER) cJSON_AddNumberToObject(object, "layer", span->layer);
  cJSON_AddStringToObject(object, "group", dflash_group_label(row->group));
  cJSON_AddItemToObject(object, "time", statistics_object(bench, DFLASH_CHANNEL_SPANS + i, &s));
  add_rates(bench, object, stage_work(bench, span->stage, span->layer), s.median);
  cJSON_AddStringToObject(object, "path", dflash_case_info(&bench->run, span->stage, span->layer)->path);
  add_library(bench, object, span->stage, span->layer, s.min);
  add_fused(bench, object, span->stage, span->layer);
  return object;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median over samples of the sum of a group's spans (all spans for group -1). */
static double group_median(const DflashBenchCase *bench, int32_t group, DflashWork *work) {
  int64_t n = bench->samples.n;
  double *sums = calloc((size_t)n + 1, sizeof *sums);
  *work = (DflashWork){0};
  if (sums == NULL) return 0;
  for (uint32_t i = 0; i < bench->span_count; i++) {
    int32_t own = dflash_stage_row(bench->spans[i].stage)->group;
    if (group >= 0 ? own != group : own == DFLASH_GROUP_CONTEXT) continue;
    const double *channel = dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_SPANS + i);
    for (int64_t k = 0; k < n; k++) sums[k] += channel[k];
    DflashWork one = stage_work(bench, bench->spans[i].stage, bench->spans[i].layer);
    work->bytes += one.bytes;
    work->operations += one.operations;
  }
  qsort(sums, (size_t)n, sizeof *sums, by_value);
  double median = n > 0 ? (sums[(n - 1) / 2] + sums[n / 2]) / 2 : 0;
  free(sums);
  return median;
}

static void add_groups(const DflashBenchCase *bench, cJSON *record, double block_ns) {
  cJSON *groups = cJSON_AddArrayToObject(record, "groups");
  for (int32_t group = 0; group < DFLASH_GROUP_COUNT; group++) {
    DflashWork work;
    double ns = group_median(bench, group, &work);
    if (ns <= 0) continue;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "group", dflash_group_label(group));
    cJSON_AddNumberToObject(object, "ns", ns);
    cJSON_AddNumberToObject(object, "share_of_block", block_ns > 0 ? ns / block_ns : 0);
    add_rates(bench, object, work, ns);
    cJSON_AddItemToArray(groups, object);
  }
}

static void add_state(cJSON *record, const char *name, const DflashDeviceState *state) {
  cJSON *object = cJSON_AddObjectToObject(record, name);
  if (state->valid & 1u) cJSON_AddNumberToObject(object, "clock_hz", state->clock_hz);
  if (state->valid & 2u) cJSON_AddNumberToObject(object, "memory_hz", state->memory_hz);
  if (state->valid & 4u) cJSON_AddNumberToObject(object, "celsius", state->celsius);
  if (state->valid & 8u) cJSON_AddNumberToObject(object, "watts", state->watts);
  if (state->valid & 16u) cJSON_AddNumberToObject(object, "throttle", (double)state->throttle);
  if (state->valid & 32u) cJSON_AddNumberToObject(object, "other_users", state->other_users);
}

static void add_block(const DflashBenchCase *bench, cJSON *record, double *block_ns) {
  DflashStatistics device;
  cJSON *block = cJSON_AddObjectToObject(record, "block");
  cJSON_AddItemToObject(block, "device", statistics_object(bench, DFLASH_CHANNEL_DEVICE, &device));
  cJSON_AddItemToObject(block, "wall", statistics_object(bench, DFLASH_CHANNEL_WALL, NULL));
  cJSON_AddItemToObject(block, "cpu", statistics_object(bench, DFLASH_CHANNEL_CPU, NULL));
  add_rates(bench, block, dflash_bench_block_work(bench), device.median);
  *block_ns = device.median;
}

int dflash_bench_is_hot(const DflashBenchCase *bench) {
  const DflashSession *session = bench->run.session;
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (session->options->cold || !session->device.is_cpu || cache <= 0) return 0;
  return dflash_bench_block_work(bench).bytes < 4.0 * (double)cache;
}

/* A whole cold block cannot be faster than a streaming read of its bytes. */
static void add_plausibility(const DflashBenchCase *bench, cJSON *record, double block_ns) {
  bool cold = bench->run.session->options->cold != 0;
  cJSON_AddBoolToObject(record, "cold", cold);
  cJSON_AddBoolToObject(record, "cache_hot", dflash_bench_is_hot(bench));
  double bytes = dflash_bench_block_work(bench).bytes;
  double floor_ns = bench->read_rate > 0 ? bytes / (1.05 * bench->read_rate) * 1e9 : 0;
  if (!cold || block_ns >= floor_ns) return;
  char text[200];
  snprintf(text, sizeof text, "refused: a cold block of %.4g ms, but a streaming read of its bytes takes %.4g ms",
           block_ns * 1e-6, floor_ns * 1.05e-6);
  cJSON_AddStringToObject(record, "implausible", text);
}

/* The best reading, and the median of those between the samples: what the memory gave while the block ran. */
static void add_roofline(const DflashBenchCase *bench, cJSON *record) {
  cJSON *roofline = cJSON_AddObjectToObject(record, "roofline");
  if (bench->read_rate > 0) cJSON_AddNumberToObject(roofline, "read_bytes_per_s", bench->read_rate);
  if (bench->matrix_rate > 0) cJSON_AddNumberToObject(roofline, "matrix_operations_per_s", bench->matrix_rate);
  if (bench->read_count == 0) return;
  DflashStatistics reads;
  dflash_statistics(bench->read_beside, bench->read_count, &reads);
  cJSON_AddNumberToObject(roofline, "read_beside_bytes_per_s", reads.median);
  cJSON_AddNumberToObject(roofline, "reads_beside", (double)reads.n);
  cJSON *block = cJSON_GetObjectItem(record, "block");
  double bandwidth = cJSON_GetNumberValue(cJSON_GetObjectItem(block, "bandwidth"));
  cJSON_AddNumberToObject(block, "share_read_beside", bandwidth / reads.median);
}

static void add_head(const DflashBenchCase *bench, cJSON *record) {
  static const char *const stops[] = {"confidence", "budget", "count"};
  cJSON_AddStringToObject(record, "type", "bench");
  cJSON_AddStringToObject(record, "case", bench->run.c.name);
  cJSON_AddStringToObject(record, "what", bench->run.session->options->round > 0 ? "round" : "block");
  cJSON *parity = cJSON_AddObjectToObject(record, "parity");
  cJSON_AddStringToObject(parity, "outcome", "pass");
  dflash_record_number(parity, "largest_score", bench->largest_score);
  cJSON *clock = cJSON_AddObjectToObject(record, "clock");
  cJSON_AddStringToObject(clock, "whose", bench->clock == DFLASH_CLOCK_DEVICE ? "device" : "host");
  cJSON_AddNumberToObject(clock, "resolution_ns", (double)bench->resolution_ns);
  cJSON_AddNumberToObject(clock, "host_resolution_ns", (double)bench->proof.resolution_ns);
  cJSON_AddNumberToObject(clock, "cost_ns", bench->proof.cost_ns);
  cJSON_AddStringToObject(record, "stopped_by", stops[bench->samples.stopped_by]);
  cJSON_AddNumberToObject(record, "elapsed_s", bench->samples.elapsed_s);
  cJSON_AddStringToObject(record, "path", bench->run.session->info.path);
}

static void add_overhead(const DflashBenchCase *bench, cJSON *record, double block_ns) {
  DflashStatistics stamped;
  DflashWork work;
  cJSON_AddItemToObject(record, "stamped", statistics_object(bench, DFLASH_CHANNEL_STAMPED, &stamped));
  if (block_ns <= 0) return;
  cJSON_AddNumberToObject(record, "overhead_share", stamped.median / block_ns - 1);
  double sum = group_median(bench, -1, &work) / block_ns;
  cJSON_AddNumberToObject(record, "sum_share", sum);
  if (fabs(sum - 1) <= 0.05) return;
  char text[160];
  snprintf(text, sizeof text, "the stages sum to %.1f%% of the unstamped block: %s", 100 * sum,
           sum > 1 ? "they overlap, or stamping slows them" : "work between them is in no stage");
  cJSON_AddStringToObject(record, "stages_note", text);
}

cJSON *dflash_bench_record(const DflashBenchCase *bench) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  double block_ns = 0;
  add_head(bench, record);
  add_block(bench, record, &block_ns);
  add_overhead(bench, record, block_ns);
  add_plausibility(bench, record, block_ns);
  add_roofline(bench, record);
  if (bench->run.session->options->peers != NULL)
    dflash_peers_add(bench->run.session->options->peers, record, block_ns);
  cJSON *stages = cJSON_AddArrayToObject(record, "stages");
  for (uint32_t i = 0; i < bench->span_count; i++) cJSON_AddItemToArray(stages, stage_object(bench, i));
  add_groups(bench, record, block_ns);
  cJSON_AddItemToObject(
      record, "samples",
      cJSON_CreateDoubleArray(dflash_samples_channel(&bench->samples, DFLASH_CHANNEL_DEVICE), (int)bench->samples.n));
  add_state(record, "state_before", &bench->before);
  add_state(record, "state_after", &bench->after);
  cJSON_AddItemToObject(record, "environment", dflash_environment());
  return record;
}
