/* The vtable, and what can be said before a model is open. */
#include "reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

const DflashBackend reference_backend = {
    .struct_size = sizeof(DflashBackend),
    .abi = DFLASH_BACKEND_ABI,
    .name = "reference",
    .version = "0.1.0",
    .about = "scalar C in f32, written to be read",
    .options =
        "threads=N of matrix products, 1 to 256 (1), order=forward|backward|pairwise|lanes16|blocks128|split3 of "
        "every f32 sum (forward), fma=0|1 (0), terms=plain|apart (plain)",
    .devices = reference_devices,
    .supports = reference_supports,
    .model_open = reference_model_open,
    .model_close = reference_model_close,
    .model_info = reference_model_info,
    .stage_info = reference_stage_info,
    .sequence_open = reference_sequence_open,
    .sequence_close = reference_sequence_close,
    .push = reference_push,
    .truncate = reference_truncate,
    .reset = reference_reset,
    .load = reference_load,
    .span = reference_span,
    .read_context = reference_read_context,
    .block = reference_block,
    .stage = reference_stage,
    .read_stage = reference_read_stage,
    .block_time = reference_block_time,
    .block_spans = reference_block_spans,
    .evict_caches = reference_evict_caches,
    .measure_read = reference_measure_read,
    .measure_matrix = reference_measure_matrix,
    .poison = reference_poison,
};

/* The processor's name as the system gives it. */
static void name_processor(char *name, size_t size) {
  snprintf(name, size, "host processor");
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  char line[256];
  while (fgets(line, sizeof line, file) != NULL) {
    const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    if (value == NULL) continue;
    value += 1 + strspn(value + 1, " \t");
    snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
    break;
  }
  fclose(file);
}

DflashStatus reference_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error) {
  DflashStatus status = reference_check_pointer("devices: count", count, error);
  if (status == DFLASH_OK && capacity > 0) {
    DflashDevice device = {.is_cpu = 1, .id = "cpu", .driver = "scalar C, compiler " __VERSION__};
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) device.memory_bytes = (uint64_t)pages * (uint64_t)page;
    name_processor(device.name, sizeof device.name);
    status = reference_answer("devices: devices", devices, &device, sizeof device, error);
  }
  if (status == DFLASH_OK) *count = 1;
  return status;
}

/* Without weights nothing is known of their storage. */
static DflashStatus check_profile(const DflashModelDesc *desc, DflashError *error) {
  const Range range = {"profile", desc->profile, 0, DFLASH_PROFILE_COUNT - 1};
  DflashStatus status = reference_check_ranges("supports", &range, 1, error);
  if (status != DFLASH_OK || desc->profile != DFLASH_PROFILE_I8 || desc->weights == NULL) return status;
  if (reference_tensors_any(desc->weights, desc->geometry->layers, DFLASH_STORAGE_Q4TP)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "reference: profile i8 is for q4tp matrices, and no matrix of this model is q4tp");
}

DflashStatus reference_supports(const DflashModelDesc *desc, DflashError *error) {
  Options options;
  DflashStatus status = reference_check_struct("supports: desc", desc, sizeof *desc, error);
  if (status == DFLASH_OK) status = reference_check_pointer("supports: geometry", desc->geometry, error);
  if (status == DFLASH_OK) status = reference_options_check(desc, &options, error);
  if (status == DFLASH_OK) status = check_profile(desc, error);
  if (status != DFLASH_OK) return status;
  if (desc->device != NULL && *desc->device != '\0' && strcmp(desc->device, "cpu") != 0)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "reference: no device \"%s\", there is \"cpu\"", desc->device);
  if (desc->geometry->vocab > INT32_MAX)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "reference: vocab is %" PRId64 ", tokens are 32 bits wide",
                            desc->geometry->vocab);
  return DFLASH_OK;
}
