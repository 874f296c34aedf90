/* A device with its kernels: its primary context, one stream on which everything runs in order, the loaded modules. */
#ifndef DFLASH_CUDA_DEVICE_H
#define DFLASH_CUDA_DEVICE_H

#include "dflash/backend.h"
#include "driver.h"
#include "kernels/tiled/layout.h"

enum {
#define CUDA_KERNEL_ENUM(name, arguments) CUDA_KERNEL_##name,
  CUDA_KERNELS(CUDA_KERNEL_ENUM)
#undef CUDA_KERNEL_ENUM
      CUDA_KERNEL_COUNT
};

enum { CUDA_MOST_MODULES = 8 };

/* A compiled .cu file of kernels/, as it lies in this module. The first has code for every device; others may have none
 * for one. */
typedef struct CudaModule {
  const char *name;
  const void *image;
} CudaModule;
extern const CudaModule cuda_modules[]; /* the first is "plain"; ends with NULLs */

typedef struct CudaTraits {
  char id[64], name[128], driver[128];
  char pci[16];                                  /* "0000:1b:00.0"; "" where it has none */
  uint64_t memory_bytes, l2_bytes, shared_bytes; /* shared: of a block, when asked for */
  int32_t processors, major, minor;              /* compute capability */
} CudaTraits;

typedef struct CudaDevice {
  CudaDriver driver;
  CUdevice device;
  CUcontext context; /* NULL: not retained */
  CUstream stream;
  CUmodule modules[CUDA_MOST_MODULES]; /* NULL: none for this device */
  CUfunction kernels[CUDA_KERNEL_COUNT];
  CudaTraits traits;
  bool entered; /* its context is current */
  bool lost;    /* a call said that nothing runs here any more */
} CudaDevice;

/* The device named by its id, or the first one. Its context is current until cuda_leave. On failure nothing stays. */
DflashStatus cuda_device_open(const char *id, CudaDevice *device, DflashError *error);
void cuda_device_close(CudaDevice *device); /* while its context is current, which ends; zeroed: fine */

/* What is known of the devices without opening one. */
DflashStatus cuda_device_traits(const char *id, CudaTraits *traits, DflashError *error);
DflashStatus cuda_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);

/* Makes the device's context current for the calls between them. A lost device is refused. */
DflashStatus cuda_enter(CudaDevice *device, DflashError *error);
void cuda_leave(CudaDevice *device);
/* The same for what must be done with a lost device, too: releasing what it holds. */
void cuda_enter_to_close(CudaDevice *device);

/* The one place where the result of a call of the driver becomes a status. */
DflashStatus cuda_check(CudaDevice *device, CUresult result, const char *what, DflashError *error);
#define CUDA_CALL(device, what, error, member, ...) \
  cuda_check((device), (device)->driver.member(__VA_ARGS__), (what), (error))

/* A function of a module by its name, NULL where no module has it. */
DflashStatus cuda_device_function(CudaDevice *device, const char *name, CUfunction *function, DflashError *error);

typedef struct CudaGrid {
  uint32_t x, y, z;
  uint32_t shared; /* bytes of dynamic shared memory */
} CudaGrid;

/* Queues a kernel of CUDA_THREADS threads a block on the device's stream; arguments: its struct. */
DflashStatus cuda_launch(CudaDevice *device, int kernel, CudaGrid grid, const void *arguments, DflashError *error);

/* Waits until everything that was queued is done. */
DflashStatus cuda_wait(CudaDevice *device, const char *what, DflashError *error);

#endif
