/* Timed blocks, and what the harness thinks of the times that the backend tells. */
#include <string.h>

#include "base/error.h"
#include "run/bench_clock.h"

static DflashBlockCall block_call(DflashBenchCase *bench, uint32_t flags) {
  const DflashCase *c = &bench->run.c;
  return (DflashBlockCall){.struct_size = sizeof(DflashBlockCall),
                           .flags = flags,
                           .anchor_pos = c->anchor_pos,
                           .anchor_token = c->anchor_token,
                           .rows = c->sizes.rows,
                           .n_draft = c->sizes.n_draft,
                           .head_width = c->sizes.head_width,
                           .h = c->h,
                           .tokens = &bench->tokens.tokens};
}

static DflashStatus rewind_and_push(DflashBenchCase *bench, DflashError *error) {
  const DflashBackend *b = bench->run.session->backend;
  DflashStatus status = b->truncate(bench->sequence, bench->round_pos, error);
  if (status != DFLASH_OK) return status;
  return b->push(bench->sequence, bench->round_pos, bench->round_rows, bench->run.session->options->round, error);
}

static bool same_tokens(const DflashTokenBuffers *a, const DflashTokenBuffers *b) {
  return memcmp(a->chosen.data, b->chosen.data, a->chosen.count * sizeof(float)) == 0 &&
         memcmp(a->plain.data, b->plain.data, a->plain.count * sizeof(float)) == 0;
}

DflashStatus dflash_bench_block(DflashBenchCase *bench, uint32_t flags, double *device, double *wall, double *cpu,
                                DflashError *error) {
  DflashSession *s = bench->run.session;
  DflashBlockCall call = block_call(bench, flags);
  DflashBlockTime time = {.struct_size = sizeof time};
  if (s->options->cold) {
    DflashStatus status = s->backend->evict_caches(s->model, error);
    if (status != DFLASH_OK) return status;
  }
  bench->check = "block";
  dflash_token_buffers_poison(&bench->tokens);
  uint64_t cpu_begin = dflash_clock_cpu_ns(), begin = dflash_clock_ns();
  DflashStatus status = s->options->round > 0 ? rewind_and_push(bench, error) : DFLASH_OK;
  if (status == DFLASH_OK) status = s->backend->block(bench->sequence, &call, error);
  *wall = (double)(dflash_clock_ns() - begin);
  *cpu = (double)(dflash_clock_cpu_ns() - cpu_begin);
  if (status == DFLASH_OK) status = s->backend->block_time(bench->sequence, &time, error);
  if (status != DFLASH_OK) return status;
  bool round = s->options->round > 0;
  *device = (double)time.device_ns + (round ? (double)time.context_ns : 0);
  bench->resolution_ns = time.resolution_ns;
  bench->clock = time.clock;
  bench->check = "clock";
  const DflashCallTime told = {(double)time.device_ns, *wall, round ? (double)time.context_ns : 0};
  status = dflash_bench_check_call(bench, &told, error);
  if (status != DFLASH_OK) return status;
  bench->check = "timed block";
  if (bench->first.chosen.data != NULL && !same_tokens(&bench->first, &bench->tokens))
    return dflash_error_set(error, DFLASH_INTERNAL, "a timed block gave other tokens than the verified one");
  return DFLASH_OK;
}

/* A block as short as there is: 2 rows, one draft, as few logits as there are candidates. A clock that tells the time
 * of another block says too much of it. */
static DflashStatus short_block(DflashBenchCase *bench, DflashError *error) {
  DflashSession *s = bench->run.session;
  DflashBlockCall call = block_call(bench, 0);
  DflashBlockTime time = {.struct_size = sizeof time};
  call.rows = 2;
  call.n_draft = 1;
  call.head_width = s->geometry->selector_top;
  bench->check = "block";
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = s->backend->block(bench->sequence, &call, error);
  double wall = (double)(dflash_clock_ns() - begin);
  if (status == DFLASH_OK) status = s->backend->block_time(bench->sequence, &time, error);
  if (status != DFLASH_OK) return status;
  bench->check = "clock";
  const DflashCallTime told = {(double)time.device_ns, wall, 0};
  return dflash_bench_check_call(bench, &told, error);
}

DflashStatus dflash_bench_alternate(DflashBenchCase *bench, DflashError *error) {
  DflashCallTime best = {0}; /* the one that the clock covers best */
  DflashStatus status = DFLASH_OK;
  for (int i = 0; status == DFLASH_OK && i < 5; i++) {
    DflashCallTime time = {0};
    double cpu;
    status = short_block(bench, error);
    if (status == DFLASH_OK) status = dflash_bench_block(bench, 0, &time.device_ns, &time.wall_ns, &cpu, error);
    if (i == 0 || time.device_ns * best.wall_ns > best.device_ns * time.wall_ns) best = time;
  }
  if (status != DFLASH_OK) return status;
  bench->check = "clock";
  return dflash_bench_check_cover(bench, best.device_ns, best.wall_ns, error);
}
