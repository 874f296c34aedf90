/* Matrices and codebooks in device memory. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "codebook.h"
#include "pack.h"

enum {
  PART_ROWS = 16,      /* a part's rows are a multiple of this, but for the last part's */
  CODEBOOK_ROWS = 128, /* the same of a codebook: its rows may be an odd number of halves */
  GROUP_ROWS = 8       /* rows of a matrix that a workgroup takes at least */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bytes that one range can have. */
static uint64_t range_bytes(const VulkanTraits *traits) { return least(traits->max_binding, traits->max_allocation); }

/* Rows that one range can have, a multiple of `multiple`; 0: not even that many. */
static int64_t part_rows(uint64_t range, uint64_t row_bytes, int64_t multiple) {
  return (int64_t)least(range / row_bytes, INT64_MAX) / multiple * multiple;
}

static DflashStatus open_parts(VulkanMatrix *m, int64_t rows_each, uint64_t row_bytes, uint64_t range,
                               DflashError *error) {
  if (rows_each == 0)
    return dflash_error_set(error, DFLASH_UNSUPPORTED,
                            "rows of %llu bytes are too long for bindings of %llu bytes at most",
                            (unsigned long long)row_bytes, (unsigned long long)range);
  const int64_t count = (m->rows - 1) / rows_each + 1;
  m->parts = dflash_alloc((size_t)count, sizeof *m->parts);
  if (!m->parts) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for %lld parts", (long long)count);
  m->part_count = (uint32_t)count;
  for (int64_t i = 0; i < count; i++) {
    const int64_t first = i * rows_each;
    m->parts[i].first = first;
    m->parts[i].rows = m->rows - first < rows_each ? m->rows - first : rows_each;
  }
  return DFLASH_OK;
}

/* Packs rows from `first` on, of `row_bytes` each on the device, into a range that holds `rows` of them. */
typedef struct Sender {
  DflashModel *model;
  VulkanUpload *upload;
  const DflashTensor *tensor;
} Sender;

static DflashStatus send(const Sender *sender, VulkanPack *pack, int64_t first, int64_t rows, uint64_t row_bytes,
                         VulkanRange to, DflashError *error) {
  const uint64_t staging = vulkan_staging_bytes(&sender->model->device.traits);
  const int64_t most = (int64_t)(staging / row_bytes) / 4 * 4; /* whole words */
  if (most < 1)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "rows of %llu bytes are too long, %llu is the limit",
                            (unsigned long long)row_bytes, (unsigned long long)staging / 4);
  for (int64_t done = 0; done < rows; done += most) {
    const int64_t count = rows - done < most ? rows - done : most;
    const uint64_t bytes = ((uint64_t)count * row_bytes + 3) / 4 * 4;
    void *host;
    DflashStatus status = vulkan_upload_place(&sender->model->device, sender->upload, to, (uint64_t)done * row_bytes,
                                              bytes, &host, error);
    if (status) return status;
    pack(sender->tensor, first + done, count, host);
  }
  return DFLASH_OK;
}

/* Takes a range for the rows of a part and sends them; row_bytes 0: the storage has nothing there. */
static DflashStatus take(const Sender *sender, VulkanPack *pack, int64_t first, int64_t rows, uint64_t row_bytes,
                         const char *what, VulkanRange *range, DflashError *error) {
  if (row_bytes == 0) return DFLASH_OK;
  const uint64_t bytes = ((uint64_t)rows * row_bytes + 3) / 4 * 4;
  DflashModel *model = sender->model;
  DflashStatus status = vulkan_arena_take(&model->device, &model->arena, bytes, what, range, error);
  if (!status) status = send(sender, pack, first, rows, row_bytes, *range, error);
  return status;
}

static DflashStatus open_part(const Sender *sender, const VulkanForm *form, const char *name, VulkanPart *part,
                              DflashError *error) {
  DflashStatus status =
      take(sender, vulkan_pack_weights, part->first, part->rows, form->weight_bytes, name, &part->weights, error);
  part->scales = part->codes = part->weights;
  if (!status)
    status = take(sender, vulkan_pack_scales, part->first, part->rows, form->scale_bytes, name, &part->scales, error);
  if (!status)
    status = take(sender, vulkan_pack_codes, part->first, part->rows, form->code_bytes, name, &part->codes, error);
  return status;
}

DflashStatus vulkan_matrix_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor, const char *name,
                                VulkanMatrix *matrix, DflashError *error) {
  const Sender sender = {model, upload, tensor};
  const VulkanTraits *traits = &model->device.traits;
  const VulkanForm form = vulkan_form(tensor->storage, tensor->shape[1]);
  *matrix = (VulkanMatrix){.storage = tensor->storage,
                           .rows = tensor->shape[0],
                           .cols = tensor->shape[1],
                           .pitch = (uint32_t)(form.weight_bytes / 16),
                           .code_pitch = (uint32_t)(form.code_bytes / 4),
                           .row_bytes = form.weight_bytes + form.scale_bytes + form.code_bytes};
  /* a row's weights are its longest range */
  const int64_t shown = part_rows(range_bytes(traits), form.weight_bytes, PART_ROWS);
  const int64_t launched = (int64_t)traits->max_groups[0] * GROUP_ROWS / PART_ROWS * PART_ROWS;
  DflashStatus status =
      open_parts(matrix, shown < launched ? shown : launched, form.weight_bytes, range_bytes(traits), error);
  for (uint32_t i = 0; !status && i < matrix->part_count; i++)
    status = open_part(&sender, &form, name, &matrix->parts[i], error);
  if (!status) matrix->columns = matrix->parts[0].weights;
  if (!status && tensor->storage == DFLASH_STORAGE_Q8_2F)
    status = take(&sender, vulkan_pack_columns, 0, matrix->cols, sizeof(float), name, &matrix->columns, error);
  if (status) vulkan_matrix_close(matrix);
  return status;
}

DflashStatus vulkan_codebook_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor,
                                  const char *name, VulkanMatrix *codebook, DflashError *error) {
  const Sender sender = {model, upload, tensor};
  const uint64_t range = range_bytes(&model->device.traits);
  const uint64_t row_bytes = (uint64_t)tensor->shape[1] * (tensor->storage == DFLASH_STORAGE_F32 ? 4 : 2);
  *codebook = (VulkanMatrix){
      .storage = tensor->storage, .rows = tensor->shape[0], .cols = tensor->shape[1], .row_bytes = row_bytes};
  DflashStatus status = open_parts(codebook, part_rows(range, row_bytes, CODEBOOK_ROWS), row_bytes, range, error);
  for (uint32_t i = 0; !status && i < codebook->part_count; i++) {
    VulkanPart *part = &codebook->parts[i];
    status = take(&sender, vulkan_pack_tight, part->first, part->rows, row_bytes, name, &part->weights, error);
    part->scales = part->codes = part->weights;
  }
  if (!status) codebook->columns = codebook->parts[0].weights;
  if (status) vulkan_matrix_close(codebook);
  return status;
}

void vulkan_matrix_close(VulkanMatrix *matrix) {
  free(matrix->parts);
  *matrix = (VulkanMatrix){0};
}
