#include <string.h>

#include "matrix.h"

/* One product of at most PRODUCT_ROWS rows. */
typedef struct Run {
  const DflashProduct *product;
  const DflashMatrix *matrix;
  const float *x;
  float *packed, *out;
  int64_t count, outputs;
  bool many;    /* groups of rows: blocks are opened, and shared by a batch of tiles */
  int32_t form; /* in which the tiles read */
} Run;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Columns begin .. end of every group of rows; a column field is folded in here, one rounding. */
static void pack_columns(void *context, int64_t begin, int64_t end, int worker) {
  const Run *run = context;
  const int64_t cols = run->matrix->cols;
  const float *field = run->matrix->columns;
  (void)worker;
  for (int64_t first = 0; first < run->count; first += run->product->kernel->group) {
    const int64_t rows = smaller(run->product->kernel->group, run->count - first);
    float *out = run->packed + first * cols;
    for (int64_t m = 0; m < rows; m++) {
      const float *x = run->x + (first + m) * cols;
      for (int64_t k = begin; k < end; k++) out[k * rows + m] = field ? x[k] * field[k] : x[k];
    }
  }
}

/* Opens the tile's panels over one block of columns and points the tile at them. */
static void open_block(const Run *run, DflashTile *tile, int panels, float *opened) {
  for (int p = 0; p < panels; p++)
    run->product->kernel->open[run->matrix->form]((const unsigned char *)tile->weights + p * tile->panel_stride,
                                                  tile->columns, opened + p * BLOCK_COLUMNS * PANEL);
  tile->weights = opened;
  if (panels > 1) tile->panel_stride = BLOCK_COLUMNS * PANEL * (int64_t)sizeof(float);
}

/* A tile at a panel. One that reaches past the last panel repeats that panel, and its other sums are dropped. */
static DflashTile make_tile(const Run *run, int64_t panel, int64_t panels, float *sums) {
  const DflashMatrix *m = run->matrix;
  const int64_t groups = m->cols / Q4_GROUP;
  DflashTile tile = {.weights = (const unsigned char *)m->pages.data + panel * m->panel_stride,
                     .panel_stride = panels > 1 ? m->panel_stride : 0,
                     .column_stride = PANEL,
                     .sums = sums};
  if (m->form == FORM_Q4) {
    tile.scale_stride = panels > 1 ? groups * PANEL : 0;
    tile.scales = m->scales + panel * groups * PANEL;
  }
  return tile;
}

static void multiply_block(const Run *run, DflashTile tile, int panels, int64_t column, float *opened) {
  const DflashKernel *kernel = run->product->kernel;
  float *sums = tile.sums;
  tile.columns = smaller(BLOCK_COLUMNS, run->matrix->cols - column);
  tile.weights = (const unsigned char *)tile.weights + dflash_matrix_panel_bytes(run->matrix->form, column);
  if (run->matrix->form == FORM_Q4) tile.scales += column / Q4_GROUP * PANEL;
  if (run->form != run->matrix->form) open_block(run, &tile, panels, opened);
  for (int64_t first = 0; first < run->count; first += kernel->group) {
    const int64_t rows = smaller(kernel->group, run->count - first);
    tile.x = run->packed + first * run->matrix->cols + column * rows;
    tile.sums = sums + first * kernel->panels[run->form] * PANEL;
    kernel->tile[run->form][rows - 1](&tile);
  }
}

static void store_sums(const Run *run, const float *sums, int64_t panel, int64_t panels) {
  const int group = run->product->kernel->group, tile_panels = run->product->kernel->panels[run->form];
  const float *scales = run->matrix->form == FORM_Q8 ? run->matrix->scales : NULL;
  for (int64_t m = 0; m < run->count; m++) {
    const int64_t first = m / group * group, rows = smaller(group, run->count - first);
    for (int64_t p = 0; p < panels; p++) {
      const float *sum = sums + (first * tile_panels + p * rows + m - first) * PANEL;
      const int64_t output = (panel + p) * PANEL, lanes = smaller(PANEL, run->outputs - output);
      float *out = run->out + m * run->outputs + output;
      for (int64_t l = 0; l < lanes; l++) out[l] = scales ? sum[l] * scales[output + l] : sum[l];
    }
  }
}

