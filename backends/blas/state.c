/* The host as a device: its name, and the state that /proc and /sys show. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "measure.h"

static bool read_line(const char *path, char *line, int size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool read = fgets(line, size, file) != NULL;
  fclose(file);
  return read;
}

static bool read_number(const char *path, double *value) {
  char line[64], *end;
  if (!read_line(path, line, sizeof line)) return false;
  *value = strtod(line, &end);
  return end != line;
}

/* The value after "key : " in /proc/cpuinfo, of its first processor. */
static bool read_cpuinfo(const char *key, char *value, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(value, size, "%s", colon);
    found = true;
  }
  fclose(file);
  return found;
}

DflashStatus dflash_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error) {
  (void)error;
  DflashDevice device = {.is_cpu = 1, .memory_bytes = dflash_memory_total(), .id = "cpu"};
  if (!read_cpuinfo("model name", device.name, sizeof device.name))
    snprintf(device.name, sizeof device.name, "host processor");
  snprintf(device.driver, sizeof device.driver, "%.100s (%.20s)", openblas_get_config(), openblas_get_corename());
  if (capacity > 0 && devices) DFLASH_GIVE(devices, device);
  *count = 1;
  return DFLASH_OK;
}

static bool read_clock(double *hertz) {
  char text[64];
  if (read_number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", hertz)) {
    *hertz *= 1e3;
    return true;
  }
  if (!read_cpuinfo("cpu MHz", text, sizeof text)) return false;
  *hertz = strtod(text, NULL) * 1e6;
  return *hertz > 0;
}

/* The first sensor of a processor. */
static bool read_temperature(double *celsius) {
  for (int i = 0; i < 32; i++) {
    char path[96], name[64];
    snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/name", i);
    if (!read_line(path, name, sizeof name)) continue;
    if (strncmp(name, "k10temp", 7) != 0 && strncmp(name, "coretemp", 8) != 0) continue;
    snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/temp1_input", i);
    if (!read_number(path, celsius)) continue;
    *celsius /= 1e3;
    return true;
  }
  return false;
}

/* Threads that run now beside this one. */
static bool read_others(int32_t *others) {
  char line[128];
  int running;
  if (!read_line("/proc/loadavg", line, sizeof line) || sscanf(line, "%*f %*f %*f %d/", &running) != 1) return false;
  *others = running > 1 ? running - 1 : 0;
  return true;
}

DflashStatus dflash_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error) {
  (void)model;
  (void)error;
  DflashDeviceState out = {0};
  if (read_clock(&out.clock_hz)) out.valid |= 1u << 0;
  if (read_temperature(&out.celsius)) out.valid |= 1u << 2;
  if (read_others(&out.other_users)) out.valid |= 1u << 5;
  DFLASH_GIVE(state, out);
  return DFLASH_OK;
}
