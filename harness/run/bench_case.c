#include "run/bench_case.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/bench_clock.h"
#include "run/job.h"
#include "run/peers.h"
#include "run/reproduce.h"

/* Nothing that fails parity gets a time: the whole chain is judged first, on a sequence that captures. */
static DflashStatus prove_parity(DflashBenchCase *bench, DflashError *error) {
  DflashCaseRun *run = &bench->run;
  DflashStatus status = dflash_case_sequence(run, DFLASH_SEQUENCE_CAPTURE, &run->sequence, error);
  if (status == DFLASH_OK) status = dflash_product_run(run, run->sequence, &run->product, DFLASH_POISON_BITS, error);
  if (status != DFLASH_OK) return status;
  dflash_verify_chain(run);
  run->session->backend->sequence_close(run->sequence);
  run->sequence = NULL;
  for (int64_t i = 0; i < run->verdicts.count; i++) {
    const DflashVerdict *v = &run->verdicts.at[i];
    if (v->outcome == DFLASH_OUTCOME_PASS && v->compared && v->comparison.score > bench->largest_score)
      bench->largest_score = v->comparison.score;
  }
  return DFLASH_OK;
}

/* What was asked for and is not possible here; before anything runs. */
static DflashStatus check_request(const DflashSession *s, DflashError *error) {
  if (s->options->cold && !DFLASH_BACKEND_HAS(s->backend, evict_caches))
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "%s cannot evict caches: --cold is not possible",
                            s->backend->name);
  if (s->options->round > 0 && s->options->load_context)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--round pushes rows: it cannot go with --context load");
  return DFLASH_OK;
}

/* The rows that every round pushes again: the last `round` of the context. */
static DflashStatus prepare_round(DflashBenchCase *bench, DflashError *error) {
  const DflashCase *c = &bench->run.c;
  int64_t round = bench->run.session->options->round, first = 0, len = 0, last = 0;
  int64_t width = dflash_geometry_tap_width(bench->run.session->geometry);
  if (round == 0) return DFLASH_OK;
  DflashStatus status = dflash_context_replay(c->ops, c->op_count, &first, &len, &bench->tap_row, &last, error);
  if (status != DFLASH_OK) return status;
  if (round > len)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--round %lld: the case's context has %lld rows",
                            (long long)round, (long long)len);
  bench->round_pos = first + len - round;
  bench->round_rows = dflash_alloc((size_t)(round * width), sizeof(float));
  if (bench->round_rows == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a round's rows");
  for (int64_t r = 0; r < round; r++)
    memcpy(bench->round_rows + r * width, c->taps + bench->tap_row[len - round + r] * width,
           (size_t)width * sizeof(float));
  return DFLASH_OK;
}

/* A long sampling is no silence; between two samples it disturbs none. */
static void tell_samples(DflashBenchCase *bench) {
  uint64_t now = dflash_clock_ns();
  if (now - bench->told_ns < 1000000000u) return;
  bench->told_ns = now;
  dflash_session_progress(bench->run.session, "sampling");
}

/* On a shared machine the memory's rate drifts: it is read again between samples, for a tenth of the time at most.
 * Reading evicts caches, so a block that lives in them is left alone. */
static void read_beside(DflashBenchCase *bench) {
  DflashSession *s = bench->run.session;
  uint64_t begin = dflash_clock_ns();
  double rate = 0;
  if (s->options->no_roofline || bench->read_count == DFLASH_BENCH_READS || dflash_bench_is_hot(bench)) return;
  if (!DFLASH_BACKEND_HAS(s->backend, measure_read) || begin - bench->read_done_ns < 10 * bench->read_cost_ns) return;
  if (s->backend->measure_read(s->model, &rate, NULL) != DFLASH_OK || rate <= 0) return;
  bench->read_beside[bench->read_count++] = rate;
  if (rate > bench->read_rate) bench->read_rate = rate;
  bench->read_done_ns = dflash_clock_ns();
  bench->read_cost_ns = bench->read_done_ns - begin;
}

static DflashStatus sample(void *context, double *channels, DflashError *error) {
  DflashBenchCase *bench = context;
  DflashSession *s = bench->run.session;
  double wall, cpu, count = bench->span_count;
  tell_samples(bench);
  read_beside(bench);
  DflashStatus status = dflash_bench_block(bench, 0, &channels[DFLASH_CHANNEL_DEVICE], &channels[DFLASH_CHANNEL_WALL],
                                           &channels[DFLASH_CHANNEL_CPU], error);
  if (status == DFLASH_OK)
    status = dflash_bench_block(bench, DFLASH_BLOCK_STAMP, &channels[DFLASH_CHANNEL_STAMPED], &wall, &cpu, error);
  if (status == DFLASH_OK)
    status = s->backend->block_spans(bench->sequence, bench->spans, DFLASH_BENCH_SPANS, &bench->span_count, error);
  if (status != DFLASH_OK) return status;
  bench->check = "spans";
  if (bench->span_count > DFLASH_BENCH_SPANS || (count > 0 && bench->span_count != (uint32_t)count))
    return dflash_error_set(error, DFLASH_INTERNAL, "the number of spans changed from %.0f to %u", count,
                            bench->span_count);
  for (uint32_t i = 0; i < bench->span_count; i++)
    channels[DFLASH_CHANNEL_SPANS + i] = (double)bench->spans[i].end_ns - (double)bench->spans[i].begin_ns;
  return dflash_bench_check_spans(bench, channels[DFLASH_CHANNEL_STAMPED], error);
}