/* Tiles begin .. end take turns at every block of columns. */
static void run_batch(const Run *run, int64_t begin, int64_t end, const DflashWorkerScratch *scratch) {
  const int tile_panels = run->product->kernel->panels[run->form];
  const int64_t all = (run->outputs + PANEL - 1) / PANEL, size = run->count * tile_panels * PANEL;
  memset(scratch->sums, 0, (size_t)((end - begin) * size) * sizeof(float));
  for (int64_t column = 0; column < run->matrix->cols; column += BLOCK_COLUMNS)
    for (int64_t tile = begin; tile < end; tile++) {
      const int64_t panels = smaller(tile_panels, all - tile * tile_panels);
      multiply_block(run, make_tile(run, tile * tile_panels, panels, scratch->sums + (tile - begin) * size),
                     (int)panels, column, scratch->opened);
    }
  for (int64_t tile = begin; tile < end; tile++)
    store_sums(run, scratch->sums + (tile - begin) * size, tile * tile_panels,
               smaller(tile_panels, all - tile * tile_panels));
}

static void run_tiles(void *context, int64_t begin, int64_t end, int worker) {
  const Run *run = context;
  const DflashWorkerScratch scratch = dflash_workspace_worker(run->product->workspace, worker);
  const int64_t step = run->many ? BATCH_TILES : 1;
  for (int64_t tile = begin; tile < end; tile += step) run_batch(run, tile, smaller(tile + step, end), &scratch);
}

/* Work that is worth handing to another thread, in multiplications. */
static int64_t grain(int64_t work) { return 1 + (1 << 20) / (work > 0 ? work : 1); }

static void multiply_rows(const DflashProduct *product, const DflashMatrix *matrix, const float *x, int64_t count,
                          int64_t outputs, float *out) {
  Run run = {.product = product,
             .matrix = matrix,
             .x = x,
             .out = out,
             .count = count,
             .outputs = outputs,
             .packed = product->workspace->packed,
             .form = matrix->form};
  run.many = count > (product->kernel->open_groups - 1) * product->kernel->group;
  if (run.many && product->kernel->open[matrix->form]) run.form = matrix->form == FORM_Q4 ? FORM_Q4_OPEN : FORM_F32;
  dflash_pool_run(product->pool, matrix->cols, grain(count * 16), pack_columns, &run);
  const int64_t width = product->kernel->panels[run.form] * PANEL, tiles = (outputs + width - 1) / width;
  dflash_pool_run(product->pool, tiles, grain(width * matrix->cols * count), run_tiles, &run);
}

void dflash_matrix_multiply(const DflashProduct *product, const DflashMatrix *matrix, const float *x, int64_t count,
                            int64_t outputs, float *out) {
  for (int64_t row = 0; row < count; row += PRODUCT_ROWS)
    multiply_rows(product, matrix, x + row * matrix->cols, smaller(PRODUCT_ROWS, count - row), outputs,
                  out + row * outputs);
}

/* ---- values ---- */

typedef struct Values {
  const DflashKernel *kernel;
  const DflashMatrix *matrix;
  int64_t begin, end;
  float *out;
  const DflashWorkspace *workspace;
} Values;

static void scatter(const Values *values, int64_t panel, int64_t column, int64_t count, const float *opened) {
  const DflashMatrix *m = values->matrix;
  for (int64_t row = panel * PANEL; row < (panel + 1) * PANEL; row++) {
    if (row < values->begin || row >= values->end) continue;
    float *out = values->out + (row - values->begin) * m->cols + column;
    for (int64_t k = 0; k < count; k++) {
      float value = opened[k * PANEL + row % PANEL];
      if (m->form == FORM_Q8) value *= m->scales[row] * m->columns[column + k];
      if (m->form == FORM_Q4)
        value *= m->scales[(panel * (m->cols / Q4_GROUP) + (column + k) / Q4_GROUP) * PANEL + row % PANEL];
      out[k] = value;
    }
  }
}

static void panel_values(void *context, int64_t begin, int64_t end, int worker) {
  const Values *values = context;
  const DflashMatrix *m = values->matrix;
  float *opened = dflash_workspace_worker(values->workspace, worker).opened;
  for (int64_t panel = values->begin / PANEL + begin; panel < values->begin / PANEL + end; panel++)
    for (int64_t column = 0; column < m->cols; column += BLOCK_COLUMNS) {
      const int64_t count = smaller(BLOCK_COLUMNS, m->cols - column);
      const unsigned char *weights =
          (const unsigned char *)m->pages.data + panel * m->panel_stride + dflash_matrix_panel_bytes(m->form, column);
      if (values->kernel->open[m->form])
        values->kernel->open[m->form](weights, count, opened);
      else
        memcpy(opened, weights, (size_t)(count * PANEL) * sizeof(float));
      scatter(values, panel, column, count, opened);
    }
}

void dflash_matrix_values(const DflashProduct *product, const DflashMatrix *matrix, int64_t begin, int64_t end,
                          float *out) {
  Values values = {product->kernel, matrix, begin, end, out, product->workspace};
  const int64_t panels = (end + PANEL - 1) / PANEL - begin / PANEL;
  dflash_pool_run(product->pool, panels, 1, panel_values, &values);
}
