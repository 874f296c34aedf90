/* Stands between the backend's parts, by the linker's --wrap, and does one thing wrong: a kernel's module is another
 * one, or the host does not do what it should. One plant a process: that of the last model opened. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "emulated_device.h"
#include "held.h"

enum { HOST_NONE, HOST_STALE_H, HOST_STALE_VISIBLE, HOST_LATE_ROW, HOST_PLANTS };

static const char *const host_plants[HOST_PLANTS] = {"none", "stale-h", "stale-visible", "late-row"};

extern const VulkanModule __real_vulkan_modules[VULKAN_KERNEL_COUNT];
extern VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];
VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];

/* The first block's inputs of the sequence that ran last. */
static struct {
  int host; /* HOST_* */
  const DflashSequence *running, *s;
  int64_t rows; /* of the block that runs */
  char *inputs; /* as the upload buffer holds them; NULL: none */
} planted;

/* ---- the backend ---- */

const DflashBackend *vulkan_product(void); /* what backend.c gives, by another name */
DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = *vulkan_product();
  backend.name = "vulkan-planted";
  backend.about = "the Vulkan backend with one thing wrong";
  return &backend;
}

/* ---- options ---- */

DflashStatus __real_vulkan_options_read(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error);
DflashStatus __wrap_vulkan_options_read(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error);

static DflashStatus choose(const char *name, DflashError *error) {
  for (int i = 0; i < HOST_PLANTS; i++)
    if (strcmp(name, host_plants[i]) == 0) {
      planted.host = i;
      return DFLASH_OK;
    }
  for (int i = 0; i < vulkan_plant_count; i++)
    if (strcmp(name, vulkan_plants[i].name) == 0) {
      __wrap_vulkan_modules[vulkan_plants[i].kernel] = vulkan_plants[i].module;
      return DFLASH_OK;
    }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "vulkan: no plant '%s'; there are %d of shaders, %d of the host", name, vulkan_plant_count,
                          HOST_PLANTS - 1);
}

static DflashStatus emulate(const char *value, DflashError *error) {
  if (vulkan_units_emulate(value, __wrap_vulkan_modules)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: units '%s', expected emulated", value);
}

DflashStatus __wrap_vulkan_options_read(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error) {
  DflashModelDesc rest = *desc;
  DflashOption *others = dflash_alloc(desc->option_count + 1, sizeof *others);
  if (!others) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for options");
  DflashStatus status = DFLASH_OK;
  memcpy(__wrap_vulkan_modules, __real_vulkan_modules, sizeof __wrap_vulkan_modules);
  planted.host = HOST_NONE;
  vulkan_units_leave();
  rest.options = others;
  rest.option_count = 0;
  const char *plant = "none";
  for (uint32_t i = 0; !status && i < desc->option_count; i++) {
    const DflashOption *option = &desc->options[i];
    if (option->key && strcmp(option->key, "plant") == 0)
      plant = option->value;
    else if (option->key && strcmp(option->key, "units") == 0)
      status = emulate(option->value, error);
    else
      others[rest.option_count++] = *option;
  }
  if (!status) status = choose(plant, error);
  if (!status) status = __real_vulkan_options_read(&rest, options, error);
  free(others);
  return status;
}

/* ---- inputs of a block ---- */

DflashStatus __real_vulkan_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error);
DflashStatus __wrap_vulkan_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error);
DflashStatus __real_vulkan_buffer_flush(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error);
DflashStatus __wrap_vulkan_buffer_flush(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error);
void __real_vulkan_sequence_close(DflashSequence *s);
void __wrap_vulkan_sequence_close(DflashSequence *s);

static void forget_inputs(void) {
  free(planted.inputs);
  planted.inputs = NULL;
  planted.s = NULL;
}

void __wrap_vulkan_sequence_close(DflashSequence *s) {
  if (planted.s == s) forget_inputs();
  __real_vulkan_sequence_close(s);
}

DflashStatus __wrap_vulkan_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  planted.running = s;
  planted.rows = call->rows;
  const DflashStatus status = __real_vulkan_block(s, call, error);
  planted.running = NULL;
  return status;
}

/* Puts the part of the first block's inputs back. */
static void put_back(const DflashSequence *s, uint64_t offset, uint64_t bytes) {
  memcpy((char *)s->upload.mapped + offset, planted.inputs + offset, (size_t)bytes);
}

static size_t rows_bytes(const DflashSequence *s, int64_t rows) {
  return (size_t)(rows * s->model->geometry.hidden) * sizeof(float);
}

static void spoil_inputs(const DflashSequence *s) {
  const DflashGeometry *g = &s->model->geometry;
  if (planted.s != s) {
    forget_inputs();
    planted.inputs = dflash_alloc((size_t)s->upload.bytes, 1);
    if (!planted.inputs) return;
    memcpy(planted.inputs, s->upload.mapped, (size_t)s->upload.bytes);
    memset(planted.inputs + s->input.h + rows_bytes(s, planted.rows), 0, rows_bytes(s, g->block - planted.rows));
    planted.s = s;
  }
  if (planted.host == HOST_STALE_H) put_back(s, s->input.h, rows_bytes(s, g->block));
  if (planted.host == HOST_STALE_VISIBLE) put_back(s, s->input.visible, (uint64_t)g->layers * s->input.visible_stride);
}

DflashStatus __wrap_vulkan_buffer_flush(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error) {
  const DflashSequence *s = planted.running;
  const bool spoils = planted.host == HOST_STALE_H || planted.host == HOST_STALE_VISIBLE;
  if (spoils && s && buffer == &s->upload) spoil_inputs(s);
  return __real_vulkan_buffer_flush(device, buffer, error);
}

/* ---- rows of the context ---- */

DflashStatus __real_vulkan_change_reserve(VulkanChange *change, int64_t rows, int how, DflashError *error);
DflashStatus __wrap_vulkan_change_reserve(VulkanChange *change, int64_t rows, int how, DflashError *error);

/* Buffers that grew have the rows that were held one row too early for those that ask for them. */
DflashStatus __wrap_vulkan_change_reserve(VulkanChange *change, int64_t rows, int how, DflashError *error) {
  const bool spoils = planted.host == HOST_LATE_ROW;
  const int64_t capacity = change->held[0].capacity, held = change->settled;
  const DflashStatus status = __real_vulkan_change_reserve(change, rows + (spoils ? 1 : 0), how, error);
  if (!status && spoils && held > 0 && capacity > 0 && change->held[0].capacity > capacity) change->held[0].base--;
  return status;
}
