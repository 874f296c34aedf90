#include "nvml.h"

#include <dlfcn.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

/* The library's constants. */
enum { SUCCESS = 0, NOT_SUPPORTED = 3, CLOCK_OF_MULTIPROCESSORS = 1, CLOCK_OF_MEMORY = 2, SENSOR_OF_CHIP = 0 };

/* Bytes of a process's entry: number, memory; later versions have the numbers of its part of the device, too. */
enum { FIRST_ENTRY_BYTES = 16, ENTRY_BYTES = 24, MOST_PROCESSES = 256 };

/* The list in its newest version. */
static void find_list(void *library, const char *name, VulkanNvmlList *list) {
  static const struct {
    const char *suffix;
    size_t entry_bytes;
  } versions[] = {{"_v3", ENTRY_BYTES}, {"_v2", ENTRY_BYTES}, {"", FIRST_ENTRY_BYTES}};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0] && !list->read; i++) {
    char versioned[64];
    snprintf(versioned, sizeof versioned, "%s%s", name, versions[i].suffix);
    *(void **)&list->read = dlsym(library, versioned);
    list->entry_bytes = versions[i].entry_bytes;
  }
}

static void find_functions(VulkanNvml *nvml) {
  void *library = nvml->library;
  *(void **)&nvml->shut_down = dlsym(library, "nvmlShutdown");
  *(void **)&nvml->clock = dlsym(library, "nvmlDeviceGetClockInfo");
  *(void **)&nvml->temperature = dlsym(library, "nvmlDeviceGetTemperature");
  *(void **)&nvml->power = dlsym(library, "nvmlDeviceGetPowerUsage");
  *(void **)&nvml->throttle = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find_list(library, "nvmlDeviceGetComputeRunningProcesses", &nvml->compute);
  find_list(library, "nvmlDeviceGetGraphicsRunningProcesses", &nvml->graphics);
}

static bool start(VulkanNvml *nvml, const char *pci) {
  int (*init)(void), (*find)(const char *pci, void **device);
  *(void **)&init = dlsym(nvml->library, "nvmlInit_v2");
  *(void **)&find = dlsym(nvml->library, "nvmlDeviceGetHandleByPciBusId_v2");
  if (!init || !find || !nvml->shut_down || init() != SUCCESS) return false;
  if (find(pci, &nvml->device) == SUCCESS && nvml->device) return true;
  nvml->shut_down();
  nvml->device = NULL;
  return false;
}

bool vulkan_nvml_open(VulkanNvml *nvml, const char *library, const char *pci) {
  *nvml = (VulkanNvml){.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
  if (!nvml->library) return false;
  find_functions(nvml);
  if (start(nvml, pci)) return true;
  vulkan_nvml_close(nvml);
  return false;
}

void vulkan_nvml_close(VulkanNvml *nvml) {
  if (nvml->device) nvml->shut_down();
  if (nvml->library) dlclose(nvml->library);
  *nvml = (VulkanNvml){0};
}

/* Numbers of processes, each once. */
typedef struct Processes {
  unsigned ids[2 * MOST_PROCESSES], count;
} Processes;

static void add_process(Processes *processes, unsigned id) {
  for (unsigned i = 0; i < processes->count; i++)
    if (processes->ids[i] == id) return;
  processes->ids[processes->count++] = id;
}

/* False: not readable, or longer than there is room. A list that the device does not have is empty. */
static bool read_list(const VulkanNvml *nvml, const VulkanNvmlList *list, Processes *processes) {
  alignas(8) char infos[MOST_PROCESSES * ENTRY_BYTES];
  unsigned count = MOST_PROCESSES;
  if (!list->read) return false;
  const int result = list->read(nvml->device, &count, infos);
  if (result == NOT_SUPPORTED) return true;
  if (result != SUCCESS || count > MOST_PROCESSES) return false;
  for (unsigned i = 0; i < count; i++) {
    unsigned id;
    memcpy(&id, infos + i * list->entry_bytes, sizeof id);
    add_process(processes, id);
  }
  return true;
}

/* This process uses the device. Where the lists lack it, they are incomplete, or their numbers are those of another
 * namespace (a container's host): others cannot be told from it, then. */
static bool read_others(const VulkanNvml *nvml, int32_t *others) {
  Processes processes = {.count = 0};
  if (!read_list(nvml, &nvml->compute, &processes) || !read_list(nvml, &nvml->graphics, &processes)) return false;
  const unsigned listed = processes.count;
  add_process(&processes, (unsigned)getpid());
  *others = (int32_t)listed - 1;
  return processes.count == listed;
}

static bool read_clock(const VulkanNvml *nvml, int type, double *hertz) {
  unsigned mhz;
  if (!nvml->clock || nvml->clock(nvml->device, type, &mhz) != SUCCESS) return false;
  *hertz = mhz * 1e6;
  return true;
}

static bool read_temperature(const VulkanNvml *nvml, double *celsius) {
  unsigned degrees;
  if (!nvml->temperature || nvml->temperature(nvml->device, SENSOR_OF_CHIP, &degrees) != SUCCESS) return false;
  *celsius = degrees;
  return true;
}

static bool read_power(const VulkanNvml *nvml, double *watts) {
  unsigned milliwatts;
  if (!nvml->power || nvml->power(nvml->device, &milliwatts) != SUCCESS) return false;
  *watts = milliwatts / 1e3;
  return true;
}

static bool read_throttle(const VulkanNvml *nvml, uint64_t *throttle) {
  unsigned long long reasons;
  if (!nvml->throttle || nvml->throttle(nvml->device, &reasons) != SUCCESS) return false;
  *throttle = reasons;
  return true;
}

void vulkan_nvml_read(const VulkanNvml *nvml, DflashDeviceState *state) {
  const bool read[] = {
      [VULKAN_STATE_CLOCK] = read_clock(nvml, CLOCK_OF_MULTIPROCESSORS, &state->clock_hz),
      [VULKAN_STATE_MEMORY] = read_clock(nvml, CLOCK_OF_MEMORY, &state->memory_hz),
      [VULKAN_STATE_CELSIUS] = read_temperature(nvml, &state->celsius),
      [VULKAN_STATE_WATTS] = read_power(nvml, &state->watts),
      [VULKAN_STATE_THROTTLE] = read_throttle(nvml, &state->throttle),
      [VULKAN_STATE_USERS] = read_others(nvml, &state->other_users),
  };
  for (unsigned bit = 0; bit < sizeof read / sizeof read[0]; bit++)
    if (read[bit]) state->valid |= 1u << bit;
}
