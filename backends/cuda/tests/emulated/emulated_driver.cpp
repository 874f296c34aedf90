#include "emulated_driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "../../driver.h"
}
#include "fibers.h"
#include "kernels.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

enum { STATIC_SHARED = 48 << 10 };
/* With DFLASH_EMULATED_FAST it is a device on which the fast path runs (as fast_model.cpp has it). */
enum { PROCESSORS = 4, FAST_PROCESSORS = 132 };
static const CUresult SUCCESS = CUDA_SUCCESS, INVALID_VALUE = 1, INVALID_CONTEXT = 201;

EXPORTED EmulatedDriver emulated_driver;

static int64_t most_memory(int32_t fast) { return fast != 0 ? int64_t{1} << 30 : int64_t{64} << 20; }

static EmulatedDriver initial() {
  EmulatedDriver d{};
  d.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
  d.devices = 1;
  d.fast = getenv("DFLASH_EMULATED_FAST") != nullptr;
  d.memory_left = most_memory(d.fast);
  d.compute_major = 9;
  d.version = 13000;
  d.backwards = getenv("DFLASH_EMULATED_BACKWARDS") != nullptr;
  return d;
}
EmulatedDriver emulated_driver = initial();

static int most_shared() { return (emulated_driver.fast != 0 ? 227 : 100) << 10; }

typedef std::function<CUresult()> Work;
struct CUctx_st {
  int device;
};
struct CUfunc_st {
  const EmulatedKernel *kernel;
  unsigned most_shared = STATIC_SHARED;
};
struct CUmod_st {
  const EmulatedKernel *kernels;
  std::map<std::string, CUfunc_st> functions;
};
struct CUevent_st {
  uint64_t time = 0;
};
struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
struct CUstream_st {
  CUgraph capture = nullptr;
};

static CUctx_st contexts[8];
static std::map<CUdeviceptr, size_t> memory;
static CUresult lost;

static bool is_lost(CUresult r) { return r == CUDA_ERROR_ILLEGAL_ADDRESS || r == CUDA_ERROR_LAUNCH_FAILED; }

/* What a call that can fail begins with. */
static CUresult enter(bool needs_context = true) {
  if (lost != CUDA_SUCCESS) return lost;
  if (++emulated_driver.calls == emulated_driver.fail_at) {
    if (is_lost(emulated_driver.fail_with) && emulated_driver.contexts > 0) lost = emulated_driver.fail_with;
    return emulated_driver.fail_with;
  }
  return needs_context && emulated_driver.pushed == 0 ? INVALID_CONTEXT : SUCCESS;
}
#define ENTER(...)                         \
  do {                                     \
    const CUresult r = enter(__VA_ARGS__); \
    if (r != CUDA_SUCCESS) return r;       \
  } while (0)

EXPORTED CUresult cuInit(unsigned) {
  ENTER(false);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDriverGetVersion(int *version) {
  ENTER(false);
  *version = emulated_driver.version;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : nullptr;
  return *name ? SUCCESS : INVALID_VALUE;
}
EXPORTED CUresult cuGetErrorString(CUresult result, const char **text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "emulated";
  return CUDA_SUCCESS;
}

/* ---- devices and contexts ---- */

EXPORTED CUresult cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = static_cast<int>(emulated_driver.devices);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  ENTER(false);
  snprintf(name, static_cast<size_t>(size), "emulated device %d", device);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  ENTER(false);
  *bytes = static_cast<size_t>(most_memory(emulated_driver.fast));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  ENTER(false);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = emulated_driver.fast != 0 ? FAST_PROCESSORS : PROCESSORS;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = emulated_driver.compute_major;
    break;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    *value = 1 << 20;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = most_shared();
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetPCIBusId(char *pci, int size, CUdevice device) {
  ENTER(false);
  snprintf(pci, static_cast<size_t>(size), "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(false);
  *context = &contexts[device];
  emulated_driver.contexts++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (--emulated_driver.contexts == 0) lost = CUDA_SUCCESS; /* the next one is a fresh one */
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxPushCurrent_v2(CUcontext) {
  if (lost == CUDA_SUCCESS && ++emulated_driver.calls == emulated_driver.fail_at) return emulated_driver.fail_with;
  emulated_driver.pushed++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxPopCurrent_v2(CUcontext *) {
  emulated_driver.pushed--;
  return CUDA_SUCCESS;
}

/* ---- modules ---- */

/* An image "kernels PATH" stands for those of a library, which stays; any other one for the driver's own. */
static const EmulatedKernel *kernels_of(const char *image) {
  if (strncmp(image, "kernels ", 8) != 0) return emulated_kernels;
  void *library = dlopen(image + 8, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) fprintf(stderr, "emulated driver: %s\n", dlerror());
  return library ? static_cast<const EmulatedKernel *>(dlsym(library, "emulated_planted_kernels")) : nullptr;
}

EXPORTED CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER();
  const EmulatedKernel *kernels = image ? kernels_of(static_cast<const char *>(image)) : nullptr;
  if (!kernels) return INVALID_VALUE;
  *module = new CUmod_st{kernels, {}};
  emulated_driver.modules++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuModuleUnload(CUmodule module) {
  delete module;
  emulated_driver.modules--;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER();
  for (const EmulatedKernel *k = module->kernels; k->name; k++)
    if (std::string(name) == k->name && (!k->whole || emulated_driver.fast != 0)) {
      module->functions[name].kernel = k;
      *function = &module->functions[name];
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}
EXPORTED CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  ENTER();
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > most_shared())
    return INVALID_VALUE;
  function->most_shared = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}

/* ---- memory ---- */

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  ENTER();
  void *at;
  if (bytes == 0) return INVALID_VALUE;
  if (static_cast<int64_t>(bytes) > emulated_driver.memory_left || posix_memalign(&at, 256, bytes) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memset(at, 0xa5, bytes);
  *address = reinterpret_cast<CUdeviceptr>(at);
  memory[*address] = bytes;
  emulated_driver.memory_left -= static_cast<int64_t>(bytes);
  emulated_driver.allocations++;
  emulated_driver.allocations_made++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFree_v2(CUdeviceptr address) {
  const auto found = memory.find(address);
  if (found == memory.end()) return INVALID_VALUE;
  emulated_driver.memory_left += static_cast<int64_t>(found->second);
  memory.erase(found);
  free(reinterpret_cast<void *>(address));
  emulated_driver.allocations--;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  ENTER();
  *address = malloc(bytes);
  if (!*address) return CUDA_ERROR_OUT_OF_MEMORY;
  emulated_driver.pinned++;
  emulated_driver.allocations_made++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFreeHost(void *address) {
  free(address);
  emulated_driver.pinned--;
  return CUDA_SUCCESS;
}

/* ---- work: at once, or, while a stream is captured, when its graph is launched ---- */

static CUresult queue(CUstream stream, const Work &work) {
  if (!stream->capture) return work();
  stream->capture->work.push_back(work);
  return CUDA_SUCCESS;
}

static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream) {
  ENTER();
  return queue(stream, [=] { return memcpy(to, from, bytes), SUCCESS; });
}
EXPORTED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return copy(reinterpret_cast<void *>(to), from, bytes, stream);
}
EXPORTED CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(to, reinterpret_cast<const void *>(from), bytes, stream);
}
EXPORTED CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes, stream);
}
EXPORTED CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream stream) {
  ENTER();
  return queue(stream, [=] {
    for (size_t i = 0; i < words; i++) reinterpret_cast<unsigned *>(to)[i] = value;
    return SUCCESS;
  });
}

