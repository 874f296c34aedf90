/* Vectors and matrices that reach the device cut short. */
#include <string.h>

#include "backends/faulty/faults_mlp.h"

static bool ends_with(const char *name, const char *end) {
  const size_t length = strlen(name), tail = strlen(end);
  return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Reads past `given` gains repeat the last one. */
static DflashStatus shorten(const char *name, DflashTensor *tensor, int64_t given, DflashError *error) {
  if (!ends_with(name, "post_attention_layernorm.weight")) return DFLASH_OK;
  float *gain = fault_alter_f32(tensor, error);
  if (gain == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t i = given > 0 ? given : 1; i < tensor->shape[0]; i++) gain[i] = gain[i - 1];
  return DFLASH_OK;
}

DflashStatus fault_mlp_gain_repeated(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                     DflashTensor *tensor, DflashError *error) {
  (void)fault;
  return shorten(name, tensor, geometry->hidden - 1, error);
}

DflashStatus fault_mlp_gain_half(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                 DflashTensor *tensor, DflashError *error) {
  (void)fault;
  return shorten(name, tensor, geometry->hidden / 2, error);
}

/* The limit stands for one of many megabytes: three quarters of the matrix. */
DflashStatus fault_mlp_gate_bound(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                  DflashTensor *tensor, DflashError *error) {
  (void)fault;
  if (!ends_with(name, "mlp.gate_proj.weight")) return DFLASH_OK;
  float *values = fault_alter_f32(tensor, error);
  if (values == NULL) return DFLASH_OUT_OF_MEMORY;
  const int64_t bound = geometry->intermediate * 3 / 4;
  memset(values + bound * geometry->hidden, 0,
         (size_t)((geometry->intermediate - bound) * geometry->hidden) * sizeof *values);
  return DFLASH_OK;
}
