/* The kernels that choose the tokens. */
#include "sequence.h"

/* What is left of each row after the passes of the choice: so many sorted lists of its best. */
typedef struct Lists {
  CudaAddress at, other; /* other: room for one list a row */
  int64_t count;
} Lists;

/* One list a row, or as many as the next kernel merges by itself. */
static bool enough(int64_t lists, int64_t top) {
  return lists == 1 || (top <= CUDA_FEW_TOP && lists <= CUDA_FEW_LISTS);
}

static Lists find_lists(CudaRun *run, CudaAddress arrived) {
  const CudaBlock *b = run->block;
  TopArgs a = {.stamp = cuda_run_stamp(run),
               .logits = b->stages[DFLASH_STAGE_HEAD_LOGITS],
               .arrived = arrived,
               .count = run->head_width,
               .top = (int32_t)run->model->geometry.selector_top};
  int kernel = a.top <= CUDA_FEW_TOP ? CUDA_KERNEL_top_few : CUDA_KERNEL_top;
  for (int pass = 0;; pass++) {
    const uint32_t chunks = cuda_groups(a.count, CUDA_TOP_CHUNK);
    a.found = b->entries[pass & 1];
    cuda_run_launch(run, kernel, (CudaGrid){chunks, (uint32_t)run->n_draft, 1, 0}, &a);
    if (enough(chunks, a.top)) return (Lists){a.found, b->entries[1 - (pass & 1)], chunks};
    kernel = CUDA_KERNEL_top;
    a.stamp = 0;
    a.entries = a.found;
    a.count = (int64_t)chunks * a.top;
  }
}

void cuda_run_tokens(CudaRun *run) {
  const DflashModel *m = run->model;
  const CudaBlock *b = run->block;
  const int64_t top = m->geometry.selector_top;
  const CudaAddress arrived = b->pairs + (uint64_t)(run->n_draft * top * top) * sizeof(float);
  const Lists lists = find_lists(run, arrived);
  const ScoresArgs s = {.inputs = b->inputs,
                        .predecessor = m->predecessor.weights,
                        .successor = m->successor.weights,
                        .hidden = b->stages[DFLASH_STAGE_SELECTOR_HIDDEN],
                        .logits = b->stages[DFLASH_STAGE_HEAD_LOGITS],
                        .lists = lists.at,
                        .best = lists.count == 1 ? lists.at : lists.other,
                        .pairs = b->pairs,
                        .arrived = arrived,
                        .result = b->result,
                        .end_stamp = run->stamped ? b->stamps + run->stamp_count * sizeof(uint64_t) : 0,
                        .width = run->head_width,
                        .before_storage = m->predecessor.storage,
                        .after_storage = m->successor.storage,
                        .rank = (int32_t)m->geometry.selector_rank,
                        .top = (int32_t)top,
                        .rows = (int32_t)run->n_draft,
                        .count = (int32_t)lists.count};
  cuda_run_launch(run, CUDA_KERNEL_scores, (CudaGrid){(uint32_t)(1 + (run->n_draft - 1) * top), 1, 1, 0}, &s);
}
