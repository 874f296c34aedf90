#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

DflashStatus fault_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error) {
  const DflashBackend *base;
  const DflashStatus status = fault_base_load(FAULT_BASE_DEFAULT, &base, error);
  return status == DFLASH_OK ? base->devices(devices, capacity, count, error) : status;
}

/* What the base is asked for: its own options, the fault's geometry. A fault of another profile brings the kernels of
 * it: the base stays exact where it has none. */
typedef struct Request {
  FaultOptions options;
  const DflashBackend *base;
  DflashGeometry geometry;
  DflashModelDesc desc;
} Request;

static DflashStatus open_request(const DflashModelDesc *desc, Request *request, DflashError *error) {
  FaultOptions *o = &request->options;
  DflashStatus status = fault_options_parse(desc, o, error);
  if (status == DFLASH_OK) status = fault_base_load(o->base, &request->base, error);
  if (status != DFLASH_OK) return status;
  request->geometry = *desc->geometry;
  if (o->fault->geometry != NULL) o->fault->geometry(o->fault, &request->geometry);
  request->desc = *desc;
  request->desc.geometry = &request->geometry;
  request->desc.options = o->passed;
  request->desc.option_count = o->passed_count;
  status = request->base->supports(&request->desc, error);
  if (status != DFLASH_UNSUPPORTED || o->fault->defect.id == NULL || o->fault->defect.profile != desc->profile)
    return status;
  request->desc.profile = DFLASH_PROFILE_EXACT;
  return request->base->supports(&request->desc, error);
}

static DflashStatus check(const DflashModelDesc *desc, const char *call, DflashError *error) {
  DflashStatus status = fault_check_struct(call, desc, sizeof *desc, error);
  if (status == DFLASH_OK) status = fault_check_pointer("geometry", desc->geometry, error);
  return status;
}

DflashStatus fault_supports(const DflashModelDesc *desc, DflashError *error) {
  Request request = {0};
  DflashStatus status = check(desc, "supports: desc", error);
  if (status == DFLASH_OK) status = open_request(desc, &request, error);
  free(request.options.passed);
  return status;
}

static DflashStatus open_inner(DflashModel *model, const DflashModelDesc *desc, const Request *request,
                               DflashError *error) {
  const DflashSequenceDesc worker = {.struct_size = sizeof worker};
  DflashModelDesc inner = request->desc;
  DflashWeightSet altered = {0};
  DflashStatus status = fault_weights_alter(model->fault, desc->geometry, desc->weights, &altered, error);
  inner.weights = &altered.weights;
  if (status == DFLASH_OK) status = model->base->model_open(&inner, &model->inner, error);
  fault_weights_close(desc->geometry, desc->weights, &altered);
  if (status == DFLASH_OK) status = model->base->sequence_open(model->inner, &worker, &model->worker, error);
  return status;
}

static DflashStatus fill(DflashModel *model, const DflashModelDesc *desc, const Request *request, DflashError *error) {
  const Fault *fault = request->options.fault;
  model->base = request->base;
  model->geometry = *desc->geometry;
  model->profile = desc->profile;
  model->fault = fault;
  model->expose_end = request->options.expose_end;
  model->slow_stage = request->options.slow_stage;
  model->slow_by = request->options.slow_by;
  snprintf(model->path, sizeof model->path, "%s, %s", model->base->name,
           fault->defect.id != NULL ? fault->defect.id : "no defect");
  model->scratch = dflash_alloc(1, sizeof *model->scratch);
  if (model->scratch == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for the model");
  const DflashStatus status = open_inner(model, desc, request, error);
  return status == DFLASH_OK ? fault_weights_keep(model, desc->weights, error) : status;
}

DflashStatus fault_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  DflashStatus status = fault_check_pointer("model_open: model", model, error);
  if (status != DFLASH_OK) return status;
  *model = NULL;
  status = check(desc, "model_open: desc", error);
  if (status == DFLASH_OK) status = fault_check_pointer("model_open: weights", desc->weights, error);
  if (status == DFLASH_OK) status = fault_check_pointer("model_open: layers", desc->weights->layers, error);
  if (status == DFLASH_OK) status = fault_check_pointer("model_open: inv_freq", desc->weights->inv_freq, error);
  if (status != DFLASH_OK) return status;
  Request request = {0};
  DflashModel *opened = NULL;
  status = open_request(desc, &request, error);
  if (status == DFLASH_OK) {
    opened = dflash_alloc(1, sizeof *opened);
    status = opened != NULL ? fill(opened, desc, &request, error)
                            : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for the model");
  }
  free(request.options.passed);
  if (status == DFLASH_OK)
    *model = opened;
  else
    fault_model_close(opened);
  return status;
}

void fault_model_close(DflashModel *model) {
  if (model == NULL) return;
  if (model->base != NULL) {
    model->base->sequence_close(model->worker);
    model->base->model_close(model->inner);
  }
  for (int slot = 0; model->scratch != NULL && slot < FAULT_SLOTS; slot++) free(model->scratch->slots[slot].data);
  free(model->scratch);
  free(model->fault_data);
  fault_weights_drop(model);
  free(model);
}
