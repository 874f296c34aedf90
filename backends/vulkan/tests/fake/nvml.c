/* Built as a library in three forms: whole; FAKE_NVML_OLD, with the first form of the lists and no reasons of
 * throttling; FAKE_NVML_BARE, which cannot be started. */
#include "nvml.h"

#include <stddef.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { INSUFFICIENT_SIZE = 7, INVALID_ARGUMENT = 2, MULTIPROCESSORS = 1, MEMORY = 2 };

extern FakeNvml fake_nvml;
EXPORTED FakeNvml fake_nvml = {0};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);

#ifndef FAKE_NVML_BARE
EXPORTED int nvmlInit_v2(void) {
  if (fake_nvml.init == 0) fake_nvml.starts++;
  return fake_nvml.init;
}
#endif

EXPORTED int nvmlShutdown(void) {
  fake_nvml.ends++;
  return 0;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device) {
  if (fake_nvml.find != 0) return fake_nvml.find;
  if (!fake_nvml.pci || strcmp(pci, fake_nvml.pci) != 0) return INVALID_ARGUMENT;
  *device = &fake_nvml;
  return 0;
}

EXPORTED int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
  if (device != &fake_nvml || (type != MULTIPROCESSORS && type != MEMORY)) return INVALID_ARGUMENT;
  *mhz = type == MULTIPROCESSORS ? 1980 : 3201;
  return fake_nvml.clock;
}

EXPORTED int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  if (device != &fake_nvml || sensor != 0) return INVALID_ARGUMENT;
  *celsius = 41;
  return fake_nvml.temperature;
}

EXPORTED int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  if (device != &fake_nvml) return INVALID_ARGUMENT;
  *milliwatts = 123456;
  return fake_nvml.power;
}

#ifndef FAKE_NVML_OLD
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  if (device != &fake_nvml) return INVALID_ARGUMENT;
  *reasons = 0x100000004;
  return fake_nvml.throttle;
}
#endif

typedef struct FirstEntry {
  unsigned id;
  unsigned long long memory;
} FirstEntry;

typedef struct Entry {
  unsigned id;
  unsigned long long memory;
  unsigned part, piece;
} Entry;

#ifdef FAKE_NVML_OLD
#define ENTRY FirstEntry
#define LISTED(name) name
#else
#define ENTRY Entry
#define LISTED(name) name##_v3
#endif

static int list(void *device, const unsigned *ids, unsigned have, unsigned *count, void *infos, int result) {
  if (device != &fake_nvml) return INVALID_ARGUMENT;
  const unsigned room = *count;
  ENTRY *entries = infos;
  *count = have;
  if (result != 0) return result;
  if (have > room) return INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < have; i++) entries[i] = (ENTRY){.id = ids[i], .memory = ~0ull};
  return 0;
}

int LISTED(nvmlDeviceGetComputeRunningProcesses)(void *device, unsigned *count, void *infos);
EXPORTED int LISTED(nvmlDeviceGetComputeRunningProcesses)(void *device, unsigned *count, void *infos) {
  return list(device, fake_nvml.compute_ids, fake_nvml.compute_count, count, infos, fake_nvml.compute);
}

int LISTED(nvmlDeviceGetGraphicsRunningProcesses)(void *device, unsigned *count, void *infos);
EXPORTED int LISTED(nvmlDeviceGetGraphicsRunningProcesses)(void *device, unsigned *count, void *infos) {
  return list(device, fake_nvml.graphics_ids, fake_nvml.graphics_count, count, infos, fake_nvml.graphics);
}
