#include "driver.h"

#include <dlfcn.h>

#include "base/error.h"

enum { OLDEST_DRIVER = 11040 };

static DflashStatus find_functions(CudaDriver *driver, DflashError *error) {
#define FIND(member, symbol, arguments)                        \
  *(void **)&driver->member = dlsym(driver->library, #symbol); \
  if (!driver->member)                                         \
    return dflash_error_set(error, DFLASH_UNAVAILABLE,         \
                            "cuda: the driver has no " #symbol "; one for CUDA 11.4 or later is needed");
  CUDA_DRIVER_FUNCTIONS(FIND)
#undef FIND
  *(void **)&driver->active_clusters = dlsym(driver->library, "cuOccupancyMaxActiveClusters");
  return DFLASH_OK;
}

/* A driver that does not start is one that is not there. */
static DflashStatus start(CudaDriver *driver, DflashError *error) {
  CUresult result = driver->init(0);
  if (result == CUDA_SUCCESS) result = driver->driver_version(&driver->version);
  if (result != CUDA_SUCCESS) {
    (void)cuda_result(driver, result, "the driver does not start", error);
    if (error) error->status = DFLASH_UNAVAILABLE;
    return DFLASH_UNAVAILABLE;
  }
  if (driver->version >= OLDEST_DRIVER) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNAVAILABLE,
                          "cuda: the driver is for CUDA %d.%d; one for 11.4 or later is needed", driver->version / 1000,
                          driver->version % 1000 / 10);
}

/* The driver starts threads of its own: once opened it stays in the process, and closing only counts. */
DflashStatus cuda_driver_open(CudaDriver *driver, DflashError *error) {
  *driver = (CudaDriver){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
  if (!driver->library) return dflash_error_set(error, DFLASH_UNAVAILABLE, "cuda: no driver: %s", dlerror());
  DflashStatus status = find_functions(driver, error);
  if (!status) status = start(driver, error);
  if (status) cuda_driver_close(driver);
  return status;
}

void cuda_driver_close(CudaDriver *driver) {
  if (driver->library) dlclose(driver->library);
  *driver = (CudaDriver){0};
}

bool cuda_result_is_lost(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
    return true;
  default:
    return result == CUDA_ERROR_ILLEGAL_ADDRESS ||
           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
  }
}

static DflashStatus status_of(CUresult result) {
  if (result == CUDA_ERROR_LAUNCH_TIMEOUT) return DFLASH_TIMED_OUT;
  if (cuda_result_is_lost(result)) return DFLASH_DEVICE_LOST;
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return DFLASH_OUT_OF_MEMORY;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return DFLASH_UNSUPPORTED;
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_SYSTEM_NOT_READY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return DFLASH_UNAVAILABLE;
  default:
    return DFLASH_INTERNAL;
  }
}

DflashStatus cuda_result(const CudaDriver *driver, CUresult result, const char *what, DflashError *error) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS) return DFLASH_OK;
  if (driver->error_name(result, &name) != CUDA_SUCCESS || !name) name = "a result that the driver does not know";
  if (driver->error_string(result, &text) != CUDA_SUCCESS || !text) text = "no text";
  return dflash_error_set(error, status_of(result), "cuda: %s: %s (%d): %s", what, name, result, text);
}
