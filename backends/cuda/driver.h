/* The CUDA driver's interface as a table of functions, found at run time: nothing links libcuda, and no header of a
 * toolkit is needed. Only the types, constants and functions that this backend uses stand here, as the driver's binary
 * interface has them since CUDA 11.4. */
#ifndef DFLASH_CUDA_DRIVER_H
#define DFLASH_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dflash/status.h"

typedef int CUresult; /* 0 is success */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Results that have a status of their own. */
enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_CONTAINED = 226,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_UNKNOWN = 999
};

/* Attributes of a device. */
enum {
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

enum {
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_RECORD_EXTERNAL = 1,      /* while a stream is captured: a node that records */
  CU_STREAM_CAPTURE_MODE_RELAXED = 2 /* loading a kernel on its first launch is allowed */
};

/* X(member, symbol, arguments) */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                                   \
  X(init, cuInit, (unsigned flags))                                                                                \
  X(driver_version, cuDriverGetVersion, (int *version))                                                            \
  X(error_name, cuGetErrorName, (CUresult result, const char **name))                                              \
  X(error_string, cuGetErrorString, (CUresult result, const char **text))                                          \
  X(device_count, cuDeviceGetCount, (int *count))                                                                  \
  X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                                     \
  X(device_name, cuDeviceGetName, (char *name, int size, CUdevice device))                                         \
  X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                         \
  X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                          \
  X(device_pci, cuDeviceGetPCIBusId, (char *pci, int size, CUdevice device))                                       \
  X(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                              \
  X(context_push, cuCtxPushCurrent_v2, (CUcontext context))                                                        \
  X(context_pop, cuCtxPopCurrent_v2, (CUcontext * context))                                                        \
  X(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                                         \
  X(module_unload, cuModuleUnload, (CUmodule module))                                                              \
  X(module_function, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))              \
  X(function_set, cuFuncSetAttribute, (CUfunction function, int attribute, int value))                             \
  X(memory_alloc, cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))                                             \
  X(memory_free, cuMemFree_v2, (CUdeviceptr memory))                                                               \
  X(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                     \
  X(host_free, cuMemFreeHost, (void *memory))                                                                      \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))       \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))               \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))       \
  X(fill, cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t words, CUstream stream))                       \
  X(stream_create, cuStreamCreate, (CUstream * stream, unsigned flags))                                            \
  X(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(stream_wait, cuStreamSynchronize, (CUstream stream))                                                           \
  X(event_create, cuEventCreate, (CUevent * event, unsigned flags))                                                \
  X(event_destroy, cuEventDestroy_v2, (CUevent event))                                                             \
  X(event_record, cuEventRecord, (CUevent event, CUstream stream))                                                 \
  X(event_record_node, cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags))                   \
  X(event_wait, cuEventSynchronize, (CUevent event))                                                               \
  X(event_elapsed, cuEventElapsedTime, (float *ms, CUevent begin, CUevent end))                                    \
  X(launch, cuLaunchKernel,                                                                                        \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,   \
     unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **extra))                          \
  X(launch_cooperative, cuLaunchCooperativeKernel,                                                                 \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,   \
     unsigned block_z, unsigned shared, CUstream stream, void **arguments))                                        \
  X(capture_begin, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                           \
  X(capture_end, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                           \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) \
  X(graph_launch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                              \
  X(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec exec))                                                    \
  X(graph_destroy, cuGraphDestroy, (CUgraph graph))

/* A launch as cuOccupancyMaxActiveClusters takes it; without attributes the kernel's own cluster size counts. */
typedef struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
  CUstream stream;
  void *attributes;
  unsigned attribute_count;
} CUlaunchConfig;

typedef struct CudaDriver {
  void *library;
  int version; /* 13000: a driver for CUDA 13.0 */
  /* cuOccupancyMaxActiveClusters, since CUDA 11.8; NULL: not there */
  CUresult (*active_clusters)(int *clusters, CUfunction function, const CUlaunchConfig *config);
#define CUDA_DRIVER_MEMBER(member, symbol, arguments) CUresult(*member) arguments;
  CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
} CudaDriver;

/* DFLASH_UNAVAILABLE, with the reason, where there is no driver or it does not start; then the table is zeroed. */
DflashStatus cuda_driver_open(CudaDriver *driver, DflashError *error);
void cuda_driver_close(CudaDriver *driver); /* zeroed or closed: fine */

/* DFLASH_OK for CUDA_SUCCESS, else the result's status; error says "cuda: WHAT: the driver's name and text". */
DflashStatus cuda_result(const CudaDriver *driver, CUresult result, const char *what, DflashError *error);
/* After such a result nothing runs any more in its context. */
bool cuda_result_is_lost(CUresult result);

#endif