EXPORTED CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned by,
                                 unsigned bz, unsigned shared, CUstream stream, void **arguments, void **) {
  ENTER();
  if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || by != 1 || bz != 1 || shared > f->most_shared)
    return INVALID_VALUE;
  const size_t bytes = f->kernel->bytes;
  const auto copied = std::make_shared<std::vector<unsigned char>>(bytes);
  memcpy(copied->data(), arguments[0], bytes);
  return queue(stream, [=] {
    if (++emulated_driver.kernels == emulated_driver.crash_at) lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (lost != CUDA_SUCCESS || emulated_driver.skips_kernels != 0) return lost;
    if (f->kernel->whole) return f->kernel->call(copied->data()), SUCCESS;
    const bool ended = emulated_run({x, y, z}, threads, shared, emulated_driver.backwards != 0,
                                    [&] { f->kernel->call(copied->data()); });
    if (!ended) lost = CUDA_ERROR_LAUNCH_FAILED;
    return lost;
  });
}
/* As many clusters of two as there are pairs of processors. */
EXPORTED CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction, const CUlaunchConfig *config) {
  ENTER();
  if (config->attribute_count != 0 || config->grid_x % 2 != 0) return INVALID_VALUE;
  *clusters = (emulated_driver.fast != 0 ? FAST_PROCESSORS : PROCESSORS) / 2;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, CUstream, void **) {
  return 801; /* not supported */
}

/* ---- streams, events, graphs ---- */

EXPORTED CUresult cuStreamCreate(CUstream *stream, unsigned) {
  ENTER();
  *stream = new CUstream_st;
  emulated_driver.streams++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  emulated_driver.streams--;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamSynchronize(CUstream) {
  ENTER();
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventCreate(CUevent *event, unsigned) {
  ENTER();
  *event = new CUevent_st;
  emulated_driver.events++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  emulated_driver.events--;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  if (stream->capture) return INVALID_VALUE;
  event->time = emulated_clock();
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  ENTER();
  if (flags != CU_EVENT_RECORD_EXTERNAL || !stream->capture) return INVALID_VALUE;
  return queue(stream, [=] { return event->time = emulated_clock(), SUCCESS; });
}
EXPORTED CUresult cuEventSynchronize(CUevent) {
  ENTER();
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  ENTER();
  if (begin->time == 0 || end->time == 0) return INVALID_VALUE;
  *ms = static_cast<float>(static_cast<double>(end->time - begin->time) * 1e-6);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  ENTER();
  stream->capture = new CUgraph_st;
  emulated_driver.graphs++;
  return CUDA_SUCCESS;
}
/* Ends the capture, also where it fails. */
EXPORTED CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  const CUresult result = enter();
  *graph = stream->capture;
  stream->capture = nullptr;
  if (result == CUDA_SUCCESS) return result;
  delete *graph;
  *graph = nullptr;
  emulated_driver.graphs--;
  return result;
}
EXPORTED CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  ENTER();
  *exec = new CUgraphExec_st{graph->work};
  emulated_driver.execs++;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGraphLaunch(CUgraphExec exec, CUstream) {
  ENTER();
  for (const Work &work : exec->work) {
    const CUresult result = work();
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete exec;
  emulated_driver.execs--;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  emulated_driver.graphs--;
  return CUDA_SUCCESS;
}
