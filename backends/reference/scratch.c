/* Memory for values inside a stage. A block allocates nothing: whoever makes a run larger (a sequence that opens, a
 * context that grows, a stage alone) reserves before. It is shared by the model's sequences and never shrinks. */
#include "reference.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static bool count_inputs(const DflashModel *model, const Sizes *sizes, int32_t stage, int64_t *total) {
  *total = 0;
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    int64_t count;
    if (!reference_stage_input(&model->geometry, sizes, stage, i, &count) || !dflash_add_i64(*total, count, total))
      return false;
  }
  return true;
}

/* Memory that cannot grow stays as it is: sequences that are open go on using it. */
static bool grow(void *memory, int64_t count, size_t size) {
  void **place = memory, *grown = dflash_alloc((size_t)count, size);
  if (grown == NULL) return false;
  free(*place);
  *place = grown;
  return true;
}

static bool grow_inputs(Scratch *scratch, int32_t profile, int64_t count) {
  if (profile == DFLASH_PROFILE_EXACT || count <= scratch->input_count) return true;
  if (!grow(&scratch->inputs, count, sizeof(float))) return false;
  if (profile == DFLASH_PROFILE_I8 && !grow(&scratch->quantised, count, 1)) return false;
  scratch->input_count = count;
  return true;
}

/* The last array holds ones and is never written again. */
static bool grow_keys(Scratch *scratch, int64_t head_dim, int64_t count) {
  if (count <= scratch->key_count) return true;
  int64_t floats;
  const size_t size = sizeof(float);
  if (!dflash_mul_i64(count, head_dim, &floats) || !grow(&scratch->k, floats, size) ||
      !grow(&scratch->v, floats, size) || !grow(&scratch->p, count, size) || !grow(&scratch->ones, count, size))
    return false;
  for (int64_t j = 0; j < count; j++) scratch->ones[j] = 1;
  scratch->key_count = count;
  return true;
}

DflashStatus reference_scratch_reserve(DflashModel *model, const Sizes *sizes, int32_t first, int32_t last,
                                       DflashError *error) {
  Scratch *scratch = &model->scratch;
  int64_t inputs, keys;
  bool fits = true;
  for (int32_t stage = first; fits && stage <= last; stage++)
    fits = count_inputs(model, sizes, stage, &inputs) && grow_inputs(scratch, model->profile, inputs);
  if (fits && first <= DFLASH_STAGE_ATTN_MIX && DFLASH_STAGE_ATTN_MIX <= last)
    fits = dflash_add_i64(sizes->rows, sizes->context_len, &keys) && grow_keys(scratch, model->geometry.head_dim, keys);
  if (fits) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY,
                          "reference: no memory for the scratch of %" PRId64 " block, %" PRId64 " pushed and %" PRId64
                          " context rows",
                          sizes->rows, sizes->push_rows, sizes->context_len);
}

uint64_t reference_scratch_bytes(const DflashModel *model) {
  const Scratch *scratch = &model->scratch;
  const uint64_t inputs = (uint64_t)scratch->input_count * (scratch->quantised == NULL ? 4 : 5);
  return inputs + (uint64_t)scratch->key_count * (2 * (uint64_t)model->geometry.head_dim + 2) * sizeof(float);
}

void reference_scratch_close(Scratch *scratch) {
  free(scratch->ones);
  free(scratch->p);
  free(scratch->v);
  free(scratch->k);
  free(scratch->quantised);
  free(scratch->inputs);
}
