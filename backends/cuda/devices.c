/* The devices that the driver knows. */
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "devices.h"

static DflashStatus read_attribute(const CudaDriver *driver, CUdevice device, int attribute, int *value,
                                   DflashError *error) {
  return cuda_result(driver, driver->device_attribute(value, attribute, device), "asking for an attribute", error);
}

static DflashStatus read_sizes(const CudaDriver *driver, CUdevice device, CudaTraits *traits, DflashError *error) {
  int l2 = 0, shared = 0;
  const struct {
    int attribute, *value;
  } wanted[] = {{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &traits->processors},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &traits->major},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &traits->minor},
                {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared}};
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
    status = read_attribute(driver, device, wanted[i].attribute, wanted[i].value, error);
  traits->l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
  traits->shared_bytes = shared > 0 ? (uint64_t)shared : 0;
  return status;
}

static DflashStatus read_traits(const CudaDriver *driver, int ordinal, CudaTraits *traits, CUdevice *device,
                                DflashError *error) {
  size_t bytes = 0;
  *traits = (CudaTraits){0};
  DflashStatus status = cuda_result(driver, driver->device_get(device, ordinal), "asking for a device", error);
  if (!status)
    status = cuda_result(driver, driver->device_name(traits->name, sizeof traits->name, *device),
                         "asking for a device's name", error);
  if (!status)
    status = cuda_result(driver, driver->device_memory(&bytes, *device), "asking for a device's memory", error);
  if (!status) status = read_sizes(driver, *device, traits, error);
  if (status) return status;
  if (driver->device_pci(traits->pci, sizeof traits->pci, *device) != CUDA_SUCCESS) traits->pci[0] = '\0';
  traits->memory_bytes = bytes;
  snprintf(traits->id, sizeof traits->id, "%d", ordinal);
  snprintf(traits->driver, sizeof traits->driver, "CUDA driver %d.%d, compute capability %d.%d", driver->version / 1000,
           driver->version % 1000 / 10, traits->major, traits->minor);
  return DFLASH_OK;
}

static DflashStatus count_devices(const CudaDriver *driver, int *count, DflashError *error) {
  *count = 0;
  DflashStatus status = cuda_result(driver, driver->device_count(count), "counting devices", error);
  if (status || *count > 0) return status;
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "cuda: the driver is here, and no device");
}

static DflashStatus find(const CudaDriver *driver, const char *id, CudaTraits *traits, CUdevice *device,
                         DflashError *error) {
  int count;
  DflashStatus status = count_devices(driver, &count, error);
  const bool any = !id || *id == '\0';
  for (int i = 0; !status && i < count; i++) {
    status = read_traits(driver, i, traits, device, error);
    if (!status && (any || strcmp(id, traits->id) == 0)) return DFLASH_OK;
  }
  if (status) return status;
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "cuda: no device \"%s\"; there are 0 to %d", id, count - 1);
}

DflashStatus cuda_device_traits(const char *id, CudaTraits *traits, DflashError *error) {
  CudaDriver driver;
  CUdevice device;
  DflashStatus status = cuda_driver_open(&driver, error);
  if (status) return status;
  status = find(&driver, id, traits, &device, error);
  cuda_driver_close(&driver);
  return status;
}

DflashStatus cuda_devices_find(CudaDevice *device, const char *id, DflashError *error) {
  return find(&device->driver, id, &device->traits, &device->device, error);
}

static void describe(const CudaTraits *traits, DflashDevice *device) {
  *device = (DflashDevice){.memory_bytes = traits->memory_bytes};
  memcpy(device->id, traits->id, sizeof device->id);
  memcpy(device->name, traits->name, sizeof device->name);
  memcpy(device->driver, traits->driver, sizeof device->driver);
}

/* Entries are struct_size bytes apart. */
static DflashStatus list(const CudaDriver *driver, DflashDevice *devices, uint32_t capacity, uint32_t *count,
                         DflashError *error) {
  int found;
  DflashStatus status = count_devices(driver, &found, error);
  for (int i = 0; !status && i < found && (uint32_t)i < capacity; i++) {
    char *entry = (char *)devices + (size_t)i * devices->struct_size;
    CudaTraits traits;
    DflashDevice described;
    CUdevice device;
    status = read_traits(driver, i, &traits, &device, error);
    if (status) break;
    describe(&traits, &described);
    cuda_answer(entry, &described, sizeof described);
  }
  if (!status) *count = (uint32_t)found;
  return status;
}

DflashStatus cuda_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error) {
  CudaDriver driver;
  DflashStatus status = cuda_check_pointer(count, "devices: count", error);
  if (!status && capacity > 0)
    status = cuda_check_struct(devices, sizeof devices->struct_size, "devices: devices", error);
  if (!status) status = cuda_driver_open(&driver, error);
  if (status) return status;
  status = list(&driver, devices, capacity, count, error);
  cuda_driver_close(&driver);
  return status;
}
