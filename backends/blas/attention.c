/* Attention of a group of query rows at a time. The group's queries share a kv head; its keys are the panels of the
 * context that its first row sees, then the block's own. Where a key stands in the sums follows from its position
 * alone, so a stage alone and a block give equal bits. */
#include <math.h>
#include <string.h>

#include "run.h"

typedef struct Attention {
  const DflashRun *run;
  const float *q;
  float *out;
  int64_t window, end; /* positions before `end` are the context that a block may see */
  int64_t groups;      /* of query rows per kv head */
} Attention;

/* The queries of one group: rows of the block times the query heads of one kv head, in that order. */
typedef struct Group {
  int64_t head, first; /* kv head; first query */
  int rows;
  int64_t begin;           /* the first position seen */
  int64_t aligned, panels; /* the position of the first panel; panels of the context */
} Group;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t panels_of(int64_t lanes) { return (lanes + PANEL - 1) / PANEL; }

/* The first position that a block row sees. */
static int64_t seen_from(const Attention *a, int64_t row) {
  const int64_t own = a->run->position + row;
  return a->window > 0 ? larger(a->run->first, own - (a->window - 1)) : a->run->first;
}

int64_t dflash_attention_lanes(const DflashGeometry *g, int64_t layer, int64_t len, int64_t rows) {
  const int64_t window = dflash_geometry_window(g, layer);
  const int64_t seen = window > 0 ? smaller(len, window) : len;
  return (panels_of(seen + PANEL - 1) + panels_of(rows) + TILE_PANELS_MAX) * PANEL;
}

static Group make_group(const Attention *a, int64_t unit) {
  const DflashGeometry *g = &a->run->model->geometry;
  const int64_t size = a->run->model->options.kernel->group, rep = dflash_geometry_rep(g);
  Group group = {.head = unit / a->groups, .first = unit % a->groups * size};
  group.rows = (int)smaller(size, rep * a->run->rows - group.first);
  group.begin = seen_from(a, group.first / rep);
  group.aligned = group.begin / PANEL * PANEL;
  if (group.begin < a->end) group.panels = panels_of(a->end - group.aligned);
  return group;
}

static int64_t query_at(const Attention *a, const Group *group, int m) {
  const DflashGeometry *g = &a->run->model->geometry;
  const int64_t rep = dflash_geometry_rep(g), row = (group->first + m) / rep;
  return (row * g->heads + group->head * rep + (group->first + m) % rep) * g->head_dim;
}

static void pack_queries(const Attention *a, const Group *group, float *packed) {
  for (int m = 0; m < group->rows; m++) {
    const float *q = a->q + query_at(a, group, m);
    for (int64_t i = 0; i < a->run->model->geometry.head_dim; i++) packed[i * group->rows + m] = q[i];
  }
}

/* A run of panels by the group's packed rows; sums of a tile past the last panel land in spare room. */
static void multiply_panels(const Attention *a, int rows, DflashTile tile, int64_t panels) {
  const DflashKernel *kernel = a->run->model->options.kernel;
  const int step = kernel->panels[FORM_F32];
  const int64_t stride = tile.panel_stride;
  for (int64_t p = 0; p < panels; p += step) {
    tile.panel_stride = p + step <= panels ? stride : 0;
    kernel->tile[FORM_F32][rows - 1](&tile);
    tile.weights = (const unsigned char *)tile.weights + step * stride;
    tile.sums += (int64_t)step * rows * PANEL;
  }
}

static void score_keys(const Attention *a, const Group *group, const DflashStore *store, int64_t position,
                       int64_t panels, const float *packed, float *scores) {
  const int64_t dim = store->head_dim;
  const size_t room = (size_t)((panels + TILE_PANELS_MAX - 1) * group->rows * PANEL);
  memset(scores, 0, room * sizeof(float));
  const DflashTile tile = {.weights = dflash_store_keys(store, group->head, position),
                           .panel_stride = dim * PANEL * (int64_t)sizeof(float),
                           .column_stride = PANEL, .x = packed, .columns = dim, .sums = scores};
  multiply_panels(a, group->rows, tile, panels);
}

