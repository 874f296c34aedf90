/* The kernels that choose the tokens. */
#include "sequence.h"

/* Passes until one chunk of each row is left; returns where its candidates lie. */
static CudaAddress candidates(CudaRun *run) {
  const CudaBlock *b = run->block;
  TopArgs a = {.stamp = cuda_run_stamp(run),
               .logits = b->stages[DFLASH_STAGE_HEAD_LOGITS],
               .count = run->head_width,
               .top = (int32_t)run->model->geometry.selector_top};
  for (int pass = 0;; pass++) {
    const uint32_t chunks = cuda_groups(a.count, CUDA_TOP_CHUNK);
    a.found = b->entries[pass & 1];
    cuda_run_launch(run, CUDA_KERNEL_top, (CudaGrid){chunks, (uint32_t)run->n_draft, 1, 0}, &a);
    if (chunks == 1) return a.found;
    a.stamp = 0;
    a.entries = a.found;
    a.count = (int64_t)chunks * a.top;
  }
}

void cuda_run_tokens(CudaRun *run) {
  const DflashModel *m = run->model;
  const CudaBlock *b = run->block;
  const CudaAddress best = candidates(run);
  const PairsArgs p = {.inputs = b->inputs,
                       .predecessor = m->predecessor.weights,
                       .successor = m->successor.weights,
                       .best = best,
                       .hidden = b->stages[DFLASH_STAGE_SELECTOR_HIDDEN],
                       .pairs = b->pairs,
                       .before_storage = m->predecessor.storage,
                       .after_storage = m->successor.storage,
                       .rank = (int32_t)m->geometry.selector_rank,
                       .top = (int32_t)m->geometry.selector_top};
  const WalkArgs w = {.logits = b->stages[DFLASH_STAGE_HEAD_LOGITS],
                      .best = best,
                      .pairs = b->pairs,
                      .result = b->result,
                      .end_stamp = run->stamped ? b->stamps + run->stamp_count * sizeof(uint64_t) : 0,
                      .width = run->head_width,
                      .rows = (int32_t)run->n_draft,
                      .top = p.top};
  cuda_run_launch(run, CUDA_KERNEL_pairs, (CudaGrid){(uint32_t)p.top, (uint32_t)run->n_draft, 1, 0}, &p);
  cuda_run_launch(run, CUDA_KERNEL_walk, (CudaGrid){1, 1, 1, 0}, &w);
}