static void keep_first_tokens(DflashBenchCase *bench) {
  memcpy(bench->first.chosen.data, bench->tokens.chosen.data, bench->tokens.chosen.count * sizeof(float));
  memcpy(bench->first.plain.data, bench->tokens.plain.data, bench->tokens.plain.count * sizeof(float));
}

/* The timed sequence, its tokens judged once, and the number of spans found out. */
static DflashStatus prepare_timed(DflashBenchCase *bench, DflashError *error) {
  DflashCaseRun *run = &bench->run;
  DflashSession *s = run->session;
  double device, wall, cpu;
  if (!dflash_token_buffers_open(&bench->tokens, s->geometry, run->c.sizes.n_draft))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for tokens");
  DflashStatus status = dflash_case_sequence(run, 0, &bench->sequence, error);
  if (status == DFLASH_OK) status = dflash_bench_block(bench, DFLASH_BLOCK_STAMP, &device, &wall, &cpu, error);
  if (status == DFLASH_OK)
    status = s->backend->block_spans(bench->sequence, bench->spans, DFLASH_BENCH_SPANS, &bench->span_count, error);
  bench->check = status == DFLASH_OK ? "spans" : bench->check;
  if (status == DFLASH_OK && bench->span_count <= DFLASH_BENCH_SPANS) status = dflash_bench_check_whole(bench, error);
  if (status != DFLASH_OK) return status;
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1, "timed block");
  const DflashValue *logits = dflash_case_value(&run->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  dflash_case_judge_tokens(run, verdict, &bench->tokens, &run->c.tokens, logits->data, logits->chain,
                           dflash_case_value(&run->c, DFLASH_STAGE_SELECTOR_HIDDEN, 0)->data, true);
  if (!dflash_token_buffers_open(&bench->first, s->geometry, run->c.sizes.n_draft))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for tokens");
  keep_first_tokens(bench);
  return dflash_bench_alternate(bench, error);
}

/* Cases in memory are timed for the clock's sake, not for a report. */
static void measure_roofline(DflashBenchCase *bench) {
  DflashSession *s = bench->run.session;
  if (s->cases != NULL || s->options->no_roofline) return;
  double rate = 0;
  if (DFLASH_BACKEND_HAS(s->backend, measure_read) && s->backend->measure_read(s->model, &rate, NULL) == DFLASH_OK &&
      rate > bench->read_rate)
    bench->read_rate = rate;
  rate = 0;
  if (DFLASH_BACKEND_HAS(s->backend, measure_matrix) &&
      s->backend->measure_matrix(s->model, &rate, NULL) == DFLASH_OK && rate > bench->matrix_rate)
    bench->matrix_rate = rate;
}

static void look_at_device(DflashSession *s, DflashDeviceState *state) {
  state->struct_size = sizeof *state;
  if (!DFLASH_BACKEND_HAS(s->backend, device_state) || s->backend->device_state(s->model, state, NULL) != DFLASH_OK)
    state->valid = 0;
}

/* The roofline is measured on both sides of the samples: the better reading counts. */
static DflashStatus take_samples(DflashBenchCase *bench, DflashError *error) {
  DflashSession *s = bench->run.session;
  const DflashRunOptions *o = s->options;
  DflashSampleOptions options = {
      .confidence = o->confidence, .budget_s = o->budget_s, .warmup = o->warmup, .max_samples = o->max_samples};
  look_at_device(s, &bench->before);
  dflash_session_progress(s, "roofline");
  measure_roofline(bench);
  dflash_session_progress(s, "sampling");
  DflashStatus status =
      dflash_sample(&options, DFLASH_CHANNEL_SPANS + (int64_t)bench->span_count, sample, bench, &bench->samples, error);
  if (status != DFLASH_OK) return status;
  bench->check = "clock";
  status = dflash_bench_check_samples(bench, error);
  if (status != DFLASH_OK) return status;
  dflash_session_progress(s, "roofline again, library calls");
  measure_roofline(bench);
  look_at_device(s, &bench->after);
  return DFLASH_OK;
}

