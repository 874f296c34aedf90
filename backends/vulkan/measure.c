/* What this device can do: the best of several streaming reads, and f32 multiply-adds with nothing to read. */
#include "measure.h"

#include "base/error.h"
#include "block.h"

enum {
  REPEATS = 6,
  READ_GROUPS = 4096,
  MULTIPLY_GROUPS = 2048,
  MULTIPLY_ROUNDS = 256,
  PROCESSOR_SHARE = 64,
  MOST_PIECES = 32,
  PIECE_ALIGN = 256 /* of offsets, whatever the device */
};

/* What is read: pieces of one buffer, one binding each. */
typedef struct Stream {
  uint64_t piece_bytes, pieces, sums_bytes; /* sums_bytes: of a piece */
  uint32_t groups;                          /* for a piece */
} Stream;

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* As much as some bindings show, or one of a processor, but no more than 2 GiB and an eighth of the memory. */
static Stream choose_stream(const VulkanTraits *t) {
  const uint64_t most = least(least(UINT64_C(2) << 30, t->max_allocation), t->memory_bytes / 8);
  Stream s = {.pieces = 1, .groups = (uint32_t)least(READ_GROUPS, t->max_groups[0])};
  s.piece_bytes = least(most, t->max_binding) / PIECE_ALIGN * PIECE_ALIGN;
  if (!t->is_cpu && s.piece_bytes > 0) s.pieces = least(most / s.piece_bytes, MOST_PIECES);
  s.sums_bytes = ((uint64_t)s.groups * 4 + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
  return s;
}

/* Nanoseconds of one run, by the device's clock where it has one. */
static DflashStatus time_run(DflashModel *model, VulkanPlan *plan, uint64_t *ns, DflashError *error) {
  const uint64_t begin = vulkan_now_ns();
  DflashStatus status = vulkan_plan_run(&model->device, plan, error);
  *ns = vulkan_now_ns() - begin;
  return !status && plan->stamps > 0 ? vulkan_plan_time(&model->device, plan, ns, error) : status;
}

/* Shortest of several runs. */
static DflashStatus best_run(DflashModel *model, const VulkanSteps *steps, int repeats, uint64_t *best_ns,
                             DflashError *error) {
  VulkanPlan plan = {0};
  DflashStatus status = vulkan_plan_open(&model->device, steps, false, 0, &plan, error);
  *best_ns = UINT64_MAX;
  for (int i = 0; !status && i < repeats; i++) {
    uint64_t ns;
    status = time_run(model, &plan, &ns, error);
    if (!status && ns < *best_ns) *best_ns = ns > 0 ? ns : 1;
  }
  vulkan_plan_close(&model->device, &plan);
  return status;
}

/* Opens the stream's buffer and fills it, so that its memory is there. */
static DflashStatus open_stream(DflashModel *model, const Stream *s, DflashError *error) {
  const uint64_t bytes = s->piece_bytes * s->pieces;
  VulkanSteps fill = {0};
  uint64_t ns;
  if (model->stream.buffer) return DFLASH_OK;
  DflashStatus status =
      vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, bytes, "a streaming read", &model->stream, error);
  if (status) return status;
  vulkan_steps_fill(&fill, vulkan_buffer_range(&model->stream, 0, bytes), 0x3c003c01u);
  status = best_run(model, &fill, 1, &ns, error);
  vulkan_steps_close(&fill);
  if (status) vulkan_buffer_close(&model->device, &model->stream);
  return status;
}

/* Pieces have sums of their own: no dispatch waits for another. */
static DflashStatus add_reads(DflashModel *model, const Stream *s, const VulkanBuffer *sums, VulkanSteps *steps,
                              DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (uint64_t i = 0; i < s->pieces && !status; i++) {
    const VulkanRange ranges[] = {vulkan_buffer_range(&model->stream, i * s->piece_bytes, s->piece_bytes),
                                  vulkan_buffer_range(sums, i * s->sums_bytes, s->sums_bytes)};
    const MeasurePush push = {(uint32_t)(s->piece_bytes / 16)};
    VulkanDispatch dispatch = {.ranges = ranges, .push = &push, .groups = {s->groups, 1, 1}};
    status = vulkan_steps_kernel(model, steps, VULKAN_KERNEL_READ, NULL, 0, &dispatch, error);
  }
  return status;
}

static DflashStatus read_stream(DflashModel *model, int repeats, uint64_t *bytes, uint64_t *best_ns,
                                DflashError *error) {
  const Stream s = choose_stream(&model->device.traits);
  VulkanBuffer sums = {0};
  VulkanSteps steps = {0};
  *bytes = s.piece_bytes * s.pieces;
  DflashStatus status = open_stream(model, &s, error);
  if (!status)
    status = vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, s.sums_bytes * s.pieces, "sums", &sums, error);
  if (!status) status = add_reads(model, &s, &sums, &steps, error);
  if (!status) status = best_run(model, &steps, repeats, best_ns, error);
  vulkan_steps_close(&steps);
  vulkan_buffer_close(&model->device, &sums);
  return status;
}

DflashStatus vulkan_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  uint64_t bytes, ns;
  DflashStatus status = read_stream(model, REPEATS, &bytes, &ns, error);
  if (!status) *bytes_per_second = (double)bytes * 1e9 / (double)ns;
  return status;
}

DflashStatus vulkan_evict_caches(DflashModel *model, DflashError *error) {
  uint64_t bytes, ns;
  return read_stream(model, 1, &bytes, &ns, error);
}

DflashStatus vulkan_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  VulkanBuffer sums = {0};
  VulkanSteps steps = {0};
  uint64_t ns;
  const VulkanTraits *t = &model->device.traits;
  const uint64_t shown = least(t->max_binding, t->max_allocation) / (256 * 4);
  const uint32_t share = t->is_cpu ? PROCESSOR_SHARE : 1;
  const uint32_t groups = (uint32_t)least(MULTIPLY_GROUPS / share, least(t->max_groups[0], shown));
  DflashStatus status =
      vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, (uint64_t)groups * 256 * 4, "sums", &sums, error);
  if (status) return status;
  const VulkanRange range = vulkan_buffer_range(&sums, 0, sums.bytes);
  const MeasurePush push = {MULTIPLY_ROUNDS};
  VulkanDispatch dispatch = {.ranges = &range, .push = &push, .groups = {groups, 1, 1}};
  status = vulkan_steps_kernel(model, &steps, VULKAN_KERNEL_MULTIPLY, NULL, 0, &dispatch, error);
  if (!status) status = best_run(model, &steps, REPEATS, &ns, error);
  vulkan_steps_close(&steps);
  vulkan_buffer_close(&model->device, &sums);
  if (!status) *operations_per_second = 2.0 * 64 * MULTIPLY_ROUNDS * 256 * groups * 1e9 / (double)ns;
  return status;
}
