/* Matrices and codebooks in device memory. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "codebook.h"
#include "pack.h"
#include "units.h"

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

/* Where rows come from, and how they go over. */
typedef struct Sender {
  DflashModel *model;
  VulkanUpload *upload;
  const DflashTensor *tensor;
} Sender;

/* Rows of `bytes` each on the device; `rows` of them are packed together, the last ones filled up. */
typedef struct Packing {
  VulkanPack *pack;
  int64_t rows;
  uint64_t bytes; /* 0: the storage has nothing there */
} Packing;

static uint64_t packed_bytes(const Packing *packing, int64_t rows) {
  const uint64_t whole = (uint64_t)((rows + packing->rows - 1) / packing->rows * packing->rows);
  return (whole * packing->bytes + 3) / 4 * 4;
}

/* Packs rows from `first` on into a range that holds `rows` of them. */
static DflashStatus send(const Sender *sender, const Packing *packing, int64_t first, int64_t rows, VulkanRange to,
                         DflashError *error) {
  const uint64_t staging = vulkan_staging_bytes(&sender->model->device.traits);
  const int64_t multiple = packing->rows == 1 ? 4 : packing->rows; /* whole words */
  const int64_t most = (int64_t)(staging / packing->bytes) / multiple * multiple;
  if (most < 1)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "rows of %llu bytes are too long, %llu is the limit",
                            (unsigned long long)packing->bytes, (unsigned long long)staging / (uint64_t)multiple);
  for (int64_t done = 0; done < rows; done += most) {
    const int64_t count = rows - done < most ? rows - done : most;
    void *host;
    DflashStatus status =
        vulkan_upload_place(&sender->model->device, sender->upload, to, (uint64_t)done * packing->bytes,
                            packed_bytes(packing, count), &host, error);
    if (status) return status;
    packing->pack(sender->tensor, first + done, count, host);
  }
  return DFLASH_OK;
}

/* Takes a range for the rows of a part and sends them. */
static DflashStatus take(const Sender *sender, Packing packing, int64_t first, int64_t rows, const char *what,
                         VulkanRange *range, DflashError *error) {
  if (packing.bytes == 0) return DFLASH_OK;
  DflashModel *model = sender->model;
  DflashStatus status =
      vulkan_arena_take(&model->device, &model->arena, packed_bytes(&packing, rows), what, range, error);
  if (!status) status = send(sender, &packing, first, rows, *range, error);
  return status;
}

static DflashStatus open_part(const Sender *sender, const VulkanForm *form, const char *name, VulkanPart *part,
                              DflashError *error) {
  const bool fragments = form->rows > 1;
  const Packing weights = {fragments ? vulkan_pack_fragments : vulkan_pack_weights, form->rows, form->weight_bytes};
  const Packing scales = {vulkan_pack_scales, 1, form->scale_bytes};
  const Packing codes = {fragments ? vulkan_pack_fragment_codes : vulkan_pack_codes, form->rows, form->code_bytes};
  DflashStatus status = take(sender, weights, part->first, part->rows, name, &part->weights, error);
  part->scales = part->codes = part->weights;
  if (!status) status = take(sender, scales, part->first, part->rows, name, &part->scales, error);
  if (!status) status = take(sender, codes, part->first, part->rows, name, &part->codes, error);
  return status;
}

static VulkanMatrix describe(const DflashTensor *tensor, const VulkanForm *form) {
  VulkanMatrix m = {.storage = tensor->storage,
                    .rows = tensor->shape[0],
                    .cols = tensor->shape[1],
                    .row_bytes = form->weight_bytes + form->scale_bytes + form->code_bytes};
  if (form->rows > 1) {
    m.pieces = vulkan_units_pieces(m.storage, m.cols);
  } else {
    m.pitch = (uint32_t)(form->weight_bytes / 16);
    m.code_pitch = (uint32_t)(form->code_bytes / 4);
  }
  return m;
}

DflashStatus vulkan_matrix_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor, const char *name,
                                VulkanMatrix *matrix, DflashError *error) {
  const Sender sender = {model, upload, tensor};
  const VulkanTraits *traits = &model->device.traits;
  const VulkanForm form = vulkan_units_take(model, tensor->storage)
                              ? vulkan_units_form(tensor->storage, tensor->shape[1])
                              : vulkan_form(tensor->storage, tensor->shape[1]);
  const Packing columns = {vulkan_pack_columns, 1, sizeof(float)};
  *matrix = describe(tensor, &form);
  /* a row's weights are its longest range */
  const int64_t shown = part_rows(range_bytes(traits), form.weight_bytes, PART_ROWS);
  const int64_t group = form.rows > 1 ? form.rows : GROUP_ROWS;
  const int64_t launched = (int64_t)traits->max_groups[0] * group / PART_ROWS * PART_ROWS;
  DflashStatus status =
      open_parts(matrix, shown < launched ? shown : launched, form.weight_bytes, range_bytes(traits), error);
  for (uint32_t i = 0; !status && i < matrix->part_count; i++)
    status = open_part(&sender, &form, name, &matrix->parts[i], error);
  if (!status) matrix->columns = matrix->parts[0].weights;
  if (!status && tensor->storage == DFLASH_STORAGE_Q8_2F)
    status = take(&sender, columns, 0, matrix->cols, name, &matrix->columns, error);
  if (status) vulkan_matrix_close(matrix);
  return status;
}

DflashStatus vulkan_codebook_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor,
                                  const char *name, VulkanMatrix *codebook, DflashError *error) {
  const Sender sender = {model, upload, tensor};
  const uint64_t range = range_bytes(&model->device.traits);
  const uint64_t row_bytes = (uint64_t)tensor->shape[1] * (tensor->storage == DFLASH_STORAGE_F32 ? 4 : 2);
  const Packing tight = {vulkan_pack_tight, 1, row_bytes};
  *codebook = (VulkanMatrix){
      .storage = tensor->storage, .rows = tensor->shape[0], .cols = tensor->shape[1], .row_bytes = row_bytes};
  DflashStatus status = open_parts(codebook, part_rows(range, row_bytes, CODEBOOK_ROWS), row_bytes, range, error);
  for (uint32_t i = 0; !status && i < codebook->part_count; i++) {
    VulkanPart *part = &codebook->parts[i];
    status = take(&sender, tight, part->first, part->rows, name, &part->weights, error);
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
