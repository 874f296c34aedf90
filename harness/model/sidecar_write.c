#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/cmf.h"
#include "model/geometry.h"
#include "model/sidecar.h"
#include "model/sidecar_header.h"
#include "model/sidecar_tensors.h"
#include "model/storage.h"

/* A file before its data is written: everything that the envelope and the directory say. */
typedef struct Plan {
  DflashWeightSet set; /* the caller's tensors, by index */
  int64_t count;
  DflashText header, records, names;
  uint64_t data_offset, data_bytes;
  uint32_t features;
} Plan;

static uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

static void put_u32(DflashText *text, uint32_t value) { dflash_text_bytes(text, (const char *)&value, sizeof value); }

static void put_u64(DflashText *text, uint64_t value) { dflash_text_bytes(text, (const char *)&value, sizeof value); }

static DflashStatus check_tensor(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error) {
  if (tensor->data == NULL) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s has no data", entry->name);
  for (int32_t i = 0; i < entry->rank; i++)
    if (entry->shape[i] > UINT32_MAX)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: shape[%d] is %lld, a sidecar holds at most %u",
                              entry->name, i, (long long)entry->shape[i], UINT32_MAX);
  DflashStatus status = dflash_weight_check(entry, tensor, error);
  return status == DFLASH_OK ? dflash_tensor_check(tensor, entry->name, error) : status;
}

static void put_record(Plan *plan, const DflashWeightEntry *entry, const DflashTensor *tensor) {
  uint16_t name_bytes = (uint16_t)(strlen(DFLASH_SIDECAR_PREFIX) + strlen(entry->name));
  unsigned char kind[4] = {0, 0, (unsigned char)tensor->storage, (unsigned char)tensor->rank};
  memcpy(kind, &name_bytes, sizeof name_bytes);
  put_u32(&plan->records, (uint32_t)plan->names.size);
  dflash_text_bytes(&plan->records, (const char *)kind, sizeof kind);
  for (int i = 0; i < DFLASH_CMF_RANK_MAX; i++)
    put_u32(&plan->records, i < tensor->rank ? (uint32_t)tensor->shape[i] : 0);
  put_u64(&plan->records, plan->data_bytes);
  put_u64(&plan->records, tensor->bytes);
  put_u64(&plan->records, dflash_hash64(tensor->data, tensor->bytes));
  dflash_text_append(&plan->names, DFLASH_SIDECAR_PREFIX "%s", entry->name);
}

static DflashStatus plan_tensors(Plan *plan, const DflashGeometry *geometry, DflashError *error) {
  plan->features = DFLASH_CMF_FEATURE_DIRECTORY;
  for (int64_t i = 0; i < plan->count; i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(geometry, i, &entry);
    const DflashTensor *tensor = dflash_weight_at(geometry, &plan->set, i);
    DflashStatus status = check_tensor(&entry, tensor, error);
    if (status != DFLASH_OK) return status;
    plan->data_bytes = align_up(plan->data_bytes, DFLASH_CMF_TENSOR_ALIGN);
    put_record(plan, &entry, tensor);
    plan->data_bytes += tensor->bytes;
    if (tensor->storage == DFLASH_STORAGE_Q8_2F) plan->features |= DFLASH_CMF_FEATURE_TWO_FIELD;
  }
  return DFLASH_OK;
}

/* A header that is given must be one that opens with this geometry. */
static DflashStatus check_header(const DflashGeometry *geometry, const char *text, DflashError *error) {
  DflashSidecarHeader header;
  DflashStatus status = dflash_sidecar_header_parse(text, strlen(text), &header, error);
  if (status == DFLASH_OK && !dflash_geometry_equal(geometry, &header.geometry))
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "header: provenance.dflash is not the weights' geometry");
  dflash_router_close(&header.router);
  return status;
}

static DflashStatus plan_header(Plan *plan, const DflashGeometry *geometry, const DflashRouter *router,
                                const char *given, DflashError *error) {
  DflashStatus status = given == NULL ? DFLASH_OK : check_header(geometry, given, error);
  if (status != DFLASH_OK) return status;
  char *made = given == NULL ? dflash_sidecar_header_make(geometry, router) : NULL;
  const char *text = given == NULL ? made : given;
  if (text == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "header: out of memory");
  dflash_text_bytes(&plan->header, text, strlen(text));
  free(made);
  return DFLASH_OK;
}

/* Count, place of the pool, records, pool. */
static void join_directory(const Plan *plan, DflashText *directory) {
  put_u64(directory, (uint64_t)plan->count);
  put_u64(directory, DFLASH_CMF_DIRECTORY_HEAD + plan->records.size);
  dflash_text_bytes(directory, plan->records.data, plan->records.size);
  dflash_text_bytes(directory, plan->names.data, plan->names.size);
}

