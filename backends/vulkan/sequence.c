#include "sequence.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

/* Workgroups of attention wanted on a device that runs them side by side; a processor gains nothing from many. */
enum { ATTEND_GROUPS = 256, MOST_SPLITS = VULKAN_MAX_PARTS - 1, SPLITS_ON_CPU = 4 };

static uint32_t choose_splits(const DflashModel *model) {
  if (model->options.splits > 0) return model->options.splits;
  if (model->device.traits.is_cpu) return SPLITS_ON_CPU;
  const int64_t splits = ATTEND_GROUPS / model->geometry.kv_heads;
  return (uint32_t)(splits < 1 ? 1 : splits > MOST_SPLITS ? MOST_SPLITS : splits);
}

DflashStatus vulkan_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  *sequence = NULL;
  DflashSequence *s = dflash_alloc(1, sizeof *s);
  if (!s) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a sequence");
  s->model = model;
  s->capture = desc && (desc->flags & DFLASH_SEQUENCE_CAPTURE);
  s->splits = choose_splits(model);
  s->held = dflash_alloc((size_t)model->geometry.layers, sizeof *s->held);
  DflashStatus status =
      s->held ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a sequence");
  if (!status) status = vulkan_scratch_open(s, error);
  if (status) {
    vulkan_sequence_close(s);
    return status;
  }
  *sequence = s;
  return DFLASH_OK;
}

void vulkan_sequence_close(DflashSequence *s) {
  if (!s) return;
  for (int i = 0; i < VULKAN_PLANS; i++) vulkan_plan_close(&s->model->device, &s->plans[i].plan);
  if (s->held) vulkan_context_close(s);
  vulkan_scratch_close(s);
  free(s->held);
  free(s);
}
