/* Attention of a batch of groups of query rows at a time. A group's queries share a kv head; its keys are the panels
 * of the context that its first row sees, then the block's own. Where a key stands in the sums follows from its
 * position alone, so a stage alone and a block give equal bits. The groups of a batch share the kv head and take turns
 * at blocks of keys, which so come from memory once. */
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
  float *query, *scores, *mixed;
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

static Group make_group(const Attention *a, int64_t unit, int place, const DflashWorkerScratch *scratch) {
  const DflashGeometry *g = &a->run->model->geometry;
  const int64_t size = a->run->model->options.kernel->group, rep = dflash_geometry_rep(g);
  Group group = {.head = unit / a->groups, .first = unit % a->groups * size};
  group.rows = (int)smaller(size, rep * a->run->rows - group.first);
  group.begin = seen_from(a, group.first / rep);
  group.aligned = group.begin / PANEL * PANEL;
  if (group.begin < a->end) group.panels = panels_of(a->end - group.aligned);
  group.query = scratch->query + place * g->head_dim * GROUP_MAX;
  group.scores = scratch->scores + place * a->run->workspace->attention_lanes * GROUP_MAX;
  group.mixed = scratch->mixed + (size_t)place * scratch->mixed_stride;
  return group;
}

static int64_t query_at(const Attention *a, const Group *group, int m) {
  const DflashGeometry *g = &a->run->model->geometry;
  const int64_t rep = dflash_geometry_rep(g), row = (group->first + m) / rep;
  return (row * g->heads + group->head * rep + (group->first + m) % rep) * g->head_dim;
}

static void pack_queries(const Attention *a, const Group *group) {
  for (int m = 0; m < group->rows; m++) {
    const float *q = a->q + query_at(a, group, m);
    for (int64_t i = 0; i < a->run->model->geometry.head_dim; i++) group->query[i * group->rows + m] = q[i];
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

/* Scores of `panels` panels from the lane `lane` on. */
static void score_keys(const Attention *a, const Group *group, const DflashStore *store, int64_t position,
                       int64_t panels, int64_t lane) {
  float *scores = group->scores + lane * group->rows;
  const size_t room = (size_t)((panels + TILE_PANELS_MAX - 1) * group->rows * PANEL);
  memset(scores, 0, room * sizeof(float));
  const DflashTile tile = {.weights = dflash_store_keys(store, group->head, position),
                           .panel_stride = store->head_dim * PANEL * (int64_t)sizeof(float),
                           .column_stride = PANEL,
                           .x = group->query,
                           .columns = store->head_dim,
                           .sums = scores};
  multiply_panels(a, group->rows, tile, panels);
}

static void mix_values(const Attention *a, const Group *group, const DflashStore *store, int64_t position,
                       int64_t count, int64_t lane) {
  const DflashTile tile = {.weights = dflash_store_values(store, group->head, position),
                           .panel_stride = PANEL * (int64_t)sizeof(float),
                           .column_stride = store->value_width,
                           .x = group->scores + lane * group->rows,
                           .columns = count,
                           .sums = group->mixed};
  multiply_panels(a, group->rows, tile, store->value_width / PANEL);
}

enum { KEY_PANELS = BLOCK_COLUMNS / PANEL };

/* The groups see nearly the same keys: the widest decides how many blocks there are. */
static void score_batch(const Attention *a, const Group *groups, int count) {
  for (int64_t panel = 0; panel < groups[0].panels; panel += KEY_PANELS)
    for (int i = 0; i < count; i++)
      if (panel < groups[i].panels)
        score_keys(a, &groups[i], a->run->store, groups[i].aligned + panel * PANEL,
                   smaller(KEY_PANELS, groups[i].panels - panel), panel * PANEL);
  for (int i = 0; i < count; i++)
    score_keys(a, &groups[i], a->run->own, 0, panels_of(a->run->rows), groups[i].panels * PANEL);
}

static void weigh(const Attention *a, const Group *group, double *totals) {
  const DflashGeometry *g = &a->run->model->geometry;
  int64_t begin[GROUP_MAX];
  for (int m = 0; m < group->rows; m++)
    begin[m] =
        group->panels ? smaller(seen_from(a, (group->first + m) / dflash_geometry_rep(g)), a->end) - group->aligned : 0;
  const DflashSoftmax softmax = {.scores = group->scores,
                                 .panels = group->panels + panels_of(a->run->rows),
                                 .rows = group->rows,
                                 .begin = begin,
                                 .context = group->panels ? a->end - group->aligned : 0,
                                 .own = group->panels * PANEL,
                                 .lanes = group->panels * PANEL + a->run->rows,
                                 .scale = (float)(1.0 / sqrt((double)g->head_dim)),
                                 .totals = totals};
  a->run->model->options.kernel->softmax(&softmax);
}

static void mix_batch(const Attention *a, const Group *groups, int count) {
  const int64_t keys = groups[0].panels ? a->end - groups[0].begin : 0;
  for (int64_t key = 0; key < keys; key += BLOCK_COLUMNS)
    for (int i = 0; i < count; i++) {
      const int64_t position = groups[i].begin + key;
      if (position < a->end)
        mix_values(a, &groups[i], a->run->store, position, smaller(BLOCK_COLUMNS, a->end - position),
                   position - groups[i].aligned);
    }
  for (int i = 0; i < count; i++) mix_values(a, &groups[i], a->run->own, 0, a->run->rows, groups[i].panels * PANEL);
}

static void store_rows(const Attention *a, const Group *group, const double *totals) {
  for (int m = 0; m < group->rows; m++) {
    float *out = a->out + query_at(a, group, m);
    for (int64_t i = 0; i < a->run->model->geometry.head_dim; i++)
      out[i] = (float)(group->mixed[(i / PANEL * group->rows + m) * PANEL + i % PANEL] / totals[m]);
  }
}

/* Groups unit .. unit + count of one kv head, in the order of their rows. */
static void attend(const Attention *a, int64_t unit, int count, const DflashWorkerScratch *scratch) {
  Group groups[BATCH_GROUPS] = {{0}};
  double totals[BATCH_GROUPS][GROUP_MAX];
  for (int i = 0; i < count; i++) {
    groups[i] = make_group(a, unit + i, i, scratch);
    pack_queries(a, &groups[i]);
    memset(groups[i].mixed, 0, scratch->mixed_stride * sizeof(float));
  }
  score_batch(a, groups, count);
  for (int i = 0; i < count; i++) weigh(a, &groups[i], totals[i]);
  mix_batch(a, groups, count);
  for (int i = 0; i < count; i++) store_rows(a, &groups[i], totals[i]);
}

static void attend_units(void *context, int64_t begin, int64_t end, int worker) {
  const Attention *a = context;
  const DflashWorkerScratch scratch = dflash_workspace_worker(a->run->workspace, worker);
  for (int64_t unit = begin, count; unit < end; unit += count) {
    count = smaller(smaller(BATCH_GROUPS, end - unit), a->groups - unit % a->groups);
    attend(a, unit, (int)count, &scratch);
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