/* What failed parity is verified again, the rest is timed again. */
static void add_reproduce(const DflashBenchCase *bench, cJSON *record, bool parity) {
  const DflashReproduce what = {.command = parity ? "verify" : "bench",
                                .file = bench->run.session->file,
                                .case_name = bench->run.c.name,
                                .mode = parity ? "chain" : NULL};
  DflashRunOptions options = *bench->run.session->options;
  if (parity) options.round = options.cold = 0; /* options of bench */
  char *command = dflash_reproduce_command(&options, &what);
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce", command);
  free(command);
}

static const char *failed_check(const DflashBenchCase *bench, const DflashVerdict *first) {
  if (first == NULL) return bench->check != NULL ? bench->check : "context";
  return first->stage != DFLASH_STAGE_NONE ? dflash_stage_row(first->stage)->name : first->check;
}

/* The `case` record: first is what failed parity; why, what else went wrong, with its outcome. */
static DflashStatus send_case(DflashBenchCase *bench, const DflashVerdict *first, int outcome, const char *why) {
  char message[900] = "";
  if (first != NULL) dflash_verdict_message(first, message, sizeof message);
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "case");
  cJSON_AddStringToObject(record, "case", bench->run.c.name);
  cJSON_AddStringToObject(record, "modes", "bench");
  cJSON_AddStringToObject(record, "settings", bench->run.session->settings);
  if (first != NULL) outcome = first->outcome;
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(outcome));
  if (first != NULL || why != NULL) cJSON_AddStringToObject(record, "message", why != NULL ? why : message);
  if (dflash_outcome_is_failure(outcome)) cJSON_AddStringToObject(record, "check", failed_check(bench, first));
  cJSON_AddNumberToObject(record, "passed", outcome == DFLASH_OUTCOME_PASS);
  cJSON_AddNumberToObject(record, "failed", dflash_outcome_is_failure(outcome));
  cJSON_AddNumberToObject(record, "other", outcome != DFLASH_OUTCOME_PASS && !dflash_outcome_is_failure(outcome));
  cJSON_AddNumberToObject(record, "elapsed_s", (double)(dflash_clock_ns() - bench->begin_ns) * 1e-9);
  dflash_record_number(record, "largest_score", bench->largest_score);
  cJSON_AddStringToObject(record, "values_hash", dflash_session_attribute(bench->run.session, "values_hash"));
  if (dflash_outcome_is_failure(outcome)) add_reproduce(bench, record, first != NULL);
  return dflash_session_send(bench->run.session, record);
}

static DflashStatus send_bench(DflashBenchCase *bench) {
  cJSON *record = dflash_bench_record(bench);
  if (record == NULL) return DFLASH_OUT_OF_MEMORY;
  const char *refused = cJSON_GetStringValue(cJSON_GetObjectItem(record, "implausible"));
  char why[300] = "";
  if (refused != NULL) snprintf(why, sizeof why, "%s", refused);
  DflashStatus status = dflash_session_send(bench->run.session, record);
  if (status != DFLASH_OK) return status;
  return send_case(bench, NULL, refused != NULL ? DFLASH_OUTCOME_NOT_TRUSTED : DFLASH_OUTCOME_PASS,
                   refused != NULL ? why : NULL);
}

static void bench_close(DflashBenchCase *bench) {
  if (bench->run.session != NULL) bench->run.session->backend->sequence_close(bench->sequence);
  dflash_token_buffers_close(&bench->tokens);
  dflash_token_buffers_close(&bench->first);
  dflash_samples_close(&bench->samples);
  free(bench->tap_row);
  free(bench->round_rows);
  dflash_case_run_close(&bench->run);
  free(bench);
}

DflashStatus dflash_bench_case(DflashSession *session, int64_t index, DflashError *error) {
  DflashBenchCase *bench = calloc(1, sizeof *bench);
  if (bench == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a benchmark");
  bench->begin_ns = dflash_clock_ns();
  DflashStatus status = check_request(session, error);
  if (status == DFLASH_OK) status = dflash_clock_prove(dflash_clock_ns, &bench->proof, error);
  if (status == DFLASH_OK) status = dflash_case_run_open(&bench->run, session, index, "bench", error);
  if (status == DFLASH_OK && !bench->run.resumed) status = prepare_round(bench, error);
  if (status == DFLASH_OK && !bench->run.resumed && session->options->peers != NULL)
    status = dflash_peers_check(session->options->peers, &bench->run, error);
  if (status != DFLASH_OK || bench->run.resumed) goto out;
  DflashError failure = {0};
  dflash_session_progress(session, "parity before timing");
  status = prove_parity(bench, &failure);
  if (status == DFLASH_OK) status = prepare_timed(bench, &failure);
  const DflashVerdict *first = dflash_verdicts_first(&bench->run.verdicts);
  if (status == DFLASH_OK && first == NULL) status = take_samples(bench, &failure);
  if (status != DFLASH_OK || first != NULL)
    status = send_case(bench, first, status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR,
                       status != DFLASH_OK ? failure.message : NULL);
  else
    status = send_bench(bench);
out:
  bench_close(bench);
  return status;
}
