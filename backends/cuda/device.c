#include "device.h"

#include <stdio.h>

#include "base/error.h"
#include "devices.h"

DflashStatus cuda_check(CudaDevice *device, CUresult result, const char *what, DflashError *error) {
  if (result == CUDA_SUCCESS) return DFLASH_OK;
  if (cuda_result_is_lost(result)) device->lost = true;
  return cuda_result(&device->driver, result, what, error);
}

DflashStatus cuda_enter(CudaDevice *device, DflashError *error) {
  if (device->lost)
    return dflash_error_set(error, DFLASH_DEVICE_LOST,
                            "cuda: device %s was lost in an earlier call; close what was opened on it and open it anew",
                            device->traits.id);
  DflashStatus status = CUDA_CALL(device, "entering the device's context", error, context_push, device->context);
  device->entered = status == DFLASH_OK;
  return status;
}

void cuda_leave(CudaDevice *device) {
  CUcontext context;
  if (device->entered) (void)device->driver.context_pop(&context);
  device->entered = false;
}

void cuda_enter_to_close(CudaDevice *device) {
  device->entered = device->driver.context_push(device->context) == CUDA_SUCCESS;
}

static const char *const kernel_names[CUDA_KERNEL_COUNT] = {
#define KERNEL_NAME(name, arguments) [CUDA_KERNEL_##name] = "dflash_" #name,
    CUDA_KERNELS(KERNEL_NAME)
#undef KERNEL_NAME
};

static DflashStatus load_modules(CudaDevice *device, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int i = 0; !status && cuda_modules[i].name; i++) {
    char what[64];
    snprintf(what, sizeof what, "loading the %s kernels", cuda_modules[i].name);
    const CUresult result = device->driver.module_load(&device->modules[i], cuda_modules[i].image);
    if (i > 0 && result == CUDA_ERROR_NO_BINARY_FOR_GPU)
      device->modules[i] = NULL;
    else
      status = cuda_check(device, result, what, error);
  }
  return status;
}

DflashStatus cuda_device_function(CudaDevice *device, const char *name, CUfunction *function, DflashError *error) {
  *function = NULL;
  for (int i = 0; cuda_modules[i].name; i++) {
    if (!device->modules[i]) continue;
    const CUresult result = device->driver.module_function(function, device->modules[i], name);
    if (result == CUDA_SUCCESS) return DFLASH_OK;
    *function = NULL;
    if (result != CUDA_ERROR_NOT_FOUND) return cuda_check(device, result, name, error);
  }
  return DFLASH_OK;
}

static DflashStatus find_kernels(CudaDevice *device, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int i = 0; !status && i < CUDA_KERNEL_COUNT; i++) {
    status = cuda_device_function(device, kernel_names[i], &device->kernels[i], error);
    if (!status && !device->kernels[i])
      status = dflash_error_set(error, DFLASH_INTERNAL, "cuda: no module has the kernel %s", kernel_names[i]);
  }
  return status;
}

static DflashStatus open_context(CudaDevice *device, DflashError *error) {
  DflashStatus status =
      CUDA_CALL(device, "opening the device's context", error, context_retain, &device->context, device->device);
  if (status) {
    device->context = NULL;
    return status;
  }
  return cuda_enter(device, error);
}

DflashStatus cuda_device_open(const char *id, CudaDevice *device, DflashError *error) {
  *device = (CudaDevice){0};
  DflashStatus status = cuda_driver_open(&device->driver, error);
  if (!status) status = cuda_devices_find(device, id, error);
  if (!status) status = open_context(device, error);
  if (!status)
    status = CUDA_CALL(device, "opening a stream", error, stream_create, &device->stream, CU_STREAM_NON_BLOCKING);
  if (!status) status = load_modules(device, error);
  if (!status) status = find_kernels(device, error);
  if (status) cuda_device_close(device);
  return status;
}

void cuda_device_close(CudaDevice *device) {
  for (int i = 0; i < CUDA_MOST_MODULES; i++)
    if (device->modules[i]) (void)device->driver.module_unload(device->modules[i]);
  if (device->stream) (void)device->driver.stream_destroy(device->stream);
  if (device->context) {
    cuda_leave(device);
    (void)device->driver.context_release(device->device);
  }
  cuda_driver_close(&device->driver);
  *device = (CudaDevice){0};
}

DflashStatus cuda_launch(CudaDevice *device, int kernel, CudaGrid grid, const void *arguments, DflashError *error) {
  void *list[] = {(void *)arguments}; /* the driver reads it only */
  return CUDA_CALL(device, kernel_names[kernel], error, launch, device->kernels[kernel], grid.x, grid.y, grid.z,
                   CUDA_THREADS, 1, 1, grid.shared, device->stream, list, NULL);
}

DflashStatus cuda_wait(CudaDevice *device, const char *what, DflashError *error) {
  return CUDA_CALL(device, what, error, stream_wait, device->stream);
}
