#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "parts.h"
#include "source.h"

static const char *profile_name(int32_t profile) {
  static const char *const names[DFLASH_PROFILE_COUNT] = {"exact", "i8", "f16", "bf16"};
  return profile >= 0 && profile < DFLASH_PROFILE_COUNT ? names[profile] : "of an unknown number";
}

static DflashStatus check_desc(const DflashModelDesc *desc, DflashError *error) {
  if (!desc || !desc->geometry) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: no geometry is given");
  if (desc->device && *desc->device && strcmp(desc->device, "cpu") != 0)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "blas: no device '%s'; there is 'cpu'", desc->device);
  if (desc->profile != DFLASH_PROFILE_EXACT)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "blas: profile %s is not offered, only exact",
                            profile_name(desc->profile));
  return DFLASH_OK;
}

/* ---- sizes ---- */

static bool part_bytes(const DflashPart *part, bool known, bool stored, uint64_t *bytes) {
  int64_t count;
  if (known && !part->tensor) return *bytes = 0, true; /* no head */
  if (!dflash_mul_i64(part->rows, part->cols, &count) || !dflash_mul_i64(count, 4, &count)) return false;
  if (part->kind == PART_MATRIX) {
    const int32_t storage = known ? part->tensor->storage : DFLASH_STORAGE_Q4TP;
    return dflash_matrix_bytes(dflash_matrix_form(storage, stored), part->rows, part->cols, bytes);
  }
  *bytes = (uint64_t)count;
  if (part->kind == PART_CODEBOOK && !(known && part->tensor->storage == DFLASH_STORAGE_F32)) *bytes /= 2;
  return true;
}

static bool model_bytes(const DflashModelDesc *desc, bool stored, uint64_t *total) {
  *total = 0;
  for (int64_t i = 0; i < dflash_part_count(desc->geometry); i++) {
    const DflashPart part = dflash_part_at(desc->geometry, desc->weights, NULL, i);
    uint64_t bytes;
    if (!part_bytes(&part, desc->weights != NULL, stored, &bytes)) return false;
    if (__builtin_add_overflow(*total, bytes, total)) return false;
  }
  return true;
}

static DflashStatus prepare(const DflashModelDesc *desc, DflashHostOptions *options, bool *stored, uint64_t *bytes,
                            DflashError *error) {
  DflashStatus status = check_desc(desc, error);
  if (!status) status = dflash_options_parse(desc, options, error);
  if (status) return status;
  *stored = options->form != FORM_CHOICE_F32; /* auto: stored forms are the fastest, see README.md */
  if (!model_bytes(desc, *stored, bytes))
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "blas: the geometry's matrices do not fit in 63 bits");
  if (*bytes > options->memory)
    return dflash_error_set(
        error, DFLASH_OUT_OF_MEMORY, "blas: form %s needs %llu bytes, memory allows %llu (see --option memory, form)",
        *stored ? "stored" : "f32", (unsigned long long)*bytes, (unsigned long long)options->memory);
  return DFLASH_OK;
}

DflashStatus dflash_model_supports(const DflashModelDesc *desc, DflashError *error) {
  DflashHostOptions options;
  bool stored;
  uint64_t bytes;
  return prepare(desc, &options, &stored, &bytes, error);
}

/* ---- open ---- */

