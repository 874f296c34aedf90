/* Attention: softmax over the visible context and the block's own rows, one (row, head) at a time. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "oracle_attention.h"
#include "oracle_internal.h"
#include "oracle_likeness.h"
#include "oracle_math.h"

typedef struct Scratch {
  DflashHead head;
  DflashHeadScale scale;
} Scratch;

typedef struct Job {
  const DflashOracleCall *call;
  Scratch *scratch;              /* [threads] */
  double *likeness;              /* [rows] */
  double *total, *concentration; /* [rows, heads] */
} Job;

/* Context rows [*begin, *end) that the block's row sees. */
static void visible(const DflashOracleCall *call, int64_t row, int64_t *begin, int64_t *end) {
  int64_t first = call->context_first, len = call->sizes.context_len;
  int64_t window = dflash_geometry_window(call->geometry, call->layer);
  int64_t own = call->position + row, last = call->position < first + len ? call->position : first + len;
  int64_t from = window > 0 && own + 1 - window > first ? own + 1 - window : first;
  *begin = from - first;
  *end = last - first;
  if (*end < *begin) *end = *begin;
}

static const float *at(const float *base, int64_t offset) { return base ? base + offset : NULL; }

static void add_key(DflashHead *head, const DflashOracleCall *call, const float *const sigmas[], int k, int v,
                    int64_t offset) {
  head->k[head->keys] = call->inputs[k] + offset;
  head->v[head->keys] = call->inputs[v] + offset;
  head->k_sigma[head->keys] = at(sigmas[k], offset);
  head->v_sigma[head->keys] = at(sigmas[v], offset);
  head->keys++;
}

static void gather(const DflashOracleCall *call, DflashHead *head, int64_t row, int64_t a) {
  static const float *const none[DFLASH_STAGE_INPUTS] = {NULL};
  const DflashGeometry *g = call->geometry;
  const float *const *sigmas = call->chain ? call->sigmas : none;
  int64_t dim = g->head_dim, width = g->kv_heads * dim, kv = a / dflash_geometry_rep(g) * dim;
  int64_t begin, end, q = (row * g->heads + a) * dim;
  visible(call, row, &begin, &end);
  head->keys = 0;
  for (int64_t j = begin; j < end; j++) add_key(head, call, sigmas, 3, 4, j * width + kv);
  for (int64_t j = 0; j < call->sizes.rows; j++) add_key(head, call, sigmas, 1, 2, j * width + kv);
  head->context = end - begin;
  head->q = call->inputs[0] + q;
  head->half = call->half;
  head->codes = call->profile == DFLASH_PROFILE_I8;
  head->q_sigma = at(sigmas[0], q);
}

static void attend(DflashHead *head) {
  double max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < head->keys; j++) {
    head->score[j] = head->scale * dflash_dot(head->q, head->k[j], head->dim);
    if (!(head->score[j] <= max)) max = head->score[j];
  }
  for (int64_t j = 0; j < head->keys; j++) sum += head->p[j] = dflash_oracle_exp(head->score[j] - max);
  for (int64_t i = 0; i < head->dim; i++) head->mix[i] = 0;
  for (int64_t j = 0; j < head->keys; j++) {
    head->p[j] /= sum;
    for (int64_t i = 0; i < head->dim; i++) head->mix[i] += head->p[j] * head->v[j][i];
  }
}

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  Scratch *s = &job->scratch[worker];
  const DflashOracleCall *call = job->call;
  int64_t heads = call->geometry->heads, dim = call->geometry->head_dim;
  for (int64_t item = begin; item < end; item++) {
    gather(call, &s->head, item / heads, item % heads);
    s->head.likeness = call->chain && call->sigmas[2] ? job->likeness : NULL;
    attend(&s->head);
    if (dflash_oracle_scaled(call)) {
      dflash_head_scale_run(&s->scale, &s->head);
      job->total[item] = s->scale.total;
      job->concentration[item] = s->scale.concentration;
    }
    for (int64_t i = 0; i < dim; i++) {
      double own = dflash_oracle_scaled(call) ? s->scale.own[i] : 0;
      double inherited = dflash_oracle_scaled(call) ? s->scale.inherited[i] : 0;
      dflash_oracle_put(call, item * dim + i, s->head.mix[i], own, inherited, false);
    }
  }
}

/* An error of one score moves all channels of a head together. What is made of them next multiplies it by sums of
 * weights, and a product of two normal numbers has a wider tail than either: the fewer sources bring the row's
 * variance, the wider. */
static void widen_rows(const Job *job) {
  const DflashOracleCall *call = job->call;
  int64_t heads = call->geometry->heads, width = heads * call->geometry->head_dim;
  for (int64_t row = 0; row < call->sizes.rows; row++) {
    double total = 0, concentration = 0;
    for (int64_t a = 0; a < heads; a++) {
      total += job->total[row * heads + a];
      concentration += job->concentration[row * heads + a];
    }
    double share = total > 0 && concentration > 0 ? fmin(1, sqrt(concentration) / total) : 0;
    float factor = (float)sqrt(1 + (call->half ? 8 : 3) * share * share);
    for (int64_t i = 0; i < width; i++) call->chain[row * width + i] *= factor;
  }
}

static bool scratch_open(Scratch *s, const DflashOracleCall *call) {
  int64_t dim = call->geometry->head_dim, keys = call->sizes.context_len + call->sizes.rows;
  DflashHead *head = &s->head;
  head->dim = dim;
  head->scale = 1 / sqrt((double)dim);
  head->k = dflash_alloc((size_t)keys, 4 * sizeof *head->k);
  head->score = dflash_alloc((size_t)keys, 2 * sizeof *head->score);
  head->mix = dflash_alloc((size_t)dim, sizeof *head->mix);
  if (!head->k || !head->score || !head->mix) return false;
  head->v = head->k + keys, head->k_sigma = head->v + keys, head->v_sigma = head->k_sigma + keys;
  head->p = head->score + keys;
  return !dflash_oracle_scaled(call) || dflash_head_scale_open(&s->scale, dim, keys);
}

static void scratch_close(Scratch *s) {
  dflash_head_scale_close(&s->scale);
  free(s->head.mix);
  free(s->head.score);
  free((void *)s->head.k);
}

DflashStatus dflash_oracle_attention(const DflashOracleCall *call, DflashError *error) {
  int threads = dflash_pool_threads(call->pool);
  Job job = {.call = call,
             .scratch = dflash_alloc((size_t)threads, sizeof *job.scratch),
             .likeness = dflash_alloc((size_t)call->sizes.rows, sizeof *job.likeness)};
  size_t items = (size_t)(call->sizes.rows * call->geometry->heads);
  job.total = dflash_alloc(items, 2 * sizeof *job.total);
  job.concentration = job.total != NULL ? job.total + items : NULL;
  bool open = job.scratch != NULL && job.likeness != NULL && job.total != NULL;
  if (open)
    dflash_likeness(call->inputs[2], call->sizes.rows, call->geometry->kv_heads * call->geometry->head_dim,
                    job.likeness);
  for (int i = 0; open && i < threads; i++) open = scratch_open(&job.scratch[i], call);
  if (open) dflash_pool_run(call->pool, call->sizes.rows * call->geometry->heads, 1, run_heads, &job);
  if (open && call->chain) widen_rows(&job);
  for (int i = 0; job.scratch && i < threads; i++) scratch_close(&job.scratch[i]);
  free(job.total);
  free(job.scratch);
  free(job.likeness);
  return open ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for attention");
}
