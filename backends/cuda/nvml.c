#include "nvml.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* The library's constants. Results: 0 is success. */
enum { NOT_SUPPORTED = 3, CLOCK_OF_PROCESSORS = 1, CLOCK_OF_MEMORY = 2, MOST_PROCESSES = 256 };

/* Bits of DflashDeviceState.valid. */
enum { CLOCK = 1, MEMORY = 2, CELSIUS = 4, WATTS = 8, THROTTLE = 16, USERS = 32 };

/* A process in the second and third form of the lists. */
typedef struct Process {
  unsigned id;
  unsigned long long memory;
  unsigned instance, part;
} Process;

typedef int (*ListFunction)(void *device, unsigned *count, Process *processes);

/* `place` is a pointer to a function: it becomes the library's function of that name, or NULL. */
static bool find(const CudaNvml *nvml, const char *name, void *place) {
  void *found = dlsym(nvml->library, name);
  memcpy(place, &found, sizeof found);
  return found != NULL;
}

void cuda_nvml_open(CudaNvml *nvml, const char *pci) {
  int (*start)(void), (*end)(void), (*get)(const char *address, void **device);
  *nvml = (CudaNvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
  if (!nvml->library) return;
  if (find(nvml, "nvmlInit_v2", &start) && find(nvml, "nvmlShutdown", &end) &&
      find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &get) && start() == 0) {
    if (get(pci, &nvml->device) == 0 && nvml->device) return;
    end();
  }
  dlclose(nvml->library);
  *nvml = (CudaNvml){0};
}

void cuda_nvml_close(CudaNvml *nvml) {
  int (*end)(void);
  if (nvml->device && find(nvml, "nvmlShutdown", &end)) end();
  if (nvml->library) dlclose(nvml->library);
  *nvml = (CudaNvml){0};
}

static void read_clock(const CudaNvml *nvml, int type, double *hertz, uint32_t bit, DflashDeviceState *state) {
  int (*get)(void *device, int kind, unsigned *mhz);
  unsigned mhz;
  if (!find(nvml, "nvmlDeviceGetClockInfo", &get) || get(nvml->device, type, &mhz) != 0) return;
  *hertz = mhz * 1e6;
  state->valid |= bit;
}

static void read_sensors(const CudaNvml *nvml, DflashDeviceState *state) {
  int (*temperature)(void *device, int sensor, unsigned *celsius), (*power)(void *device, unsigned *milliwatts);
  unsigned value;
  if (find(nvml, "nvmlDeviceGetTemperature", &temperature) && temperature(nvml->device, 0, &value) == 0) {
    state->celsius = value;
    state->valid |= CELSIUS;
  }
  if (find(nvml, "nvmlDeviceGetPowerUsage", &power) && power(nvml->device, &value) == 0) {
    state->watts = value / 1e3;
    state->valid |= WATTS;
  }
}

static void read_throttle(const CudaNvml *nvml, DflashDeviceState *state) {
  int (*get)(void *device, unsigned long long *reasons);
  unsigned long long reasons;
  if (!find(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", &get) || get(nvml->device, &reasons) != 0) return;
  state->throttle = reasons;
  state->valid |= THROTTLE;
}

/* Processes of a list other than this one, *self where this one is among them. False: it cannot be read. */
static bool count_others(const CudaNvml *nvml, const char *name, int32_t *others, bool *self) {
  Process processes[MOST_PROCESSES];
  unsigned count = MOST_PROCESSES;
  ListFunction list;
  if (!find(nvml, name, &list)) return false;
  const int result = list(nvml->device, &count, processes);
  if (result == NOT_SUPPORTED) return true;
  if (result != 0 || count > MOST_PROCESSES) return false;
  for (unsigned i = 0; i < count; i++) {
    const bool own = processes[i].id == (unsigned)getpid();
    *self = *self || own;
    *others += !own;
  }
  return true;
}

/* Where this process is on no list, their numbers are another namespace's: others cannot be told from it, then. */
static void read_users(const CudaNvml *nvml, DflashDeviceState *state) {
  int32_t others = 0;
  bool self = false;
  if (!count_others(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", &others, &self) ||
      !count_others(nvml, "nvmlDeviceGetGraphicsRunningProcesses_v3", &others, &self) || !self)
    return;
  state->other_users = others;
  state->valid |= USERS;
}

void cuda_nvml_read(const CudaNvml *nvml, DflashDeviceState *state) {
  if (!nvml->device) return;
  read_clock(nvml, CLOCK_OF_PROCESSORS, &state->clock_hz, CLOCK, state);
  read_clock(nvml, CLOCK_OF_MEMORY, &state->memory_hz, MEMORY, state);
  read_sensors(nvml, state);
  read_throttle(nvml, state);
  read_users(nvml, state);
}