static DflashStatus check_weights(const DflashModelDesc *desc, DflashError *error) {
  const DflashWeights *weights = desc->weights;
  if (!weights || !weights->layers || !weights->inv_freq)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: no weights are given");
  for (int64_t i = 0; i < dflash_part_count(desc->geometry); i++) {
    const DflashPart part = dflash_part_at(desc->geometry, weights, NULL, i);
    if (!part.tensor) continue;
    DflashStatus status =
        dflash_source_check(part.tensor, part.name, part.layer, part.rows, part.cols, part.kind == PART_VECTOR, error);
    if (status) return status;
    const int32_t storage = part.tensor->storage;
    if (part.kind == PART_CODEBOOK && (storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: %s has storage %d, expected f16, bf16 or f32",
                              part.name, (int)storage);
  }
  return DFLASH_OK;
}

static uint64_t vector_bytes(const DflashGeometry *g) {
  uint64_t bytes = (uint64_t)g->head_dim / 2 * sizeof(float);
  for (int64_t i = 0; i < dflash_part_count(g); i++) {
    const DflashPart part = dflash_part_at(g, NULL, NULL, i);
    if (part.kind == PART_VECTOR) bytes += (uint64_t)(part.rows * part.cols) * sizeof(float);
  }
  return bytes;
}

static float *place(float **at, const void *data, int64_t count) {
  float *here = *at;
  memcpy(here, data, (size_t)count * sizeof(float));
  *at += count;
  return here;
}

static DflashStatus open_codebook(DflashCodebook *codebook, const DflashPart *part, DflashError *error) {
  const int wide = part->tensor->storage == DFLASH_STORAGE_F32;
  const uint64_t bytes = (uint64_t)(part->rows * part->cols) * (wide ? 4 : 2);
  *codebook = (DflashCodebook){.storage = part->tensor->storage, .width = part->cols};
  if (!dflash_pages_open(&codebook->pages, bytes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for the %s", part->name);
  memcpy(codebook->pages.data, part->tensor->data, (size_t)bytes);
  return DFLASH_OK;
}

static DflashStatus open_parts(DflashModel *model, const DflashWeights *weights, DflashError *error) {
  if (!dflash_pages_open(&model->vectors, vector_bytes(&model->geometry)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for the vectors");
  float *vectors = model->vectors.data;
  model->inv_freq = place(&vectors, weights->inv_freq, model->geometry.head_dim / 2);
  for (int64_t i = 0; i < dflash_part_count(&model->geometry); i++) {
    const DflashPart part = dflash_part_at(&model->geometry, weights, model, i);
    DflashStatus status = DFLASH_OK;
    if (!part.tensor) continue;
    if (part.kind == PART_VECTOR) *part.vector = place(&vectors, part.tensor->data, part.rows * part.cols);
    if (part.kind == PART_CODEBOOK) status = open_codebook(part.codebook, &part, error);
    if (part.kind == PART_MATRIX)
      status = dflash_matrix_open(part.matrix, part.tensor, part.rows, part.cols,
                                  dflash_matrix_form(part.tensor->storage, model->stored), model->pool, error);
    if (status) return status;
  }
  return DFLASH_OK;
}

DflashStatus dflash_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  DflashHostOptions options;
  bool stored;
  uint64_t bytes;
  *model = NULL;
  DflashStatus status = prepare(desc, &options, &stored, &bytes, error);
  if (!status) status = check_weights(desc, error);
  if (status) return status;
  DflashModel *m = dflash_alloc(1, sizeof *m);
  if (!m) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a model");
  m->geometry = *desc->geometry;
  m->options = options;
  m->stored = stored;
  m->resident_bytes = bytes;
  m->has_head = desc->weights->head.data != NULL;
  m->layers = dflash_alloc((size_t)m->geometry.layers, sizeof *m->layers);
  m->pool = dflash_pool_open(options.threads);
  if (!m->layers || !m->pool)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory or threads for a model");
  if (!status) status = open_parts(m, desc->weights, error);
  if (status) {
    dflash_model_close(m);
    return status;
  }
  *model = m;
  return DFLASH_OK;
}

void dflash_model_close(DflashModel *model) {
  if (!model) return;
  for (int64_t i = 0; model->layers && i < dflash_part_count(&model->geometry); i++) {
    const DflashPart part = dflash_part_at(&model->geometry, NULL, model, i);
    if (part.matrix) dflash_matrix_close(part.matrix);
    if (part.codebook) dflash_pages_close(&part.codebook->pages);
  }
  dflash_pages_close(&model->vectors);
  dflash_pages_close(&model->buffer);
  dflash_pool_close(model->pool);
  free(model->layers);
  free(model);
}

void dflash_codebook_row(const DflashCodebook *codebook, int64_t row, float *out) {
  const int64_t width = codebook->width, at = row * width;
  const unsigned char *data = codebook->pages.data;
  for (int64_t i = 0; i < width; i++) {
    if (codebook->storage == DFLASH_STORAGE_F32) {
      memcpy(out + i, data + 4 * (at + i), 4);
    } else if (codebook->storage == DFLASH_STORAGE_F16) {
      out[i] = dflash_source_f16_at(data, at + i);
    } else {
      const uint32_t bits = (uint32_t)data[2 * (at + i)] << 16 | (uint32_t)data[2 * (at + i) + 1] << 24;
      memcpy(out + i, &bits, 4);
    }
  }
}