static void mix_values(const Attention *a, const Group *group, const DflashStore *store, int64_t position,
                       int64_t count, const float *weights, float *mixed) {
  const DflashTile tile = {.weights = dflash_store_values(store, group->head, position),
                           .panel_stride = PANEL * (int64_t)sizeof(float),
                           .column_stride = store->value_width, .x = weights, .columns = count, .sums = mixed};
  multiply_panels(a, group->rows, tile, store->value_width / PANEL);
}

static void store_rows(const Attention *a, const Group *group, const float *mixed, const double *totals) {
  const int64_t dim = a->run->model->geometry.head_dim;
  for (int m = 0; m < group->rows; m++) {
    float *out = a->out + query_at(a, group, m);
    for (int64_t i = 0; i < dim; i++)
      out[i] = (float)(mixed[(i / PANEL * group->rows + m) * PANEL + i % PANEL] / totals[m]);
  }
}

static void attend(const Attention *a, const Group *group, const DflashWorkerScratch *scratch) {
  const DflashRun *run = a->run;
  const int64_t rep = dflash_geometry_rep(&run->model->geometry), dim = run->model->geometry.head_dim;
  const int64_t own = group->panels * PANEL, own_panels = panels_of(run->rows);
  int64_t begin[GROUP_MAX];
  double totals[GROUP_MAX];
  for (int m = 0; m < group->rows; m++)
    begin[m] = group->panels ? smaller(seen_from(a, (group->first + m) / rep), a->end) - group->aligned : 0;
  pack_queries(a, group, scratch->query);
  if (group->panels)
    score_keys(a, group, run->store, group->aligned, group->panels, scratch->query, scratch->scores);
  score_keys(a, group, run->own, 0, own_panels, scratch->query, scratch->scores + own * group->rows);
  const DflashSoftmax softmax = {.scores = scratch->scores, .panels = group->panels + own_panels, .rows = group->rows,
                                 .begin = begin, .context = group->panels ? a->end - group->aligned : 0, .own = own,
                                 .lanes = own + run->rows, .scale = (float)(1.0 / sqrt((double)dim)),
                                 .weights = scratch->weights, .totals = totals};
  run->model->options.kernel->softmax(&softmax);
  memset(scratch->mixed, 0, (size_t)((panels_of(dim) + 1) * group->rows * PANEL) * sizeof(float));
  if (group->panels)
    mix_values(a, group, run->store, group->begin, a->end - group->begin,
               scratch->weights + (group->begin - group->aligned) * group->rows, scratch->mixed);
  mix_values(a, group, run->own, 0, run->rows, scratch->weights + own * group->rows, scratch->mixed);
  store_rows(a, group, scratch->mixed, totals);
}

static void attend_units(void *context, int64_t begin, int64_t end, int worker) {
  const Attention *a = context;
  const DflashWorkerScratch scratch = dflash_workspace_worker(a->run->workspace, worker);
  for (int64_t unit = begin; unit < end; unit++) {
    const Group group = make_group(a, unit);
    attend(a, &group, &scratch);
  }
}

void dflash_run_attention(const DflashRun *run, int64_t layer, const float *q, const float *k, const float *v,
                          float *out) {
  const DflashGeometry *g = &run->model->geometry;
  const int64_t size = run->model->options.kernel->group, queries = dflash_geometry_rep(g) * run->rows;
  Attention a = {.run = run, .q = q, .out = out, .window = dflash_geometry_window(g, layer)};
  a.end = smaller(run->position, run->first + run->len);
  a.groups = (queries + size - 1) / size;
  dflash_store_restart(run->own, 0);
  dflash_store_append(run->own, k, v, run->rows);
  dflash_pool_run(run->model->pool, g->kv_heads * a.groups, 1, attend_units, &a);
}
