/* The memory of a block, laid out in one piece. */
#include <string.h>

#include "abi.h"
#include "base/memory.h"
#include "sequence.h"

typedef struct StageRow {
  const char *name;
  int32_t scope, rows, width;
  int32_t inputs[DFLASH_STAGE_INPUTS];
} StageRow;

#define ROW(id, name, scope, group, rows, width, a, b, c, d, e) \
  [DFLASH_STAGE_##id] = {name,                                  \
                         DFLASH_SCOPE_##scope,                  \
                         DFLASH_ROWS_##rows,                    \
                         DFLASH_WIDTH_##width,                  \
                         {DFLASH_STAGE_##a, DFLASH_STAGE_##b, DFLASH_STAGE_##c, DFLASH_STAGE_##d, DFLASH_STAGE_##e}},
static const StageRow table[DFLASH_STAGE_COUNT] = {DFLASH_STAGES(ROW)};

const char *cuda_stage_name(int32_t stage) { return table[stage].name; }
int32_t cuda_stage_rows(int32_t stage) { return table[stage].rows; }
int32_t cuda_stage_input(int32_t stage, int index) { return table[stage].inputs[index]; }

int64_t cuda_stage_layers(const DflashGeometry *g, int32_t stage) {
  return table[stage].scope == DFLASH_SCOPE_LAYER ? g->layers : 1;
}

int64_t cuda_stage_width(const DflashGeometry *g, int32_t stage) {
  switch (table[stage].width) {
  case DFLASH_WIDTH_HIDDEN:
    return g->hidden;
  case DFLASH_WIDTH_Q:
    return g->heads * g->head_dim;
  case DFLASH_WIDTH_KV:
    return g->kv_heads * g->head_dim;
  case DFLASH_WIDTH_KERNEL:
    return dflash_geometry_kernel_width(g);
  case DFLASH_WIDTH_INTERMEDIATE:
    return g->intermediate;
  case DFLASH_WIDTH_HEAD:
    return g->vocab;
  case DFLASH_WIDTH_RANK:
    return g->selector_rank;
  default:
    return g->selector_top;
  }
}

DflashStatus cuda_check_stage(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error) {
  if (stage < 0 || stage >= DFLASH_STAGE_COUNT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: no stage %d", (int)stage);
  const int64_t layers = cuda_stage_layers(&model->geometry, stage);
  if (layer >= 0 && layer < layers) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s has no layer %lld, there are %lld",
                          table[stage].name, (long long)layer, (long long)layers);
}

int64_t cuda_widest_product(const DflashGeometry *g) {
  int64_t widest = g->hidden;
  if (g->intermediate > widest) widest = g->intermediate;
  if (g->heads * g->head_dim > widest) widest = g->heads * g->head_dim;
  return widest;
}

int64_t cuda_result_words(int64_t n_draft, int64_t top) { return 2 * n_draft + 2 * n_draft * top + 1; }

static int64_t chunks_of(int64_t entries) { return (entries + CUDA_TOP_CHUNK - 1) / CUDA_TOP_CHUNK; }

/* Blocks of attention wanted of a device that runs two on a processor. */
static int32_t choose_parts(const DflashModel *model) {
  const DflashGeometry *g = &model->geometry;
  const int64_t tiles = (g->block * (g->heads / g->kv_heads) + CUDA_QUERIES - 1) / CUDA_QUERIES;
  int64_t splits = model->options.splits;
  if (splits == 0) splits = (2 * model->device.traits.processors + g->kv_heads * tiles - 1) / (g->kv_heads * tiles);
  if (splits > CUDA_MOST_PARTS - 1) splits = CUDA_MOST_PARTS - 1;
  return (int32_t)(splits < 1 ? 1 : splits) + 1;
}

/* Of a block, and those that the fast path adds to a short one. */
static int64_t most_rows(const DflashModel *model) {
  const int64_t least = cuda_fast_input_rows(model, model->geometry.block);
  return model->geometry.block > least ? model->geometry.block : least;
}

static uint64_t stage_bytes(const DflashModel *model, int32_t stage) {
  const DflashGeometry *g = &model->geometry;
  const int64_t rows = table[stage].rows == DFLASH_ROWS_DRAFT ? g->block - 1 : most_rows(model);
  return (uint64_t)(rows * cuda_stage_width(g, stage)) * sizeof(float);
}

static void place_stages(const DflashSequence *s, CudaBlock *block, uint64_t *total) {
  const DflashGeometry *g = &s->model->geometry;
  for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage < DFLASH_STAGE_SELECT; stage++) {
    const int64_t layers = s->capture ? cuda_stage_layers(g, stage) : 1;
    const uint64_t bytes = stage_bytes(s->model, stage);
    block->stages[stage] = cuda_place(total, bytes);
    block->layer_bytes[stage] = layers > 1 ? (bytes + 255) / 256 * 256 : 0;
    for (int64_t layer = 1; layer < layers; layer++) (void)cuda_place(total, bytes);
  }
}

static void place_fast(const DflashModel *model, CudaBlock *block, uint64_t *total) {
  const uint64_t floats = model->fast.kernel ? sizeof(float) : 0;
  const int rows = model->fast.tall ? FAST_TALL_ROWS : FAST_ROWS;
  block->fast_qkv = cuda_place(total, (uint64_t)FAST_QKV_HALVES * rows * FAST_QKV_ROWS * floats);
  block->fast_kernel = cuda_place(total, (uint64_t)FAST_KERNEL_HALVES * rows * FAST_KERNEL_ROWS * floats);
  block->fast_parts = cuda_place(total, (uint64_t)FAST_KV_HEADS * (FAST_SPLITS + 1) * fast_split_floats(rows) * floats);
  block->fast_down = cuda_place(total, (uint64_t)FAST_DOWN_QUARTERS * rows * FAST_HIDDEN * floats);
  block->fast_sums = cuda_place(total, (uint64_t)rows * FAST_BLOCKS * floats);
}

/* Offsets, behind an address that is nobody's; *inputs: where what the host writes ends. */
static uint64_t lay_out(const DflashSequence *s, CudaBlock *block, uint64_t *inputs) {
  const DflashGeometry *g = &s->model->geometry;
  const uint64_t rows = (uint64_t)g->block, drafts = rows - 1, top = (uint64_t)g->selector_top;
  const uint64_t queries = rows * (uint64_t)g->heads, widest = (uint64_t)cuda_widest_product(g);
  uint64_t total = 256;
  block->capture = s->capture;
  block->inputs = cuda_place(&total, sizeof(CudaInputs));
  block->visible = cuda_place(&total, (uint64_t)g->layers * sizeof(CudaVisible));
  block->h = cuda_place(&total, (uint64_t)(most_rows(s->model) * g->hidden) * 4);
  *inputs = total - block->inputs;
  block->table = cuda_place(&total, rows * (uint64_t)g->head_dim * 4);
  place_stages(s, block, &total);
  block->parts = choose_parts(s->model);
  block->sums = cuda_place(&total, (uint64_t)block->parts * queries * 8);
  block->mixes = cuda_place(&total, (uint64_t)block->parts * queries * (uint64_t)g->head_dim * 4);
  place_fast(s->model, block, &total);
  block->words = cuda_place(&total, rows * widest);
  block->steps = cuda_place(&total, rows * (widest / CUDA_GROUP + 1) * 4);
  block->halves = cuda_place(&total, s->model->profile == DFLASH_PROFILE_F16 ? rows * widest * 4 : 0);
  block->exponents = cuda_place(&total, rows * 4);
  const int64_t first = chunks_of(g->vocab), second = chunks_of(first * g->selector_top);
  block->entries[0] = cuda_place(&total, drafts * (uint64_t)first * top * 8);
  block->entries[1] = cuda_place(&total, drafts * (uint64_t)second * top * 8);
  block->pairs = cuda_place(&total, drafts * top * top * 4 + sizeof(uint32_t));
  block->result = cuda_place(&total, (uint64_t)cuda_result_words((int64_t)drafts, g->selector_top) * 4);
  block->stamps = cuda_place(&total, (s->most_spans + 1) * sizeof(uint64_t));
  return total;
}

static void move(CudaBlock *block, CudaAddress base) {
  CudaAddress *const places[] = {&block->inputs,     &block->visible,   &block->h,         &block->table,
                                 &block->sums,       &block->mixes,     &block->fast_qkv,  &block->fast_kernel,
                                 &block->fast_parts, &block->fast_down, &block->fast_sums, &block->words,
                                 &block->steps,      &block->halves,    &block->exponents, &block->entries[0],
                                 &block->entries[1], &block->pairs,     &block->result,    &block->stamps};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) *places[i] += base;
  for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage < DFLASH_STAGE_SELECT; stage++) block->stages[stage] += base;
}

static DflashStatus open_host(DflashSequence *s, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  uint64_t total = s->input_bytes;
  s->host_result = cuda_place(&total, (uint64_t)cuda_result_words(g->block - 1, g->selector_top) * 4);
  s->host_stamps = cuda_place(&total, (s->most_spans + 1) * sizeof(uint64_t));
  return cuda_pinned_open(&s->model->device, total, "a block's inputs and answers", &s->inputs, error);
}

static uint32_t count_spans(const DflashGeometry *g) {
  int64_t count = 0;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) count += cuda_stage_layers(g, stage);
  return (uint32_t)count;
}

DflashStatus cuda_scratch_open(DflashSequence *s, DflashError *error) {
  s->most_spans = count_spans(&s->model->geometry);
  s->spans = dflash_alloc(s->most_spans, sizeof *s->spans);
  if (!s->spans) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for a sequence");
  const uint64_t bytes = lay_out(s, &s->block, &s->input_bytes);
  DflashStatus status = cuda_buffer_open(&s->model->device, bytes, "a block", &s->memory, error);
  if (status) return status;
  move(&s->block, s->memory.at);
  return open_host(s, error);
}