/* Envelope, header, directory and the zeros up to the data. */
static void join_front(Plan *plan, const DflashText *directory, DflashText *front) {
  uint64_t directory_offset = DFLASH_CMF_ENVELOPE_BYTES + plan->header.size;
  plan->data_offset = align_up(directory_offset + directory->size, DFLASH_CMF_DATA_ALIGN);
  const uint64_t sections[12] = {DFLASH_CMF_ENVELOPE_BYTES, plan->header.size, directory_offset, directory->size,
                                 plan->data_offset,         plan->data_bytes}; /* the others are absent */
  dflash_text_bytes(front, DFLASH_CMF_MAGIC, 4);
  put_u32(front, DFLASH_CMF_VERSION);
  put_u32(front, 0);
  put_u32(front, plan->features);
  for (int i = 0; i < 12; i++) put_u64(front, sections[i]);
  put_u64(front, dflash_hash64(plan->header.data, plan->header.size));
  put_u64(front, dflash_hash64(directory->data, directory->size));
  dflash_text_bytes(front, plan->header.data, plan->header.size);
  dflash_text_bytes(front, directory->data, directory->size);
  while (front->size < plan->data_offset && !front->failed) dflash_text_bytes(front, "", 1);
}

static DflashStatus plan_front(Plan *plan, DflashText *front, DflashError *error) {
  DflashText directory = {0};
  bool failed = plan->header.failed || plan->records.failed || plan->names.failed;
  if (!failed) join_directory(plan, &directory);
  failed = failed || directory.failed;
  if (!failed) join_front(plan, &directory, front);
  failed = failed || front->failed;
  dflash_text_free(&directory);
  return failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "sidecar: out of memory") : DFLASH_OK;
}

static DflashStatus plan_open(Plan *plan, const DflashGeometry *geometry, const DflashWeights *weights,
                              DflashError *error) {
  DflashStatus status = dflash_geometry_check(geometry, error);
  if (status != DFLASH_OK) return status;
  status = dflash_weight_set_open(geometry, &plan->set, error);
  if (status != DFLASH_OK) return status;
  memcpy(plan->set.layers, weights->layers, (size_t)geometry->layers * sizeof *weights->layers);
  plan->set.weights = *weights;
  plan->set.weights.layers = plan->set.layers;
  plan->count = dflash_weight_count(geometry);
  return DFLASH_OK;
}

static void plan_close(Plan *plan) {
  dflash_text_free(&plan->header);
  dflash_text_free(&plan->records);
  dflash_text_free(&plan->names);
  dflash_weight_set_close(&plan->set);
}

static DflashStatus write_data(Plan *plan, const DflashGeometry *geometry, DflashOutput *output, DflashError *error) {
  static const char zeros[DFLASH_CMF_TENSOR_ALIGN];
  uint64_t at = 0;
  for (int64_t i = 0; i < plan->count; i++) {
    const DflashTensor *tensor = dflash_weight_at(geometry, &plan->set, i);
    uint64_t begin = align_up(at, DFLASH_CMF_TENSOR_ALIGN);
    DflashStatus status = dflash_output_write(output, zeros, begin - at, error);
    if (status == DFLASH_OK) status = dflash_output_write(output, tensor->data, tensor->bytes, error);
    if (status != DFLASH_OK) return status;
    at = begin + tensor->bytes;
  }
  return DFLASH_OK;
}

static DflashStatus write_file(Plan *plan, const DflashGeometry *geometry, const DflashText *front, const char *path,
                               DflashError *error) {
  DflashOutput output;
  DflashStatus status = dflash_output_open(&output, path, error);
  if (status != DFLASH_OK) return status;
  status = dflash_output_write(&output, front->data, front->size, error);
  if (status == DFLASH_OK) status = write_data(plan, geometry, &output, error);
  if (status == DFLASH_OK) return dflash_output_commit(&output, error);
  dflash_output_abort(&output);
  return status;
}

DflashStatus dflash_sidecar_write(const char *path, const DflashGeometry *geometry, const DflashWeights *weights,
                                  const DflashRouter *router, const char *header_json, DflashError *error) {
  Plan plan = {0};
  DflashText front = {0};
  DflashStatus status = plan_open(&plan, geometry, weights, error);
  if (status == DFLASH_OK) status = plan_header(&plan, geometry, router, header_json, error);
  if (status == DFLASH_OK) status = plan_tensors(&plan, geometry, error);
  if (status == DFLASH_OK) status = plan_front(&plan, &front, error);
  if (status == DFLASH_OK) status = write_file(&plan, geometry, &front, path, error);
  dflash_text_free(&front);
  plan_close(&plan);
  return status;
}
